/** Spans and the traceparent of W3C Trace Context. */
import { describe, expect, test } from 'vitest'
import { createTracing, type FinishedSpan, type Sampler } from '../../../../../pdp/shared/process/tracing/tracing.ts'

const ALWAYS: Sampler = { ratio: 1, parentBased: true }
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const GIVEN = `00-${TRACE}-${PARENT}-01`

function open(sampler = ALWAYS) {
  const finished: FinishedSpan[] = []
  let nowMs = 1_000.25
  const tracing = createTracing({
    sampler,
    finish: (span) => finished.push(span),
    clock: () => {
      nowMs += 1
      return nowMs
    },
  })
  return { tracing, finished }
}

test('a request with a traceparent continues its trace, and so does what it asks', () => {
  const { tracing, finished } = open()
  const request = tracing.begin('GET', 'server', GIVEN)
  const asked = request.child('ask', 'client', { a: 1 })
  expect(request.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
  expect(asked.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
  asked.end('no answer')
  request.rename('GET /invoices/{id}')
  request.set({ b: true })
  request.end()
  const [first, second] = finished
  expect(first).toMatchObject({
    traceId: TRACE,
    parentId: second?.spanId,
    name: 'ask',
    kind: 'client',
    error: 'no answer',
  })
  expect(second).toMatchObject({ traceId: TRACE, parentId: PARENT, name: 'GET /invoices/{id}', error: null })
  expect(second?.attributes).toEqual({ b: true })
  expect(second?.endMs).toBeGreaterThan(first?.startMs ?? Number.POSITIVE_INFINITY)
})

test('a span ends once', () => {
  const { tracing, finished } = open()
  const span = tracing.begin('GET', 'server', null)
  span.end()
  span.end('late')
  expect(finished).toMatchObject([{ error: null, parentId: '' }])
})

test.each([
  ['nothing', null],
  ['an empty text', ''],
  ['a text', 'x'],
  ['version ff', GIVEN.replace(/^00/, 'ff')],
  ['capital letters', GIVEN.toUpperCase()],
  ['an id of the trace that is zero', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ['an id of the parent that is zero', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['an id that is too short', `00-${TRACE.slice(1)}-${PARENT}-01`],
  ['text behind it', `${GIVEN}x`],
  ['text before it', `x${GIVEN}`],
  ['no flags', GIVEN.slice(0, -3)],
  ['a line break', `${GIVEN}\nx`],
])('%s begins a trace of its own', (_what, given) => {
  const { tracing, finished } = open()
  tracing.begin('GET', 'server', given).end()
  expect(finished).toMatchObject([{ parentId: '' }])
  expect(finished[0]?.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(finished[0]?.traceId).not.toBe(TRACE)
})

test('a traceparent of a later version counts as far as it is known', () => {
  const { tracing, finished } = open()
  tracing.begin('GET', 'server', `cc-${TRACE}-${PARENT}-01-what-the-future-brings`).end()
  expect(finished).toMatchObject([{ traceId: TRACE, parentId: PARENT }])
})

describe('sampling', () => {
  test('a caller that does not record is followed, and the context goes on', () => {
    const { tracing, finished } = open()
    const span = tracing.begin('GET', 'server', `00-${TRACE}-${PARENT}-00`)
    expect(span.child('ask', 'client').traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
    span.end()
    expect(finished).toEqual([])
  })

  test.each([
    [{ ratio: 0, parentBased: true }, GIVEN, 1],
    [{ ratio: 0, parentBased: false }, GIVEN, 0],
    [{ ratio: 1, parentBased: false }, GIVEN.replace(/01$/, '00'), 1],
    [{ ratio: 0, parentBased: true }, null, 0],
    [{ ratio: 1, parentBased: true }, null, 1],
  ])('%o of %s records %i', (sampler, given, count) => {
    const { tracing, finished } = open(sampler)
    tracing.begin('GET', 'server', given).end()
    expect(finished).toHaveLength(count)
  })

  test('a ratio takes a part of the traces, the same ones everywhere', () => {
    const one = open({ ratio: 0.25, parentBased: false })
    const other = open({ ratio: 0.25, parentBased: false })
    for (let at = 0; at < 256; at += 1) {
      const parent = `00-${TRACE.slice(0, 20)}${at.toString(16).padStart(2, '0')}${TRACE.slice(22)}-${PARENT}-01`
      one.tracing.begin('GET', 'server', parent).end()
      other.tracing.begin('GET', 'server', parent).end()
    }
    expect(one.finished.map(({ traceId }) => traceId)).toEqual(other.finished.map(({ traceId }) => traceId))
    expect(one.finished).toHaveLength(64)
  })
})
