/** Logs and counts what became of a request, under its request id. */
import { randomUUID } from 'node:crypto'
import { isRequestId } from '../../pdp/shared/domain/names.ts'
import type { Span } from '../../pdp/shared/process/tracing/tracing.ts'
import type { ClientRequest } from '../http/client-request.ts'
import type { DoorProfile } from '../http/door-fields.ts'
import { firstValue } from '../http/fields.ts'
import type { PathsInLog, SubjectsInLog } from '../route-file/route-file.ts'
import { type DecisionLine, decisionLine } from './decision-log.ts'
import type { Outcome } from './enforce.ts'

// Matches a traceparent (W3C Trace Context section 3.2).
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/

/** The client's request id if it is safe to log, else a new id. The upstream and the client get the same id. */
export function requestIdOf({ raw }: Pick<ClientRequest, 'raw'>): string {
  const value = firstValue(raw, 'x-request-id')
  return value !== null && isRequestId(value) ? value : randomUUID()
}

export type RecordDeps = {
  readonly metrics: { decided(route: string, line: DecisionLine): void }
  /** Never throws. */
  readonly log: { info(line: object): void; error(line: object): void }
  readonly subjectsInLog: SubjectsInLog
  readonly pathsInLog: PathsInLog
  /** True if the line of this allowed request is to be written. */
  readonly logsAllowed: () => boolean
}

/** The end of the answer to an allowed request. */
export type AnswerEnd = Pick<DecisionLine, 'status' | 'bytes' | 'removed'>

/** Returns the function that writes the request's log line, once. `door`: the gateway that asked; null: the data port. */
export function record(
  outcome: Outcome,
  about: {
    readonly client: Pick<ClientRequest, 'raw' | 'method' | 'version' | 'target'>
    readonly address: string
    readonly requestId: string
    readonly durationMs: number
    readonly door: DoorProfile | null
    /** The request's trace span; null: no spans are collected. */
    readonly span: Span | null
  },
  { metrics, log, subjectsInLog, pathsInLog, logsAllowed }: RecordDeps,
): (end: AnswerEnd) => void {
  const { client, span } = about
  const traceparent = span === null ? firstValue(client.raw, 'traceparent') : span.traceparent
  const traceId = TRACEPARENT.exec(traceparent ?? '')?.[1] ?? null
  const line = decisionLine(outcome, about, { traceId, subjects: subjectsInLog, paths: pathsInLog })
  metrics.decided(line.route ?? '', line)
  if (span !== null) noteDecision(span, line)
  let isWritten = line.decision === 'allow' && !logsAllowed()
  return (end) => {
    if (!isWritten) log[line.reason === 'internal' ? 'error' : 'info']({ ...line, ...end })
    isWritten = true
  }
}

/** Adds the decision to the span, without the path, since paths may be omitted from logs. */
function noteDecision(span: Span, { method, route, decision, reason, request_id }: DecisionLine): void {
  const path = route === null ? null : route.slice(route.indexOf(' ') + 1)
  // The method is a known one or `other`: a client must not invent span names.
  span.rename(path === null ? method : `${method} ${path}`)
  if (path !== null) span.set({ 'http.route': path })
  span.set({ 'http.request.method': method })
  span.set({ 'portcullis.decision': decision, 'portcullis.reason': reason, 'portcullis.request_id': request_id })
}
