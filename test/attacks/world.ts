/** What an attack case runs in: a sidecar as the fixture says, with the case's own faults, on real sockets. */

import { mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Registry } from 'prom-client'
import { WebSocketServer } from 'ws'
import { createNonces } from '../../pdp/shared/token/nonces.ts'
import { processReplayMemory, type ReplayMemory } from '../../pdp/shared/token/replay.ts'
import { redisReplayMemory } from '../../pdp/shared/token/replay-redis.ts'
import { readCertificates } from '../../sidecar/config/certificates.ts'
import { type LoadedConfig, loadConfig } from '../../sidecar/config/config.ts'
import { parseRouteFile, type RouteFile } from '../../sidecar/route-file/route-file.ts'
import { createMetrics } from '../../sidecar/runtime/metrics.ts'
import { watchConfig } from '../../sidecar/runtime/reload.ts'
import { createSidecar, type Sidecar } from '../../sidecar/runtime/sidecar.ts'
import { processMemory } from '../../sidecar/sign-in/memory.ts'
import { shareSessions } from '../../sidecar/sign-in/refresh.ts'
import { PATIENT } from '../sidecar/support/harness.ts'
import { type SidecarProcess, startKeyServer, startProcess } from '../sidecar/support/process.ts'
import { startUpstream, type Upstream } from '../sidecar/support/upstream.ts'
import { freePort } from '../support/free-port.ts'
import { hasRedis, startRedis } from '../support/peers/redis.ts'
import { type ScriptedPdp, startScriptedPdp } from '../support/peers/scripted-pdp.ts'
import { until } from '../support/until.ts'
import { type AttackCase, type Fixture, Skip, Unknown } from './case-format.ts'
import type { Keyring } from './credentials.ts'
import { fetchFor, hasKeys, keySets, pdpCertificate, scriptFor, upstreamFault } from './faults.ts'
import type { Planned } from './plan.ts'
import { startRealPdp } from './real-pdp.ts'
import { grantsOf, routeFileText } from './route-text.ts'

export type World = {
  readonly port: number
  readonly upstream: Upstream
  /** Null: the real one. */
  readonly pdp: ScriptedPdp | null
  /** A second sidecar with the same configuration and replay memory. */
  readonly replicaPort: (() => Promise<number>) | null
  /** Null: it is a process of its own. */
  readonly registry: Registry | null
  /** Peak memory of the sidecar, which is then a process of its own; null: it shares ours. */
  readonly peakMb: (() => number) | null
  /** URLs that the sidecar fetched. */
  readonly fetched: readonly string[]
  /** The key set of each issuer. */
  readonly jwks: Map<string, { keys: unknown[] }>
  /** One that a proof may hold, or might have held at another time. */
  readonly nonce: (which: 'current' | 'old') => string
  change(op: 'write' | 'delete', tuple: string): Promise<void>
  stopPdp(): Promise<void>
  startPdp(): Promise<void>
  /** Whether issuers answer from now on. */
  keysServed(served: boolean): void
  /** SIGTERM to the sidecar. */
  terminate(): void
  close(): Promise<void>
}
export type WorldOptions = {
  readonly fixture: Fixture
  readonly case: AttackCase
  readonly keyring: Keyring
  readonly plan: readonly Planned[]
  /** Of the sidecar. */
  readonly clock: () => number
}

