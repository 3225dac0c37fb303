/** Assembles a sidecar: one listener, and the runtime of the active configuration. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ProbeResult } from '../../pdp/shared/process/admin-listener.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import type { ListenAddress } from '../../pdp/shared/process/listen.ts'
import { everyNth } from '../../pdp/shared/process/repeated-lines.ts'
import type { Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import type { LoadedConfig } from '../config/config.ts'
import type { Door } from '../doors/ext-authz.ts'
import { openDoors } from '../doors/open-doors.ts'
import type { Closing } from '../enforce/decide-exchange.ts'
import { rejectionLine } from '../enforce/decision-log.ts'
import { describeDenial, sendRawDenial } from '../enforce/denial-response.ts'
import { PermissionWatch } from '../enforce/permission-watch.ts'
import { Places } from '../enforce/places.ts'
import { reevaluate } from '../enforce/reevaluate.ts'
import { Turns } from '../enforce/turns.ts'
import { asksForWebSocket } from '../enforce/websocket-handshake.ts'
import { http1Request } from '../http/client-request.ts'
import { fieldsFor } from '../http/cors.ts'
import { createListener, type Listener, type Rejection } from '../listener/listener.ts'
import { createRouteReports } from '../pdp-client/route-reports.ts'
import { readInbound } from '../request/inbound.ts'
import { originOf } from '../request/origin.ts'
import { DEFAULT_LIMITS, type SidecarLimits } from '../route-file/default-limits.ts'
import { createRouting, type RoutingDeps, routeRequest } from '../routes/route-request.ts'
import { createClockSkew } from './clock-skew.ts'
import { type ExchangeDeps, serve } from './exchange.ts'
import { unfailingLog } from './log.ts'
import { createRefusals, type RefusedRequest } from './refusals.ts'
import { createReportedRoutes } from './reported-routes.ts'
import { createRuntime, createRuntimeResources, type Runtime, type RuntimeDeps } from './runtime.ts'

type SidecarOptions = Omit<RuntimeDeps, 'limits' | 'resources' | 'skew' | 'reports'> & {
  readonly config: LoadedConfig
  readonly limits?: Partial<SidecarLimits>
  /** The collector of trace spans; null or absent: no spans. */
  readonly tracing?: Tracing | null
}
export type Sidecar = {
  /** Returns the bound address; port 0 means any free port. Throws StartError if it cannot listen. */
  listen(address: ListenAddress): Promise<ListenAddress>
  /** Opens the doors of the configuration, and returns their addresses. Throws StartError if a door cannot or must not open. */
  openDoors(): Promise<readonly string[]>
  /**
   * Makes this configuration decide later requests. `routing`: made from it, by a caller that has built it in steps. Throws
   * ConfigError for a change that needs a restart.
   */
  apply(config: LoadedConfig, routing?: RoutingDeps): void
  /**
   * Null if requests can be decided; else the reason: an issuer's keys were never loaded, the sidecar is draining, or no PDP answers.
   * The last reason is only a note if there are public routes, which need no PDP.
   */
  notReady(): ProbeResult
  /** The refusal with this id; null: none is recent enough. */
  refusal(requestId: string): RefusedRequest | null
  /** The key set of assertions as JSON; null: no service gets assertions. */
  assertionKeys(): string | null
  /** Reports "not ready" and asks clients to connect elsewhere, but still serves every request. `close` does the same first. */
  withdraw(): void
  /**
   * Withdraws. `acceptMs` after the first withdrawal it accepts no connections and ends exchanges that have no natural end.
   * Resolves after the last request, or after `drainMs` in total.
   */
  close(options?: { readonly acceptMs: number }): Promise<void>
}
/** The parts in use. `serving` is made once for each configuration, not for each request. */
type ActiveRuntime = { readonly runtime: Runtime; readonly serving: ExchangeDeps }

/** A shorter silence of the PDP may be its restart. Before its first answer the sidecar is never ready, so that a rollout stops. */
const SILENCE_MS = 10_000
/** How often keys that are missing or due are looked for; each issuer has its own cooldown. */
const KEYS_DUE_MS = 1_000

