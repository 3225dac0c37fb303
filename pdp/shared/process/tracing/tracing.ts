/** Spans in the way of OpenTelemetry, with the context of W3C Trace Context. The exporter is otlp.ts. */
import { randomBytes } from 'node:crypto'

export type Attributes = { readonly [name: string]: string | number | boolean }
/** `server`: answers a request. `client`: calls another server. `internal`: neither. */
export type SpanKind = 'server' | 'client' | 'internal'
export type Span = {
  /** The field for requests to other servers, by which their spans become children of this span. */
  readonly traceparent: string
  child(name: string, kind: SpanKind, attributes?: Attributes): Span
  rename(name: string): void
  set(attributes: Attributes): void
  /** Ends the span. `error`: the failure in the words of `spanError`; null: none. Later calls do nothing. */
  end(error?: string | null): void
}
export type FinishedSpan = {
  /** Hexadecimal: 16 bytes, 8 bytes, 8 bytes; the last one empty for a root. */
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly name: string
  readonly kind: SpanKind
  /** The span's start in milliseconds since the epoch, with a fraction. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly error: string | null
}
export type Tracing = {
  /** `parent`: the traceparent of the request; what is not one begins a trace. */
  begin(name: string, kind: SpanKind, parent: string | null): Span
}
/** How often a trace that begins here is recorded, and whether a caller's own choice wins. */
export type Sampler = { readonly ratio: number; readonly parentBased: boolean }

// https://www.w3.org/TR/trace-context/#traceparent-header: later versions may append fields; ff is no version.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
const SAMPLED = 1

type Context = { readonly traceId: string; readonly spanId: string; readonly sampled: boolean }

export function createTracing(options: {
  readonly sampler: Sampler
  readonly finish: (span: FinishedSpan) => void
  /** The present time in milliseconds since the epoch, with a fraction. */
  readonly clock?: () => number
}): Tracing {
  const { sampler, finish, clock = () => performance.timeOrigin + performance.now() } = options

  function open(name: string, kind: SpanKind, from: { context: Context; parentId: string; given?: Attributes }): Span {
    const { context, parentId } = from
    const startMs = context.sampled ? clock() : 0
    let called = name
    let attributes = from.given ?? {}
    let over = !context.sampled
    return {
      traceparent: `00-${context.traceId}-${context.spanId}-0${context.sampled ? SAMPLED : 0}`,
      child: (childName, childKind, given) =>
        open(childName, childKind, {
          context: { ...context, spanId: newId(8) },
          parentId: context.spanId,
          ...(given !== undefined && { given }),
        }),
      rename(newName) {
        called = newName
      },
      set(more) {
        attributes = { ...attributes, ...more }
      },
      end(error = null) {
        if (over) return
        over = true
        const { traceId, spanId } = context
        finish({ traceId, spanId, parentId, name: called, kind, startMs, endMs: clock(), attributes, error })
      },
    }
  }

  return {
    begin(name, kind, parent) {
      const [, traceId = null, parentId = '', flags = ''] = TRACEPARENT.exec(parent ?? '') ?? []
      const id = traceId ?? newId(16)
      const chosen = traceId !== null && sampler.parentBased ? (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED : null
      const context = { traceId: id, spanId: newId(8), sampled: chosen ?? isWithin(id, sampler.ratio) }
      return open(name, kind, { context, parentId })
    },
  }
}

/** The error's code, or its type. Its message may contain names from the question, which spans must not have. */
export function spanError(err: unknown): string {
  if (!(err instanceof Error)) return 'unknown'
  return 'code' in err && typeof err.code === 'string' ? err.code : err.name
}

const newId = (bytes: number): string => randomBytes(bytes).toString('hex')

/** True if the trace is recorded. The random part of its id decides, so that all programs of a trace decide alike. */
const isWithin = (traceId: string, ratio: number): boolean =>
  ratio >= 1 || Number.parseInt(traceId.slice(-12), 16) / 2 ** 48 < ratio