/** The issues when the configuration of the case was refused, as it may have to be. */
export async function openWorld(options: WorldOptions): Promise<World | string> {
  const { keyring, clock, plan } = options
  const fixture = withIssuers(options.fixture, options.case)
  const config = options.case.setup.config ?? {}
  const script = scriptFor(config, tuplesOf(options))
  const source = routeFileText(fixture, options.case)
  const { file: parsed, issues } = parseRouteFile(source)
  if (parsed === null)
    return issues.map(({ line, message }) => `${source.split('\n')[line - 1]?.trim()}: ${message}`).join('; ')
  const faults = { upstream: upstreamFault(config), pdp: pdpCertificate(config) }
  const upstream = await startUpstream(faults.upstream?.startsWith('tls') === true ? SERVER : undefined)
  upstream.onUpgrade = echo()
  const scripted = needsScript(options)
    ? await startScriptedPdp(script, faults.pdp === null ? undefined : SERVER)
    : null
  const real = scripted === null ? await startRealPdp(tuplesOf(options), 'acme') : null
  const pdp = scripted ?? real
  if (pdp === null) throw new TypeError('there is one or the other')
  const file = {
    ...parsed,
    upstream: {
      ...parsed.upstream,
      origin: faults.upstream === 'closed' ? `http://127.0.0.1:${await freePort()}` : upstream.origin,
      ...(faults.upstream === 'tls trusted' && { caFile: AUTHORITY }),
    },
    pdp: {
      ...parsed.pdp,
      addresses: [pdp.address],
      ...(faults.pdp !== null && { insecure: false, caFile: faults.pdp === 'trusted' ? AUTHORITY : STRANGER }),
    },
  }
  const certificates = readCertificates(file)
  if (faults.upstream === 'silent') upstream.handle = () => undefined
  const jwks = await keySets(fixture, keyring, config)
  const issuing = { served: true }
  const fetched: string[] = []
  const registry = new Registry()
  const metrics = createMetrics(registry)
  const write = (): void => {
    if (config.fault === 'logger throws') throw new Error('the log is full')
  }
  let stopped: Promise<void> | null = null
  const stopPdp = (): Promise<void> => (stopped ??= pdp.stop())
  const closers: (() => Promise<void> | void)[] = [() => upstream.close(), stopPdp]
  const nonces = createNonces({ secret: NONCE_SECRET, clock })
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-attack-'))
  closers.push(() => rmSync(folder, { recursive: true }))
  const redis = sharesReplay(plan) ? await openRedis(closers) : null
  const replay = redis === null ? processReplayMemory({ clock, entriesMax: 1_000 }) : redis

  async function openSidecar(): Promise<number> {
    let connected = false
    const sidecar = createSidecar({
      config: { file, certificates, hash: options.case.id },
      log: {
        info(entry) {
          connected ||= 'event' in entry && entry.event === 'pdp_connected'
          if (connected) write()
        },
        warn: write,
        error: write,
      },
      sessions: shareSessions(processMemory({ clock }), { clock, log: { warn: write } }),
      metrics,
      fetch: fetchFor(config, { jwks, fetched, issuing }),
      clock,
      random: () => 0.5,
      replay,
      nonces,
      readToken: () => '',
      limits: {
        // Keys are changed in the middle of a case, except where it is about how often they are asked for.
        ...(!plan.some((one) => one.kind === 'send' && one.varied === 'kid') && { keyCooldownMs: 0 }),
        keyAgeMaxMs: 600_000,
        bodyIdleMs: 2_000,
        ...(scripted === null && PATIENT),
      },
    })
    closers.unshift(() => sidecar.close())
    const { port } = await sidecar.listen({ host: '127.0.0.1', port: 0 })
    if (faults.pdp === null || faults.pdp === 'trusted') await until(() => connected)
    // A PDP that it does not trust never answers.
    if (hasKeys(config)) await until(() => !/^(?:no keys|connecting)/.test(String(sidecar.notReady())))
    if (config.config === 'unlink')
      await unlinkUnder(sidecar, join(folder, 'routes.yaml'), JSON.stringify(toText(source, file)))
    return port
  }

  const apart = needsProcess(options) ? await openProcess() : null
  async function openProcess(): Promise<SidecarProcess> {
    const served = await startKeyServer([...jwks.values()])
    const issuers = file.issuers.map(({ issuer, algorithms }, at) => ({
      issuer,
      algorithms,
      jwks_uri: served.urls[at],
    }))
    const started = await startProcess({ routeFile: JSON.stringify({ ...toText(source, file), issuers }) })
    closers.unshift(
      () => started.stop(),
      () => served.close(),
    )
    return started
  }
  const port = apart?.port ?? (await openSidecar())
  const peakMb = apart === null ? null : (): number => apart.memory().peakMb
  const replicaPort = redis === null ? null : openSidecar
  async function close(): Promise<void> {
    for (const closer of closers) await closer()
  }
  async function change(op: 'write' | 'delete', tuple: string): Promise<void> {
    if (real === null) throw new Unknown('the tuples of a PDP that misbehaves are not changed')
    await real.change(op, [tuple])
  }
  const old = createNonces({ secret: NONCE_SECRET, clock: () => clock() - OLD_MS })
  return {
    port,
    upstream,
    pdp: scripted,
    replicaPort,
    peakMb,
    registry: apart === null ? registry : null,
    fetched,
    jwks,
    nonce: (which) => (which === 'old' ? old : nonces).current(),
    change,
    stopPdp,
    startPdp: async () => scripted?.start(),
    keysServed(served) {
      issuing.served = served
    },
    terminate: () => void process.kill(apart?.pid ?? Number.NaN, 'SIGTERM'),
    close,
  }
}

