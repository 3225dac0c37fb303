/**
 * Posts spans to an OpenTelemetry collector (OTLP/HTTP with JSON) in batches. No request waits for it: spans that cannot be sent are
 * dropped, with a line in the log. It is our own code because the official library takes 20 MB and demands a newer Node than a
 * sidecar needs, while the JSON form of a span is one page of the specification.
 */
import { readAtMost } from '../../base/http-json.ts'
import type { Log } from '../log.ts'
import type { TracingSettings } from './settings.ts'
import { type Attributes, createTracing, type FinishedSpan, type Tracing } from './tracing.ts'

export type OpenTracing = Tracing & {
  /** Sends the spans that wait. */
  close(): Promise<void>
}

const WAITING_MAX = 4_096
const BATCH_MAX = 512
const EVERY_MS = 1_000
const ANSWER_BYTES_MAX = 65_536
const KINDS = { internal: 1, server: 2, client: 3 } as const
const STATUS_ERROR = 2

export function openTracing(settings: TracingSettings, { log }: { readonly log: Pick<Log, 'warn'> }): OpenTracing {
  const { url, headers, timeoutMs, resource, sampler } = settings
  let waiting: FinishedSpan[] = []
  let droppedCount = 0
  let sending: Promise<void> | null = null
  let failed = false
  let closing = false
  const timer = setInterval(flush, EVERY_MS).unref()

  function finish(span: FinishedSpan): void {
    if (waiting.length >= WAITING_MAX) droppedCount += 1
    else waiting.push(span)
    if (waiting.length >= BATCH_MAX) flush()
  }

  function drop(count: number, reason: string): void {
    log.warn({ event: 'spans_dropped', count: droppedCount + count, reason })
    droppedCount = 0
  }

  /** Sends spans, one request at a time, so that a slow collector fills nothing but `waiting`. */
  function flush(): void {
    if (sending !== null || waiting.length === 0) return
    const batch = waiting.slice(0, BATCH_MAX)
    waiting = waiting.slice(BATCH_MAX)
    sending = post(batch)
      .then(() => {
        failed = false
      })
      .catch((err: unknown) => {
        failed = true
        drop(batch.length, reasonOf(err))
      })
      .finally(() => {
        sending = null
        if (!closing && waiting.length >= BATCH_MAX) flush()
      })
  }

  async function post(spans: readonly FinishedSpan[]): Promise<void> {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(exportOf(spans, resource)),
    })
    if (answer.body !== null) await readAtMost(answer.body, ANSWER_BYTES_MAX)
    if (!answer.ok) throw new Error(`the collector answered ${answer.status}`)
  }

  return {
    ...createTracing({ sampler, finish }),
    async close() {
      clearInterval(timer)
      closing = true
      await sending
      failed = false
      while (waiting.length > 0 && !failed) {
        flush()
        await sending
      }
      if (waiting.length > 0) drop(waiting.length, 'the process ends')
    },
  }
}

/** An ExportTraceServiceRequest in its JSON form: ids in hexadecimal, 64-bit numbers as text. */
export function exportOf(spans: readonly FinishedSpan[], resource: Attributes): object {
  const scopeSpans = [{ scope: { name: 'portcullis' }, spans: spans.map(spanOf) }]
  return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans }] }
}

function spanOf({ traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error }: FinishedSpan): object {
  return {
    traceId,
    spanId,
    ...(parentId !== '' && { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf(attributes),
    ...(error !== null && { status: { code: STATUS_ERROR, message: error } }),
  }
}

const attributesOf = (attributes: Attributes): object[] =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

function anyValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

const nanoseconds = (ms: number): string => String(BigInt(Math.round(ms * 1_000)) * 1_000n)

function reasonOf(err: unknown): string {
  if (!(err instanceof Error)) return 'unknown error'
  return err.cause instanceof Error ? err.cause.message : err.message
}
