/** Puts the parts of a sidecar together: one listener, and the engine of the configuration in force. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { ConfigError } from '../pdp/process/exit.ts'
import type { ListenAddress } from '../pdp/process/listen.ts'
import type { ProbeResult } from '../pdp/process/operations.ts'
import type { ProblemCode } from '../pdp/process/problems.ts'
import { type ClientAnswer, type ClientRequest, http1Request, type Upgrade } from './client.ts'
import { describeDenial, sendRawDenial } from './deny.ts'
import { judgeAgain, type Permit } from './enforce.ts'
import { createEngine, createEngineParts, type Engine, type EngineDeps, type LoadedConfig } from './engine.ts'
import { type ExchangeDeps, serve } from './exchange.ts'
import { asksForWebSocket } from './handshake.ts'
import { readInbound } from './inbound.ts'
import { createLifetimes } from './lifetimes.ts'
import { DEFAULT_LIMITS, type SidecarLimits } from './limits.ts'
import { createListener } from './listener.ts'
import { unfailingLog } from './log.ts'
import { matchRequest } from './match.ts'

export type SidecarOptions = Omit<EngineDeps, 'limits' | 'parts'> & {
  readonly config: LoadedConfig
  readonly limits?: Partial<SidecarLimits>
}
export type Sidecar = {
  /** Throws StartError when the address cannot be had. Port 0 takes a free one; the address that was taken is returned. */
  listen(address: ListenAddress): Promise<ListenAddress>
  /** Requests from now on are judged by this one. Throws ConfigError for what needs a restart. */
  apply(config: LoadedConfig): void
  /**
   * Null when requests can be judged, else what is missing: the keys of an issuer were never loaded, it is draining, or no
   * PDP answers. Of the last only a note is made where public routes are served: they need no PDP.
   */
  notReady(): ProbeResult
  /** Is not ready any more and sends its clients elsewhere, but serves all that come: before `close`, until others have heard. */
  withdraw(): void
  /**
   * Withdraws; `acceptMs` after the first withdrawal takes no further connections and sends away what would never end;
   * ends with the last request, or after `drainMs` in all.
   */
  close(options?: { readonly acceptMs: number }): Promise<void>
}
/** `serving`: made once, not for each request. */
type Running = { readonly engine: Engine; readonly serving: ExchangeDeps }

/** Less than this is a restart of the PDP, or of the sidecar itself. */
const SILENCE_MS = 10_000

export function createSidecar(given: SidecarOptions): Sidecar {
  const limits: SidecarLimits = { ...DEFAULT_LIMITS, ...given.limits }
  const shared: EngineDeps = { ...given, log: unfailingLog(given.log), limits, parts: createEngineParts() }
  const { log, metrics, clock } = shared
  const { unconfirmedMaxMs, expiryLeewayMs } = limits
  const lifetimes = createLifetimes({ clock, unconfirmedMaxMs, expiryLeewayMs })
  let withdrawnAtMs: number | null = null
  let current = start(given.config)
  metrics.watchPdp(() => current.engine.pdpSilentSinceMs())

  function start(config: LoadedConfig): Running {
    const engine = createEngine(config, shared)
    const shadowed = config.file.routes.filter(({ shadow }) => shadow).map(({ id }) => id)
    metrics.shadowed(shadowed)
    if (shadowed.length > 0) log.warn({ event: 'routes_shadowed', routes: shadowed })
    metrics.loaded({ ok: true, hash: config.hash, atSeconds: clock() / 1_000 })
    engine.refreshKeys()
    const { enforcing, forwarding, metadata, proofNonce } = engine
    const { bodyBytesMax, subjectsInLog } = config.file
    const settings = { metadata, limits, bodyBytesMax, subjectsInLog, proofNonce }
    const operating = {
      metrics,
      log,
      lifetimes,
      draining: () => listener.draining(),
      isCurrent: () => current.engine === engine,
      judgeAgain: (permit: Permit, how: { readonly upgrade: boolean }) =>
        judgeAgain(permit, how, current.engine.enforcing),
    }
    return { engine, serving: { enforcing, forwarding, ...settings, ...operating } }
  }

  function withdraw(): number {
    withdrawnAtMs ??= performance.now()
    listener.withdraw()
    return withdrawnAtMs
  }

  function accept(
    client: ClientRequest,
    res: ClientAnswer,
    { expectsContinue = false, upgrade = null }: { expectsContinue?: boolean; upgrade?: Upgrade | null },
  ): void {
    const { engine, serving } = current
    engine.enter()
    // Of a WebSocket the connection ends it, not the answer.
    if (upgrade === null) res.once('close', engine.leave)
    else upgrade.socket.once('close', engine.leave)
    void serve(client, res, { expectsContinue, upgrade, deps: serving })
  }

  const listener = createListener({
    limits,
    certificate: given.config.material.tls,
    onRequest: (client, res, expectsContinue) => accept(client, res, { expectsContinue }),
    mayUpgrade: (req) => asksForWebSocket(req) && takesWebSocket(req, current.engine),
    onUpgrade: (client, res, upgrade) => accept(client, res, { upgrade }),
    onRefused(connection, code) {
      metrics.judged('', { decision: 'deny', reason: code, duration_ms: 0 })
      refuseRaw(connection, code)
    },
    onFlood: () => metrics.judged('', { decision: 'deny', reason: 'request_invalid', duration_ms: 0 }),
  })
  const refreshing = setInterval(() => current.engine.refreshKeys(), limits.keyRefreshMs).unref()

  return {
    listen: listener.listen,
    apply(config) {
      const { tls } = config.material
      if ((tls === null) !== (current.engine.config.material.tls === null))
        throw new ConfigError(['tls can only be added to a route file, or removed, with a restart'])
      if (tls !== null) listener.replaceCertificate(tls)
      const former = current.engine
      current = start(config)
      former.retire()
      lifetimes.judgeAgain()
    },
    notReady() {
      if (listener.draining()) return 'draining'
      const missing = current.engine.keyless()
      return missing.length === 0 ? pdpSilence(current.engine, clock()) : `no keys yet of ${missing.join(', ')}`
    },
    withdraw: () => void withdraw(),
    async close({ acceptMs } = { acceptMs: 0 }) {
      const startedMs = performance.now()
      clearInterval(refreshing)
      await delay(Math.max(0, withdraw() + acceptMs - startedMs))
      lifetimes.sendAway()
      const leftMs = limits.drainMs - (performance.now() - startedMs)
      await listener.close({ drainMs: Math.max(0, leftMs), onLate: () => lifetimes.cutAll('draining') })
      lifetimes.close()
      current.engine.retire()
    },
  }
}

function pdpSilence({ config, pdpSilentSinceMs }: Engine, nowMs: number): ProbeResult {
  const sinceMs = pdpSilentSinceMs()
  if (sinceMs === null || nowMs - sinceMs < SILENCE_MS) return null
  const note = `no PDP answers since ${new Date(sinceMs).toISOString()}`
  return config.file.routes.some(({ check }) => check === null) ? { note } : note
}

/** Any doubt is settled by the pipeline, for an ordinary request. */
function takesWebSocket(req: IncomingMessage, { enforcing }: Engine): boolean {
  try {
    const match = matchRequest(enforcing.routes, readInbound(http1Request(req)))
    return match.kind === 'route' && match.route.websocket
  } catch {
    return false
  }
}

function refuseRaw(connection: Duplex, code: ProblemCode): void {
  sendRawDenial(connection, describeDenial(code, {}, { requestId: randomUUID(), metadataUrl: null }))
}
