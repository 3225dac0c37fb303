/** The span of the present work. It follows promises and callbacks, so that a database statement becomes part of its question's trace. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Span, Tracing } from './tracing.ts'

export type Spans = Tracing & {
  /** Runs `work`, with all that it begins, in the span. */
  within<T>(span: Span, work: () => T): T
  /** The present span; null: the work is not traced. */
  current(): Span | null
}

export function createSpans(tracing: Tracing): Spans {
  const storage = new AsyncLocalStorage<Span>()
  return {
    begin: tracing.begin,
    within: (span, work) => storage.run(span, work),
    current: () => storage.getStore() ?? null,
  }
}
