/** The sidecar's metrics. Label values come from the route file or a fixed set, never from requests. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { DecisionLine } from '../enforce/decision-log.ts'
import type { ItemCount } from '../http/edited-answer.ts'
import type { SignInStep } from '../sign-in/context.ts'

export type Metrics = {
  /** A request was decided. `route` is the route's id, or empty; `decision` and `reason` are those of the decision log. */
  decided(route: string, line: DecisionLine): void
  forwarded(route: string, status: number): void
  /** Items of an answer were kept and left out; in shadow mode, they would have been left out. */
  filtered(route: string, count: ItemCount, shadow: boolean): void
  /** An open exchange was ended because its permission ended. */
  cancelled(route: string, reason: string): void
  /** A step of a sign-in ended in this way. `issuer`: an issuer of the route file, or empty. */
  signIn(step: SignInStep): void
  pdpConnected(address: string, open: boolean): void
  /** How far this clock is behind the clock of an issuer or a PDP; 0: no relevant difference. */
  clockSkew(against: string, behindSeconds: number): void
  /** `silentSinceMs`: called when metrics are read; the time since which no PDP answers, or null while one does. */
  watchPdp(silentSinceMs: () => number | null): void
  /** A configuration was loaded or rejected. `hash`: the digest of the active route file. */
  loaded(load: { readonly ok: boolean; readonly hash: string; readonly atSeconds: number }): void
  /** Names the routes in shadow mode, whose denials are only logged. */
  shadowed(routes: readonly string[]): void
}

/** A metric that cannot be counted must not deny a request, so these functions never throw. */
export function createMetrics(registry: Registry): Metrics {
  return unfailing(createCounters(registry))
}

function unfailing(metrics: Metrics): Metrics {
  const guarded =
    <Words extends unknown[]>(count: (...words: Words) => void) =>
    (...words: Words): void => {
      try {
        count(...words)
      } catch {
        // The error shows only as a missing count.
      }
    }
  return {
    decided: guarded(metrics.decided),
    forwarded: guarded(metrics.forwarded),
    filtered: guarded(metrics.filtered),
    cancelled: guarded(metrics.cancelled),
    signIn: guarded(metrics.signIn),
    pdpConnected: guarded(metrics.pdpConnected),
    clockSkew: guarded(metrics.clockSkew),
    watchPdp: guarded(metrics.watchPdp),
    loaded: guarded(metrics.loaded),
    shadowed: guarded(metrics.shadowed),
  }
}

const PREFIX = 'portcullis_sidecar_'

function createCounters(registry: Registry): Metrics {
  const registers = [registry]
  const decisions = new Counter({
    name: `${PREFIX}requests_total`,
    help: 'Requests by route, decision and reason; door is the profile of the gateway that asked, if one did',
    labelNames: ['route', 'decision', 'outcome', 'door'] as const,
    registers,
  })
  const lastRefusal = new Gauge({
    name: `${PREFIX}last_refusal_timestamp_seconds`,
    help: 'Time of the last request that was refused, or in shadow mode would have been, with its route and reason',
    labelNames: ['route', 'outcome'] as const,
    registers,
  })
  const durations = new Histogram({
    name: `${PREFIX}enforcement_seconds`,
    help: 'Time from the end of the header section to the decision',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers,
  })
  const items = new Counter({
    name: `${PREFIX}answer_items_total`,
    help: 'Items of filtered answers by route; outcome is kept, removed or, in shadow mode, would_remove',
    labelNames: ['route', 'outcome'] as const,
    registers,
  })
  const answers = new Counter({
    name: `${PREFIX}upstream_responses_total`,
    help: 'Responses of the upstream by route and status class',
    labelNames: ['route', 'class'] as const,
    registers,
  })
  const cancellations = new Counter({
    name: `${PREFIX}cuts_total`,
    help: 'Open exchanges that were ended because their permission ended, by route and reason',
    labelNames: ['route', 'reason'] as const,
    registers,
  })
  const signIns = new Counter({
    name: `${PREFIX}sign_in_steps_total`,
    help: 'Steps of sign-ins by issuer and outcome: sent to the issuer, returned from it, tokens renewed, signed out',
    labelNames: ['issuer', 'step', 'outcome'] as const,
    registers,
  })
  return {
    decided(route, { decision, reason, duration_ms: durationMs, door }) {
      decisions.inc({ route, decision, outcome: reason, ...(door !== undefined && { door }) })
      durations.observe(durationMs / 1_000)
      if (decision !== 'deny' && decision !== 'shadow') return
      lastRefusal.reset()
      lastRefusal.setToCurrentTime({ route, outcome: reason })
    },
    filtered(route, { kept, removed }, shadow) {
      items.inc({ route, outcome: 'kept' }, kept)
      items.inc({ route, outcome: shadow ? 'would_remove' : 'removed' }, removed)
    },
    forwarded: (route, status) => answers.inc({ route, class: `${Math.floor(status / 100)}xx` }),
    cancelled: (route, reason) => cancellations.inc({ route, reason }),
    signIn: ({ issuer, step, outcome }) => signIns.inc({ issuer, step, outcome }),
    ...createGauges(registry),
  }
}

function createGauges(
  registry: Registry,
): Pick<Metrics, 'pdpConnected' | 'clockSkew' | 'watchPdp' | 'loaded' | 'shadowed'> {
  const registers = [registry]
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [...labelNames], registers })
  let silentSinceMs: () => number | null = () => null
  new Gauge({
    name: `${PREFIX}pdp_silent_since_timestamp_seconds`,
    help: 'Time since which no PDP address answers; 0 while one does',
    registers,
    collect() {
      this.set((silentSinceMs() ?? 0) / 1_000)
    },
  })
  const skews = gauge(
    'clock_behind_seconds',
    'Seconds by which the clock of this server is behind; negative when it is ahead',
    ['against'],
  )
  const pdpConnections = gauge('pdp_connected', '1 while the stream to this PDP address is open', ['address'])
  const config = gauge('config_info', '1 for the SHA-256 hash of the active route file', ['hash'])
  const reloadOk = gauge('config_last_reload_successful', '1 when the last load of the configuration succeeded', [])
  const reloadAt = gauge(
    'config_last_reload_timestamp_seconds',
    'Time at which the active configuration was loaded',
    [],
  )
  const shadows = gauge('shadowed_route', '1 for each route in shadow mode, whose denials are not enforced', ['route'])

  return {
    pdpConnected: (address, open) => pdpConnections.set({ address }, open ? 1 : 0),
    clockSkew: (against, behindSeconds) => skews.set({ against }, behindSeconds),
    watchPdp(since) {
      silentSinceMs = since
    },
    loaded({ ok, hash, atSeconds }) {
      reloadOk.set(ok ? 1 : 0)
      if (!ok) return
      config.reset()
      config.set({ hash }, 1)
      reloadAt.set(atSeconds)
    },
    shadowed(routes) {
      shadows.reset()
      for (const route of routes) shadows.set({ route }, 1)
    },
  }
}