export function createSidecar(given: SidecarOptions): Sidecar {
  const { limits = {}, tracing = null, clock, fetch, random, replay, nonces, readToken, sessions } = given
  const routes = createReportedRoutes(given.config)
  const reports = createRouteReports(routes)
  const refusals = createRefusals()
  const metrics = countedBy(given.metrics, { refusals, routes })
  const log = unfailingLog(given.log)
  const skew = createClockSkew({ clock, onMeasured: noteSkew({ metrics, log }) })
  const resources = createRuntimeResources()
  const telling = { log, metrics, skew, reports }
  const deps: RuntimeDeps = { fetch, clock, random, replay, nonces, readToken, sessions, limits, resources, ...telling }
  // Limits that a route file cannot set.
  const { unconfirmedMaxMs, expiryLeewayMs, keyRefreshMs } = { ...DEFAULT_LIMITS, ...limits }
  const permissionWatch = new PermissionWatch({ clock, unconfirmedMaxMs, expiryLeewayMs })
  let withdrawnAtMs: number | null = null
  const draining = (): boolean => withdrawnAtMs !== null
  const places = new Places()
  const turns = new Turns()
  let current = activate(createRuntime(given.config, deps, createRouting(given.config.file)))
  announce(current.runtime, deps)
  metrics.watchPdp(() => current.runtime.pdp.silentSinceMs())

  function activate(runtime: Runtime): ActiveRuntime {
    const isCurrent = (): boolean => current.runtime === runtime
    const ready = (): boolean => typeof notReady() !== 'string'
    const operating = { metrics, log, tracing, permissionWatch, places, turns, draining, ready, isCurrent, enter }
    return { runtime, serving: { ...rulesOf(runtime), ...operating, reevaluate: reevaluateBy(() => current.runtime) } }
  }

  function notReady(): ProbeResult {
    return draining() ? 'draining' : readiness(current.runtime, clock())
  }

  function enter(closing: Closing): ExchangeDeps {
    return enterUntilClosed(current, closing)
  }

  const listener = createListener({
    limits: current.runtime.limits,
    certificate: given.config.certificates.tls,
    onRequest: (client, res, expectsContinue) =>
      void serve(client, res, { expectsContinue, upgrade: null, deps: enter(res) }),
    mayUpgrade: (req) => asksForWebSocket(req) && takesWebSocket(req, current.runtime),
    // A WebSocket exchange ends with its connection, not with its response.
    onUpgrade: (client, res, upgrade) =>
      void serve(client, res, { expectsContinue: false, upgrade, deps: enter(upgrade.socket) }),
    isProxy: (address) => current.runtime.trustedProxies?.has(address) === true,
    namesClient: (address) => current.runtime.namesClient(address),
    onRejected: (connection, rejection) => answerRejected(connection, rejection, current.runtime, deps),
    onDropped: () => log.warn({ event: 'connections_dropped', reason: 'connections_max' }),
  })
  function withdraw(): number {
    withdrawnAtMs ??= performance.now()
    listener.withdraw()
    return withdrawnAtMs
  }
  let doors: readonly Door[] = []
  // Keys are loaded often: a sidecar without keys is not ready, so no request comes that would load them.
  const refreshing = setInterval(() => current.runtime.refreshKeys(), Math.min(KEYS_DUE_MS, keyRefreshMs)).unref()

  return {
    listen: (address) => listener.listen(address),
    async openDoors() {
      const { file, certificates } = given.config
      doors = await openDoors(file.doors, certificates.doors, { enter, limits: () => current.runtime.limits, log })
      return doors.map(({ address }) => address)
    },
    apply(config, routing = createRouting(config.file)) {
      refuseRestart(config, { started: given.config, active: current.runtime.config })
      const runtime = createRuntime(config, deps, routing)
      const endedCount = replaceCertificate(config, listener, runtime)
      // After this line nothing can fail: a configuration is applied completely or not at all.
      const former = current.runtime
      current = activate(runtime)
      listener.setLimits(runtime.limits)
      for (const door of doors) door.applyLimits()
      announce(runtime, deps)
      routes.show(config)
      reports.changed()
      former.retire()
      permissionWatch.reevaluateAll()
      noteDoorKeys(config, [given.config, former.config], deps)
      if (endedCount > 0) log.warn({ event: 'connections_ended', reason: 'client_ca_file', connections: endedCount })
    },
    notReady,
    refusal: refusals.find,
    assertionKeys: () => current.runtime.assertionKeys,
    withdraw: () => void withdraw(),
    async close({ acceptMs } = { acceptMs: 0 }) {
      const startedMs = performance.now()
      clearInterval(refreshing)
      await delay(Math.max(0, withdraw() + acceptMs - startedMs))
      const leftMs = current.runtime.limits.drainMs - (performance.now() - startedMs)
      await drain({ listener, doors, permissionWatch }, Math.max(0, leftMs))
      permissionWatch.close()
      reports.close()
      current.runtime.retire()
    },
  }
}

