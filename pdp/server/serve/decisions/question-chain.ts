/** Joins the steps around a question, from the outer to the inner: span, observers, wait, decision. */
import type { Spans } from '../../../shared/process/tracing/spans.ts'
import type { Admission } from '../authentication/admission.ts'
import { type AnswerQuestion, admitted } from './answer.ts'
import { type AnswerObserver, type Clocks, observeAnswers } from './observed-answers.ts'
import { traceAnswers } from './traced-answers.ts'

/** `spans`: null without tracing: no span is then made. */
export function createQuestionChain(
  ask: AnswerQuestion,
  by: {
    readonly admission: Admission
    readonly observers: readonly AnswerObserver[]
    readonly clocks: Clocks
    readonly spans: Spans | null
  },
): AnswerQuestion {
  const observed = observeAnswers(admitted(ask, by.admission), by.observers, by.clocks)
  return by.spans === null ? observed : traceAnswers(observed, by.spans)
}
