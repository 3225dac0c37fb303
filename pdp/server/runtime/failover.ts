/** Reports the database's server and its changes, by log lines and metrics about failovers. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ServerEvent } from '../../engine/store/postgres/connection/fence.ts'
import type { Log } from '../../shared/process/log.ts'

const RESTART =
  'If you restored an earlier state on purpose, restart every PDP. If not, the failover lost acknowledged writes: compare with the former primary before it is rewound, and set up synchronous replication'
const ADDRESS_BACK =
  'DATABASE_URL leads to a server that a newer primary has overtaken. Point it at the newer one. If you restored an earlier state on purpose, restart every PDP'

/** Logs a line at the beginning of each state: `primary`, or the reason why there is no primary. */
export function watchServers({ log, registry }: { readonly log: Log; readonly registry: Registry }) {
  const { timeline, refused, wentBack, leased } = failoverMetrics(registry)
  let state = ''
  const begins = (...next: readonly (string | number)[]): boolean => {
    if (next.join(' ') === state) return false
    state = next.join(' ')
    return true
  }
  function count(event: Exclude<ServerEvent, { readonly kind: 'lease' | 'leased' }>): void {
    if (event.kind === 'primary') timeline.set(event.timeline)
    else if (event.kind === 'history') wentBack.inc()
    else if (event.kind !== 'confirmed') refused.inc({ reason: event.kind })
    if (event.kind === 'overtaken' && event.isNew) wentBack.inc()
  }
  return (event: ServerEvent): void => {
    if (event.kind === 'leased') {
      leased.inc(event.questions)
      return
    }
    if (event.kind === 'lease') {
      if (event.ended === null) log.info({ event: 'lease_began' })
      else log.info({ event: 'lease_ended', reason: event.ended })
      return
    }
    count(event)
    if (event.kind === 'history') {
      const { log: name, revision, known } = event
      log.error({ event: 'history_went_back', log: name, revision, known_revision: known, reason: RESTART })
    } else if (event.kind === 'unreachable') {
      if (begins('unreachable')) log.warn({ event: 'database_unreachable', reason: reasonOf(event.error) })
    } else if (event.kind === 'standby') {
      if (begins('standby', event.address)) log.warn({ event: 'database_standby', address: event.address })
    } else {
      const { kind, address, timeline: number } = event
      const server = { address, timeline: number }
      if (kind === 'overtaken') {
        const known = { known_timeline: event.latest }
        if (begins(kind, address, number)) log.warn({ event: 'primary_overtaken', ...server, ...known })
        if (event.isNew) log.error({ event: 'history_went_back', ...server, ...known, reason: ADDRESS_BACK })
      } else if (kind === 'unconfirmed') {
        if (begins(kind, address, number)) log.warn({ event: 'primary_unconfirmed', ...server, reason: event.reason })
      } else if (kind === 'confirmed' || state !== `unconfirmed ${address} ${number}`) {
        if (begins('primary', address, number)) log.info({ event: 'database_primary', ...server })
      }
    }
  }
}

function failoverMetrics(registry: Registry) {
  const timeline = new Gauge({
    name: 'portcullis_database_timeline',
    help: 'Timeline of the latest primary that this process has seen. It rises with each failover, and differs between PDPs for seconds at most.',
    registers: [registry],
  })
  const refused = new Counter({
    name: 'portcullis_database_refused_total',
    help: 'Servers that were given up, by reason: overtaken by a newer primary, a standby, unreachable, or without a heartbeat at its standby.',
    labelNames: ['reason'],
    registers: [registry],
  })
  const wentBack = new Counter({
    name: 'portcullis_history_went_back_total',
    help: 'Readings of a lower revision or timeline than this process had read before.',
    registers: [registry],
  })
  const leased = new Counter({
    name: 'portcullis_leased_questions_total',
    help: 'Questions whose positions came from memory, without a statement (PORTCULLIS_LEASE).',
    registers: [registry],
  })
  for (const reason of ['overtaken', 'standby', 'unreachable', 'unconfirmed']) refused.inc({ reason }, 0)
  return { timeline, refused, wentBack, leased }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? String(error.code) : error.message
}
