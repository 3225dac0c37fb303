/** A span for each question. Its parent is the span of the HTTP request, or the one that the caller names in the question. */
import type { Spans } from '../../../shared/process/tracing/spans.ts'
import { spanError } from '../../../shared/process/tracing/tracing.ts'
import type { AnswerQuestion } from './answer.ts'

export function traceAnswers(answer: AnswerQuestion, spans: Spans): AnswerQuestion {
  return async (token, question) => {
    const within = spans.current()
    const span = within?.child('decide', 'internal') ?? spans.begin('decide', 'server', question.traceparent ?? null)
    try {
      const answered = await spans.within(span, () => answer(token, question))
      span.set({
        'portcullis.decision_id': answered.decisionId,
        'portcullis.organization': answered.organization ?? '',
        'portcullis.permissions': answered.permissions.length,
        'portcullis.allowed': answered.permissions.filter(({ allowed }) => allowed).length,
        'portcullis.entitlements': answered.entitlements.size,
      })
      span.end()
      return answered
    } catch (err) {
      span.end(spanError(err))
      throw err
    }
  }
}
