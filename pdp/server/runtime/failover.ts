/** Says which server the database is, and when that changes: log lines and metrics of failovers. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ServerEvent } from '../../engine/store/postgres/connection/fence.ts'
import type { Log } from '../../shared/process/log.ts'

const RESTART =
  'If you restored an earlier state on purpose, restart every PDP. If not, the failover lost acknowledged writes: compare with the former primary before it is rewound, and set up synchronous replication'
const ADDRESS_BACK =
  'DATABASE_URL leads to a server that a newer primary has overtaken. Point it at the newer one. If you restored an earlier state on purpose, restart every PDP'

/** One line when a state begins: `primary`, or why there is none. */
export function watchServers({ log, registry }: { readonly log: Log; readonly registry: Registry }) {
  const timeline = new Gauge({
    name: 'portcullis_database_timeline',
    help: 'Timeline of the latest primary that this process has seen. It rises with each failover, and differs between PDPs for seconds at most.',
    registers: [registry],
  })
  const refused = new Counter({
    name: 'portcullis_database_refused_total',
    help: 'Connections that were given up, by reason: the server was overtaken by a newer primary, is a standby, or is unreachable.',
    labelNames: ['reason'],
    registers: [registry],
  })
  const wentBack = new Counter({
    name: 'portcullis_history_went_back_total',
    help: 'Readings of a lower revision or timeline than this process had read before.',
    registers: [registry],
  })
  for (const reason of ['overtaken', 'standby', 'unreachable']) refused.inc({ reason }, 0)
  let state = ''
  const begins = (next: string): boolean => {
    if (next === state) return false
    state = next
    return true
  }
  return (event: ServerEvent): void => {
    switch (event.kind) {
      case 'primary': {
        const { address, timeline: number } = event
        timeline.set(number)
        if (begins(`primary ${address} ${number}`)) log.info({ event: 'database_primary', address, timeline: number })
        return
      }
      case 'standby':
        refused.inc({ reason: 'standby' })
        if (begins(`standby ${event.address}`)) log.warn({ event: 'database_standby', address: event.address })
        return
      case 'unreachable':
        refused.inc({ reason: 'unreachable' })
        if (begins('unreachable')) log.warn({ event: 'database_unreachable', reason: reasonOf(event.error) })
        return
      case 'overtaken': {
        const { address, timeline: number, latest, isNew } = event
        refused.inc({ reason: 'overtaken' })
        if (begins(`overtaken ${address} ${number}`))
          log.warn({ event: 'primary_overtaken', address, timeline: number, latest_timeline: latest })
        if (!isNew) return
        wentBack.inc()
        log.error({
          event: 'history_went_back',
          address,
          timeline: number,
          known_timeline: latest,
          reason: ADDRESS_BACK,
        })
        return
      }
      case 'history': {
        const { log: name, revision, known } = event
        wentBack.inc()
        log.error({ event: 'history_went_back', log: name, revision, known_revision: known, reason: RESTART })
      }
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? String(error.code) : error.message
}
