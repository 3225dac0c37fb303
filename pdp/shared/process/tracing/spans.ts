/** The span of what this process is doing now: it follows promises and callbacks, so that a statement knows its question. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Span, Tracing } from './tracing.ts'

export type Spans = Tracing & {
  /** Runs `work`, and all that it begins, within the span. */
  within<T>(span: Span, work: () => T): T
  /** Null: nothing that is traced. */
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