/** The same metrics, which also tell these parts about each decision. */
const countedBy = (
  metrics: RuntimeDeps['metrics'],
  {
    refusals,
    routes,
  }: {
    readonly refusals: ReturnType<typeof createRefusals>
    readonly routes: ReturnType<typeof createReportedRoutes>
  },
): RuntimeDeps['metrics'] => ({
  ...metrics,
  decided(route, line) {
    refusals.decided(line)
    routes.decided(route, line)
    metrics.decided(route, line)
  },
})

/** Returns how many connections it has ended. Throws if the certificate cannot be used, and `runtime` then ends. */
function replaceCertificate({ certificates }: LoadedConfig, listener: Listener, runtime: Runtime): number {
  try {
    return certificates.tls === null ? 0 : listener.replaceCertificate(certificates.tls)
  } catch (err) {
    runtime.retire()
    throw err
  }
}

async function drain(
  parts: { readonly listener: Listener; readonly doors: readonly Door[]; readonly permissionWatch: PermissionWatch },
  drainMs: number,
): Promise<void> {
  const { listener, doors, permissionWatch } = parts
  permissionWatch.cancelEndless()
  const closing = Promise.all(doors.map((door) => door.close()))
  await listener.close({ drainMs, onLate: () => permissionWatch.cancelAll('draining') })
  await closing
}

/** Answers and logs input that never became a request. */
function answerRejected(
  connection: Duplex,
  { code, reason, address, origin, answers }: Rejection,
  { enforcing }: Runtime,
  { metrics, log }: RuntimeDeps,
): void {
  const requestId = randomUUID()
  const line = rejectionLine(code, { requestId, address, detail: reason })
  metrics.decided('', line)
  log.info(line)
  if (!answers) return
  const answer = describeDenial(code, {}, { requestId, metadataUrl: null })
  const fields = [...answer.fields, ...fieldsFor(enforcing.cors, origin)]
  sendRawDenial(connection, { ...answer, fields })
}

/** Logs a change of a door's keys only once: later reloads find the keys known. */
function noteDoorKeys({ certificates }: LoadedConfig, known: readonly LoadedConfig[], { log }: RuntimeDeps): void {
  if (!known.some((config) => isDeepStrictEqual(config.certificates.doors, certificates.doors)))
    log.warn({ event: 'restart_needed', reason: 'a certificate or secret of a door has changed' })
}

const noteSkew =
  ({ metrics, log }: Pick<RuntimeDeps, 'metrics' | 'log'>) =>
  (against: string, behindMs: number, changed: boolean): void => {
    const behind = Math.round(behindMs / 1_000)
    metrics.clockSkew(against, behind)
    if (behindMs !== 0) log.warn({ event: 'clock_skewed', against, behind_seconds: behind })
    else if (changed) log.info({ event: 'clock_agrees', against })
  }

/** Keeps the runtime's resources open until `closing` closes. */
function enterUntilClosed({ runtime, serving }: ActiveRuntime, closing: Closing): ExchangeDeps {
  if (!closing.destroyed) {
    runtime.enter()
    closing.once('close', runtime.leave)
  }
  return serving
}

