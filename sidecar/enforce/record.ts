/** Logs and counts what became of a request, under its request id. */
import { randomUUID } from 'node:crypto'
import type { ClientRequest } from '../http/client.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import { firstValue } from '../http/fields.ts'
import type { SubjectsInLog } from '../route-file/route-file.ts'
import { type DecisionLine, decisionLine } from './decision-log.ts'
import type { Outcome } from './enforce.ts'

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/
// W3C Trace Context section 3.2.
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/

/** The client's own id when it is safe to log, else a new one. The upstream and the client get it, too. */
export function requestIdOf({ raw }: Pick<ClientRequest, 'raw'>): string {
  const value = firstValue(raw, 'x-request-id')
  return value !== null && REQUEST_ID.test(value) ? value : randomUUID()
}

export type RecordDeps = {
  readonly metrics: { decided(route: string, line: DecisionLine): void }
  /** Never throws. */
  readonly log: { info(line: object): void; error(line: object): void }
  readonly subjectsInLog: SubjectsInLog
}

/** `door`: the gateway that asked; null: the request came to the data port. */
export function record(
  outcome: Outcome,
  about: {
    readonly client: Pick<ClientRequest, 'raw' | 'method' | 'version'>
    readonly address: string
    readonly requestId: string
    readonly durationMs: number
    readonly door: DoorProfile | null
  },
  { metrics, log, subjectsInLog }: RecordDeps,
): void {
  const { client, ...known } = about
  const traceId = TRACEPARENT.exec(firstValue(client.raw, 'traceparent') ?? '')?.[1] ?? null
  const { method, version } = client
  const line = decisionLine(outcome, { ...known, method, version, traceId, subjects: subjectsInLog })
  metrics.decided(line.route ?? '', line)
  log[line.reason === 'internal' ? 'error' : 'info'](line)
}
