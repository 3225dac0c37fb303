/** Records each question and its answer: in the log, among the latest decisions, and in metrics. */
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { Answer, AnswerQuestion, Question } from './answer.ts'

/** A question with its answer and times, which include its wait. */
export type Observed = {
  readonly token: TokenState
  readonly question: Question
  readonly answer: Answer
  /** The question's arrival in milliseconds since the epoch. */
  readonly startedMs: number
  readonly durationMs: number
}
export type AnswerObserver = {
  answered(observed: Observed): void
  failed?(question: Question, error: unknown, durationMs: number): void
}
export type Clocks = {
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Monotonic milliseconds, with fractions. */
  readonly monotonic: () => number
}

/** Calls all observers in one step, because each additional promise costs as much as a simple check. */
export function observeAnswers(
  answer: AnswerQuestion,
  observers: readonly AnswerObserver[],
  { clock, monotonic }: Clocks,
): AnswerQuestion {
  return async (token, question) => {
    const startedMs = clock()
    const beganMs = monotonic()
    let found: Answer
    try {
      found = await answer(token, question)
    } catch (err) {
      for (const observer of observers) observer.failed?.(question, err, monotonic() - beganMs)
      throw err
    }
    const observed = { token, question, answer: found, startedMs, durationMs: monotonic() - beganMs }
    for (const observer of observers) observer.answered(observed)
    return found
  }
}
