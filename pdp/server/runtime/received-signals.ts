/** The receiver of other issuers' security events in a running PDP: its metrics, and a note for readiness. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { createGuardedPost } from '../../shared/base/guarded-post.ts'
import type { ProbeResult } from '../../shared/process/admin-listener.ts'
import { guardedFetch } from '../../signals/receiver/guarded-fetch.ts'
import type { IntakeOutcome } from '../../signals/receiver/intake.ts'
import { type Receiver, type ReceiverDeps, startReceiver } from '../../signals/receiver/receiver.ts'
import type { StreamState } from '../../signals/receiver/streams.ts'
import type { PdpConfig } from './config.ts'
import { sharedReading } from './metrics.ts'

/** The greatest age of states in a scrape. */
const STATES_AGE_MS = 15_000
const NAMED_MAX = 3

export type Receiving = Pick<Receiver, 'push' | 'close'> & {
  /** A note for the answer of readiness. It changes no status, since a PDP decides without these events, too. */
  note(): Promise<ProbeResult>
}

export function receiveSignals(
  { issuer, internalHosts, proxy }: PdpConfig,
  deps: Pick<ReceiverDeps, 'sql' | 'masterKeys' | 'log'> & { readonly registry: Registry },
): Receiving {
  const { sql, masterKeys, log, registry } = deps
  const calls = createGuardedPost({ internalHosts, proxy })
  const receiver = startReceiver({
    sql,
    masterKeys,
    log,
    issuer,
    fetch: guardedFetch(calls),
    clock: Date.now,
    onOutcome: receivedSignals(registry),
  })
  streamMetrics(registry, receiver.states)
  return {
    push: receiver.push,
    note: () => silenceNote(receiver.states),
    async close() {
      await receiver.close()
      calls.close()
    },
  }
}

/** Counts the events that arrive, by outcome. */
export function receivedSignals(registry: Registry): (issuer: string, outcome: IntakeOutcome) => void {
  const received = new Counter({
    name: 'portcullis_received_signals_total',
    help: 'Security events from transmitters of other issuers, by outcome. ended: tokens. deferred: the transmitter will send it again.',
    labelNames: ['issuer', 'outcome'],
    registers: [registry],
  })
  return (issuer, outcome) => received.inc({ issuer, outcome })
}

/** Metrics of the streams. While the database does not answer, they keep their last values. */
export function streamMetrics(registry: Registry, states: () => Promise<readonly StreamState[]>): void {
  const fresh = sharedReading(STATES_AGE_MS, async () => set(await states()))
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({
      name: `portcullis_received_stream_${name}`,
      help,
      labelNames: ['issuer'],
      registers: [registry],
      collect: async () => void (await fresh()),
    })
  const silent = gauge('silent', '1 when the transmitter of the issuer has shown no sign of life for too long.')
  const heard = gauge('heard_timestamp_seconds', 'Latest sign of life of the transmitter of the issuer; 0: none yet.')
  const enabled = gauge('enabled', '0 when the transmitter of the issuer has paused or disabled its stream.')

  function set(found: readonly StreamState[]): void {
    for (const metric of [silent, heard, enabled]) metric.reset()
    for (const { issuer, silent: isSilent, status, heard_at: at } of found) {
      silent.set({ issuer }, isSilent ? 1 : 0)
      heard.set({ issuer }, at === null ? 0 : Date.parse(at) / 1_000)
      enabled.set({ issuer }, status === 'enabled' ? 1 : 0)
    }
  }
}

async function silenceNote(states: () => Promise<readonly StreamState[]>): Promise<ProbeResult> {
  const silent = (await states()).filter((state) => state.silent).map(({ issuer }) => issuer)
  if (silent.length === 0) return null
  const more = silent.length > NAMED_MAX ? ` and ${silent.length - NAMED_MAX} more` : ''
  return { note: `no security events from ${silent.slice(0, NAMED_MAX).join(', ')}${more}` }
}