const NONCE_SECRET = Buffer.alloc(32, 'n')
const OLD_MS = 3_600_000
const PEMS = fileURLToPath(new URL('../support/certificates', import.meta.url))
const AUTHORITY = join(PEMS, 'ca.pem')
/** Signs nothing that is shown here. */
const STRANGER = join(PEMS, 'other-ca.pem')
/** What a party shows whose certificate the sidecar may believe or not. */
const SERVER = { cert: readFileSync(join(PEMS, 'server-1.pem')), key: readFileSync(join(PEMS, 'server-1.key')) }

const tuplesOf = ({ fixture, case: attack }: WorldOptions): string[] => [
  ...fixture.tuples,
  ...grantsOf(fixture, attack.id),
]

/** Faults of the PDP, its hanging and its return are what the real one cannot be made to do here. */
const needsScript = ({ case: { setup }, plan }: WorldOptions): boolean =>
  setup.config?.pdp !== undefined || plan.some(({ kind }) => kind === 'hang PDP' || kind === 'start PDP')

const sharesReplay = (plan: readonly Planned[]): boolean =>
  plan.some((one) => one.kind === 'send' && one.replica !== null)

/** Memory and signals are those of a process; what only a part in our own can do is not asked of it. */
function needsProcess({ case: { setup, expect }, plan }: WorldOptions): boolean {
  if (expect.rss_growth_max_mb === undefined && !plan.some(({ kind }) => kind === 'terminate')) return false
  const inside =
    plan.find(({ kind }) => INSIDE.has(kind)) ?? Object.keys(setup.config ?? {}).find((name) => INSIDE.has(name))
  if (inside !== undefined) throw new Unknown('a process of its own has neither faults inside nor another clock')
  return true
}
const INSIDE = new Set([
  'rotate',
  'replace key',
  'remove key',
  'keys down',
  'keys up',
  'wait max age',
  'pass',
  'skew',
  'jwks',
  'clock',
  'clock_skew',
  'upstream',
  'nonce',
])

/** Those that the case names, in its order. */
function withIssuers(fixture: Fixture, { setup }: AttackCase): Fixture {
  const { issuers: named } = setup.config ?? {}
  if (named === undefined) return fixture
  const issuers = [named].flat().map((name) => {
    const found = fixture.issuers.find(({ iss }) => iss === name)
    if (found === undefined) throw new Unknown(`the issuer ${JSON.stringify(name)} is not one of the fixture`)
    return found
  })
  return { ...fixture, issuers }
}

async function openRedis(closers: (() => Promise<void> | void)[]): Promise<ReplayMemory> {
  if (!hasRedis()) throw new Skip('redis-server is not installed (Debian: redis-server)')
  const redis = await startRedis()
  const memory = await redisReplayMemory({
    url: redis.url,
    clock: Date.now,
    timeoutMs: 2_000,
    onError: () => undefined,
  })
  closers.push(
    () => memory.close(),
    () => redis.kill(),
  )
  return memory
}

/** The route file as it would lie on disk, then gone, and the reload that finds it so. */
async function unlinkUnder(sidecar: Sidecar, path: string, text: string): Promise<void> {
  writeFileSync(path, text)
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const load = async (): Promise<LoadedConfig> => loadConfig(path)
  const watching = { path, started: await load(), load, apply: sidecar.apply, everyMs: 1_000_000, log: silent }
  const reload = watchConfig({ ...watching, metrics: createMetrics(new Registry()), clock: Date.now })
  unlinkSync(path)
  await reload.check()
  reload.close()
}

function toText(source: string, file: RouteFile): object {
  const pdp = { addresses: file.pdp.addresses, insecure: true }
  return { ...JSON.parse(source), upstream: file.upstream.origin, pdp }
}

function echo(): Upstream['onUpgrade'] {
  const server = new WebSocketServer({ noServer: true })
  return (req, socket, head) =>
    server.handleUpgrade(req, socket, head, (opened) => {
      opened.on('message', (data, binary) => opened.send(data, { binary }))
    })
}
