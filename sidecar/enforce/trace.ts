/** Trace spans of a request and of its question to the PDP. They change no decision. */
import { type Span, spanError, type Tracing } from '../../pdp/shared/process/tracing/tracing.ts'
import type { ClientRequest } from '../http/client-request.ts'
import { firstValue } from '../http/fields.ts'
import type { PdpClient } from '../pdp-client/client.ts'
import type { PdpAnswer, PdpQuestion } from '../pdp-client/question.ts'

/** Begins the span of a request, which is renamed when the route is known. Null: no spans are collected. */
export function beginSpan(
  tracing: Tracing | null,
  { raw, method }: Pick<ClientRequest, 'raw' | 'method'>,
): Span | null {
  return tracing === null ? null : tracing.begin(method, 'server', firstValue(raw, 'traceparent'))
}

/** Asks the PDP within its own span, so that the PDP's spans become its children. Rejects as `ask` does. */
export async function askTraced(pdp: Pick<PdpClient, 'ask'>, question: PdpQuestion, span: Span): Promise<PdpAnswer> {
  const asking = span.child('portcullis.v1.DecisionService/DecideStream', 'client', { 'rpc.system': 'grpc' })
  try {
    const answer = await pdp.ask({ ...question, traceparent: asking.traceparent })
    asking.end()
    return answer
  } catch (err) {
    asking.end(spanError(err))
    throw err
  }
}
