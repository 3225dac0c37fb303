/** Starts a sidecar process, and closes its parts in reverse order at shutdown. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { createRegistry, startOperations } from '../../pdp/shared/process/admin-listener.ts'
import { watchDescriptors } from '../../pdp/shared/process/descriptors.ts'
import { formatAddress, namedBySetting } from '../../pdp/shared/process/listen.ts'
import type { Log } from '../../pdp/shared/process/log.ts'
import { redisLines } from '../../pdp/shared/process/redis-lines.ts'
import type { Shutdown } from '../../pdp/shared/process/shutdown.ts'
import { openTracing } from '../../pdp/shared/process/tracing/otlp.ts'
import type { Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import { createNonces } from '../../pdp/shared/token/nonces.ts'
import { processReplayMemory, type ReplayMemory } from '../../pdp/shared/token/replay.ts'
import { redisReplayMemory } from '../../pdp/shared/token/replay-redis.ts'
import type { SidecarConfig } from '../config/config.ts'
import { createReloading } from '../config/reloaded-config.ts'
import { ASSERTION_KEYS_PATH } from '../http/assertion.ts'
import { DEFAULT_LIMITS } from '../route-file/default-limits.ts'
import { servedHosts } from '../route-file/served-hosts.ts'
import { processMemory, type SignInMemory } from '../sign-in/memory.ts'
import { redisMemory } from '../sign-in/memory-redis.ts'
import { shareSessions } from '../sign-in/refresh.ts'
import { createClockSkew } from './clock-skew.ts'
import { startControl } from './control.ts'
import { createKeyFetch } from './key-fetch.ts'
import { createMetrics } from './metrics.ts'
import { watchConfig } from './reload.ts'
import { createRuntimeResources, type RuntimeDeps } from './runtime.ts'
import { createSidecar, type Sidecar } from './sidecar.ts'
import { warmUp } from './warm-up.ts'

const RELOAD_MS = 1_000
const SECRET_BYTES = 32
/** Time for load balancers to see that this process is not ready; the injector's preStop hook waits as long. */
const ACCEPT_MS = 5_000
/** How many milliseconds longer a start may take to make the first requests as fast as later ones. */
const WARM_UP_MS = 450

/** Returns when both ports listen. Throws StartError when a port cannot listen. */
export async function startSidecar(
  config: SidecarConfig,
  {
    log,
    shutdown,
    droppedLines,
  }: { readonly log: Log; readonly shutdown: Shutdown; readonly droppedLines?: () => number },
): Promise<void> {
  const { loaded, filePath } = config
  const clock = Date.now
  const registry = createRegistry(droppedLines)
  const metrics = createMetrics(registry)
  const sidecar = createSidecar({
    config: loaded,
    log,
    metrics,
    fetch: createKeyFetch(process.env),
    clock,
    random: Math.random,
    replay: await openReplayMemory(config.redisUrl, { log, shutdown }),
    nonces: createNonces({ secret: config.nonceSecret ?? randomBytes(SECRET_BYTES), clock }),
    readToken: (path) => readFileSync(path, 'utf8').trim(),
    sessions: shareSessions(await openSignInMemory(config, { log, shutdown }), { clock, log }),
    tracing: openSpans(config, { log, shutdown }),
  })
  let isWarm = false
  const readyz = () => (isWarm ? sidecar.notReady() : 'warming up')
  const probes = { '/startz': () => null, '/livez': () => null, '/readyz': readyz }
  const operations = await namedBySetting(
    'PORTCULLIS_SIDECAR_ADMIN_LISTEN',
    startOperations({
      listen: config.adminListen,
      registry,
      probes,
      refusal: sidecar.refusal,
      documents: { [ASSERTION_KEYS_PATH]: sidecar.assertionKeys },
    }),
  )
  const descriptors = watchDescriptors({ log })
  shutdown.add('descriptors', () => descriptors.close())
  shutdown.add('admin listener', () => operations.close())
  // Control-C is for interactive use: there is no load balancer to wait for.
  shutdown.add('sidecar', (reason) => sidecar.close({ acceptMs: reason === 'SIGINT' ? 0 : ACCEPT_MS }))
  // During the warm-up, keys are loaded and the PDP is connected.
  await warmUp(WARM_UP_MS, log)
  isWarm = true
  if (shutdown.begun()) return
  const address = await namedBySetting('PORTCULLIS_SIDECAR_LISTEN', sidecar.listen(config.listen))
  const doors = await sidecar.openDoors()
  const load = createReloading(filePath, loaded, config)
  const { apply } = sidecar
  const watching = { path: filePath, started: loaded, load, apply, everyMs: RELOAD_MS }
  const reload = watchConfig({ ...watching, log, metrics, clock })
  shutdown.add('reload', () => reload.close())
  await openControl(config.controlPath, { sidecar, shutdown })
  if (shutdown.begun()) return
  log.info({
    event: 'listening',
    data: formatAddress(address),
    ...(doors.length > 0 && { doors }),
    admin: formatAddress(operations.address),
    route_file: filePath,
    hosts: servedHosts(loaded.file),
    routes: loaded.file.routes.length,
  })
}

