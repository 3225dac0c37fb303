/** What an attack case runs in: a sidecar as the fixture says, with the case's own faults, on real sockets. */
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { WebSocketServer } from 'ws'
import { createNonces } from '../../pdp/token/nonces.ts'
import { processReplayMemory, type ReplayMemory } from '../../pdp/token/replay.ts'
import { redisReplayMemory } from '../../pdp/token/replay-redis.ts'
import { loadConfig } from '../../sidecar/config.ts'
import type { LoadedConfig } from '../../sidecar/engine.ts'
import { NO_MATERIAL } from '../../sidecar/material.ts'
import { createMetrics } from '../../sidecar/metrics.ts'
import { watchConfig } from '../../sidecar/reload.ts'
import { parseRouteFile, type RouteFile } from '../../sidecar/route-file.ts'
import { createSidecar, type Sidecar } from '../../sidecar/sidecar.ts'
import { PATIENT, until } from '../sidecar/support/harness.ts'
import { type ScriptedPdp, startScriptedPdp } from '../sidecar/support/pdp.ts'
import { type SidecarProcess, startKeyServer, startProcess } from '../sidecar/support/process.ts'
import { hasRedis, startRedis } from '../sidecar/support/redis.ts'
import { startUpstream, type Upstream } from '../sidecar/support/upstream.ts'
import { type AttackCase, type Fixture, Skip } from './cases.ts'
import type { Keyring } from './credentials.ts'
import { fetchFor, keySets, scriptFor } from './faults.ts'
import { startRealPdp } from './real-pdp.ts'
import { grantsOf, routeFileText } from './route-text.ts'

export type World = {
  readonly port: number
  readonly upstream: Upstream
  /** Null: the real one. */
  readonly pdp: ScriptedPdp | null
  /** A second sidecar with the same configuration and replay memory. */
  readonly replicaPort: (() => Promise<number>) | null
  readonly registry: Registry
  /** Peak memory of the sidecar, which is then a process of its own; null: it shares ours. */
  readonly peakMb: (() => number) | null
  /** URLs that the sidecar fetched. */
  readonly fetched: readonly string[]
  /** The key set of each issuer. */
  readonly jwks: Map<string, { keys: unknown[] }>
  /** One that a proof may hold now. */
  readonly nonce: () => string
  /** Deletes tuples of the fixture. */
  revoke(tuples: readonly string[]): Promise<void>
  stopPdp(): Promise<void>
  close(): Promise<void>
}
export type WorldOptions = {
  readonly fixture: Fixture
  readonly case: AttackCase
  readonly keyring: Keyring
  readonly clock: () => number
}

/** The mistakes when the configuration of the case was refused, as it may have to be. */
export async function openWorld(options: WorldOptions): Promise<World | string> {
  const { fixture, keyring, clock } = options
  const config = options.case.setup.config ?? {}
  const script = scriptFor(config, tuplesOf(options))
  const source = routeFileText(fixture, options.case)
  const { file: parsed, mistakes } = parseRouteFile(source)
  if (parsed === null)
    return mistakes.map(({ line, message }) => `${source.split('\n')[line - 1]?.trim()}: ${message}`).join('; ')
  const upstream = await startUpstream()
  upstream.onUpgrade = echo()
  const scripted = needsScript(options.case) ? await startScriptedPdp(script) : null
  const real = scripted === null ? await startRealPdp(tuplesOf(options), 'acme') : null
  const pdp = scripted ?? real
  if (pdp === null) throw new TypeError('there is one or the other')
  const file = {
    ...parsed,
    upstream: { ...parsed.upstream, origin: upstream.origin },
    pdp: { ...parsed.pdp, addresses: [pdp.address] },
  }
  const jwks = await keySets(fixture, keyring, config)
  const fetched: string[] = []
  const registry = new Registry()
  const write = (): void => {
    if (config.fault === 'logger throws') throw new Error('the log is full')
  }
  let stopped: Promise<void> | null = null
  const stopPdp = (): Promise<void> => (stopped ??= pdp.stop())
  const closers: (() => Promise<void> | void)[] = [() => upstream.close(), stopPdp]
  const nonces = createNonces({ secret: Buffer.alloc(32, 'n'), clock })
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-attack-'))
  closers.push(() => rmSync(folder, { recursive: true }))
  const redis = sharesReplay(options.case) ? await openRedis(closers) : null
  const replay = redis === null ? processReplayMemory({ clock, entriesMax: 1_000 }) : redis

  async function openSidecar(): Promise<number> {
    let connected = false
    const sidecar = createSidecar({
      config: { file, material: NO_MATERIAL, hash: options.case.id },
      log: {
        info(entry) {
          connected ||= 'event' in entry && entry.event === 'pdp_connected'
          if (connected) write()
        },
        warn: write,
        error: write,
      },
      metrics: createMetrics(registry),
      fetch: fetchFor(config, { jwks, fetched }),
      clock,
      random: () => 0.5,
      replay,
      nonces,
      readToken: () => '',
      limits: { keyCooldownMs: 0, keyAgeMaxMs: 600_000, bodyIdleMs: 2_000, ...(scripted === null && PATIENT) },
    })
    closers.unshift(() => sidecar.close())
    const { port } = await sidecar.listen({ host: '127.0.0.1', port: 0 })
    await until(() => connected)
    if (config.jwks === undefined || LOADED.has(config.jwks)) await until(() => sidecar.notReady() === null)
    if (config.config === 'unlink')
      unlinkUnder(sidecar, join(folder, 'routes.yaml'), JSON.stringify(toText(source, file)))
    return port
  }

  const apart = options.case.expect.rss_growth_max_mb === undefined ? null : await openProcess()
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
  const replicaPort = redis === null ? null : openReplica
  async function openReplica(): Promise<number> {
    registry.clear()
    return openSidecar()
  }
  async function close(): Promise<void> {
    for (const closer of closers) await closer()
  }
  async function revoke(tuples: readonly string[]): Promise<void> {
    if (real === null) throw new Skip('tuples cannot be revoked of a PDP that misbehaves')
    await real.revoke(tuples)
  }
  const nonce = (): string => nonces.current()
  const parties = { upstream, pdp: scripted, replicaPort, peakMb, registry, fetched, jwks }
  return { port, ...parties, nonce, revoke, stopPdp, close }
}

/** Faults with which there is a key set all the same. */
const LOADED = new Set<unknown>(['oct', 'use=enc', 'dupkid', 'rsa1024', 'empty'])

const tuplesOf = ({ fixture, case: attack }: WorldOptions): string[] => [
  ...fixture.tuples,
  ...grantsOf(fixture, attack.id),
]

/** Faults of the PDP, and its hanging, are what the real one cannot be made to do. */
const needsScript = ({ request, setup }: AttackCase): boolean =>
  setup.config?.pdp !== undefined || (request.steps ?? []).some((step) => step === 'hang PDP')

const sharesReplay = ({ request }: AttackCase): boolean =>
  (request.steps ?? []).some((step) => typeof step === 'string' && step.startsWith('send to replica'))

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
function unlinkUnder(sidecar: Sidecar, path: string, text: string): void {
  writeFileSync(path, text)
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const load = (): LoadedConfig => loadConfig(path)
  const watching = { path, started: load(), load, apply: sidecar.apply, everyMs: 1_000_000, log: silent }
  const reload = watchConfig({ ...watching, metrics: createMetrics(new Registry()), clock: Date.now })
  unlinkSync(path)
  reload.check()
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
