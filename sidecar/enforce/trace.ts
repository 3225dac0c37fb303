/** Spans of a request: the request itself, its question to the PDP, and its way to the upstream. Nothing here decides. */
import { type Span, spanError, type Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { firstValue } from '../http/fields.ts'
import type { DecisionLine } from './decision-log.ts'
import type { EnforceDeps } from './enforce.ts'

/** Null: nobody collects spans. The name gets the route once it is known. */
export function beginSpan(
  tracing: Tracing | null,
  { raw, method }: Pick<ClientRequest, 'raw' | 'method'>,
): Span | null {
  return tracing === null ? null : tracing.begin(method, 'server', firstValue(raw, 'traceparent'))
}

/** The same, with a span for each question to the PDP, whose own spans are below it. */
export function withSpan(deps: EnforceDeps, span: Span | null): EnforceDeps {
  if (span === null) return deps
  const { pdp } = deps
  return {
    ...deps,
    pdp: {
      watch: pdp.watch,
      async ask(question) {
        const asking = span.child('portcullis.v1.DecisionService/DecideStream', 'client', { 'rpc.system': 'grpc' })
        try {
          const answer = await pdp.ask({ ...question, traceparent: asking.traceparent })
          asking.end()
          return answer
        } catch (err) {
          asking.end(spanError(err))
          throw err
        }
      },
    },
  }
}

/** What was decided. The path is left out, because it holds what the logs do not. */
export function noteDecision(span: Span, { method, route, decision, reason, request_id }: DecisionLine): void {
  const path = route === null ? null : route.slice(route.indexOf(' ') + 1)
  // A method of the client's own making would be a name of its own in every list of spans.
  span.rename(path === null ? method : `${method} ${path}`)
  if (path !== null) span.set({ 'http.route': path })
  span.set({ 'http.request.method': method })
  span.set({ 'portcullis.decision': decision, 'portcullis.reason': reason, 'portcullis.request_id': request_id })
}