/** The parts for a single question from the command line, without logs or shared metrics. */
export function commandLineDeps(): RuntimeDeps {
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
  return {
    log: silent,
    metrics: createMetrics(new Registry()),
    fetch: createKeyFetch(process.env),
    clock: Date.now,
    random: Math.random,
    replay: processReplayMemory({ clock: Date.now, entriesMax: 1 }),
    nonces: createNonces({ secret: randomBytes(SECRET_BYTES), clock: Date.now }),
    readToken: (path) => readFileSync(path, 'utf8').trim(),
    reports: null,
    // Longer than the sidecar waits, because the connection to the PDP must be opened first.
    limits: { pdpTimeoutMs: 3_000 },
    resources: createRuntimeResources(),
    skew: createClockSkew({ clock: Date.now, onMeasured: () => undefined }),
    sessions: shareSessions(processMemory({ clock: Date.now }), { clock: Date.now, log: silent }),
  }
}

/** Connects to Redis only if the route file has a sign-in. A file that gets one later needs a restart to share sessions. */
async function openSignInMemory(
  { redisUrl, loaded }: SidecarConfig,
  { log, shutdown }: { readonly log: Log; readonly shutdown: Shutdown },
): Promise<SignInMemory> {
  if (loaded.file.signIn === null || redisUrl === null) {
    if (loaded.file.signIn !== null) log.info({ event: 'sessions_in_cookies', reason: 'REDIS_URL is not set' })
    return processMemory({ clock: Date.now })
  }
  const memory = await redisMemory({
    url: redisUrl,
    ...redisLines(log, 'sessions', redisUrl),
  })
  shutdown.add('sessions', () => memory.close())
  return memory
}

/** Opens the collector of trace spans; null: none is configured. */
function openSpans(
  { tracing }: SidecarConfig,
  { log, shutdown }: { readonly log: Log; readonly shutdown: Shutdown },
): Tracing | null {
  if (tracing === null) return null
  const opened = openTracing(tracing, { log })
  shutdown.add('spans', () => opened.close())
  return opened
}

async function openReplayMemory(
  url: string | null,
  { log, shutdown }: { readonly log: Log; readonly shutdown: Shutdown },
): Promise<ReplayMemory> {
  const clock = Date.now
  if (url === null) return processReplayMemory({ clock, entriesMax: DEFAULT_LIMITS.proofsMax })
  const memory = await redisReplayMemory({
    url,
    clock,
    ...redisLines(log, 'proofs', url),
  })
  shutdown.add('redis', () => memory.close())
  return memory
}

/** Opens the control socket. Its command `drain` acts like SIGTERM, and replies after the shutdown. */
async function openControl(
  path: string | null,
  { sidecar, shutdown }: { readonly sidecar: Sidecar; readonly shutdown: Shutdown },
): Promise<void> {
  if (path === null) return
  const control = await startControl(path, {
    withdraw: sidecar.withdraw,
    async drain() {
      process.kill(process.pid, 'SIGTERM')
      await shutdown.run('SIGTERM')
    },
  })
  shutdown.add('control socket', () => control.close())
}