/** Evaluates an open exchange by the current rules. */
const reevaluateBy =
  (current: () => Runtime): ExchangeDeps['reevaluate'] =>
  (permit, { client, upgrade }) => {
    const { enforcing, trustedProxies } = current()
    return reevaluate(permit, { upgrade, origin: originOf(client, trustedProxies) }, enforcing)
  }

/** The parts of `ExchangeDeps` that come from the route file. */
function rulesOf({
  config,
  enforcing,
  forwarding,
  forwardingTo,
  metadata,
  assertionKeys,
  signIn,
  proofNonce,
  limits,
  trustedProxies,
  requestsMax,
  serviceRequestsMax,
}: Runtime) {
  const { bodyBytesMax, subjectsInLog, pathsInLog, allowedOneIn } = config.file
  const logging = { subjectsInLog, pathsInLog, logsAllowed: everyNth(allowedOneIn) }
  const bounds = { limits, requestsMax, serviceRequestsMax, bodyBytesMax }
  const sending = { forwarding, forwardingTo }
  return { enforcing, ...sending, metadata, assertionKeys, signIn, proofNonce, trustedProxies, ...bounds, ...logging }
}

function announce({ config, refreshKeys }: Runtime, { metrics, log, clock }: RuntimeDeps): void {
  const shadowed = config.file.routes.filter(({ shadow }) => shadow).map(({ id }) => id)
  metrics.shadowed(shadowed)
  if (shadowed.length > 0) log.warn({ event: 'routes_shadowed', routes: shadowed })
  metrics.loaded({ ok: true, hash: config.hash, atSeconds: clock() / 1_000 })
  refreshKeys()
}

/** Throws ConfigError for a change that needs a restart. */
function refuseRestart(
  { file, certificates }: LoadedConfig,
  { started, active }: { readonly started: LoadedConfig; readonly active: LoadedConfig },
): void {
  if (JSON.stringify(file.doors) !== JSON.stringify(started.file.doors))
    throw new ConfigError(['doors can only be changed with a restart'])
  const { tls } = certificates
  const { tls: tlsNow } = active.certificates
  if ((tls === null) !== (tlsNow === null))
    throw new ConfigError(['tls can only be added to a route file, or removed, with a restart'])
  // Only a restart can change whether client certificates are asked for: Node fixes this when the server starts.
  if ((tls?.ca === null) !== (tlsNow?.ca === null))
    throw new ConfigError(['tls.client_ca_file can only be added to a route file, or removed, with a restart'])
}

function readiness(runtime: Runtime, nowMs: number): ProbeResult {
  const missing = runtime.issuersWithoutKeys()
  const lack = missing.length === 0 ? pdpSilence(runtime, nowMs) : `no keys yet of ${missing.join(', ')}`
  // In shadow mode all requests pass, so missing keys or a missing PDP are only noted.
  return typeof lack === 'string' && runtime.enforcing.shadowRoute !== null ? { note: lack } : lack
}

function pdpSilence({ config, pdp }: Runtime, nowMs: number): ProbeResult {
  // Requests that came now would wait for the connection.
  if (pdp.isConnecting()) return 'connecting to the PDP'
  const sinceMs = pdp.silentSinceMs()
  if (sinceMs === null || (pdp.hasConnected() && nowMs - sinceMs < SILENCE_MS)) return null
  const note = `no PDP answers since ${new Date(sinceMs).toISOString()}`
  return config.file.routes.some(({ check }) => check === null) ? { note } : note
}

/** True if the request's route accepts WebSockets. Else, and if no route is found, the pipeline handles an ordinary request. */
function takesWebSocket(req: IncomingMessage, { config, enforcing, trustedProxies }: Runtime): boolean {
  if (enforcing.shadowRoute !== null) return !config.file.upstream.http2
  try {
    const client = http1Request(req)
    const match = routeRequest(
      enforcing,
      readInbound(client, { origin: originOf(client, trustedProxies), targetCharsMax: enforcing.targetCharsMax }),
    )
    return match.kind === 'route' && match.route.websocket
  } catch {
    return false
  }
}
