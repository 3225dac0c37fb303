import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLog, type Log } from '../../../../pdp/shared/process/log.ts'

let log: Log
let lines: { [name: string]: unknown }[]
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  lines = []
  log = createLog({
    service: 'test',
    level: 'info',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  })
})
afterEach(() => void vi.useRealTimers())
const written = (): unknown[] => lines.map(({ event, repeated, request_id: id }) => [event, repeated, id])
const fail = (id: string): Error => new Error(`the query of ${id} failed`)

test('of errors that repeat the first is written with its stack, and every ten seconds how many followed', () => {
  for (let at = 0; at < 1_000; at += 1)
    log.error({ event: 'request_failed', request_id: `r${at}`, err: fail(`r${at}`) })
  expect(written()).toEqual([['request_failed', undefined, 'r0']])
  expect(JSON.stringify(lines[0])).toContain('repeated-lines.test.ts')
  vi.advanceTimersByTime(10_000)
  expect(written().slice(1)).toEqual([['request_failed', 999, 'r999']])
  expect(lines[1]).toMatchObject({ level: 'error', seconds: 10, err: 'Error: the query of r999 failed' })
  log.error({ event: 'request_failed', request_id: 'later', err: fail('x') })
  vi.advanceTimersByTime(10_000)
  log.error({ event: 'request_failed', request_id: 'last', err: fail('x') })
  vi.advanceTimersByTime(30_000)
  expect(lines.reduce((sum, { repeated }) => sum + (typeof repeated === 'number' ? repeated : 1), 0)).toBe(1_002)
})

test('after ten quiet seconds the next is written in full again', () => {
  for (let at = 0; at < 3; at += 1) {
    log.warn({ event: 'x', request_id: at })
    vi.advanceTimersByTime(10_000)
  }
  expect(written()).toEqual([0, 1, 2].map((at) => ['x', undefined, at]))
})

test('lines that say different things are not taken for each other', () => {
  log.error({ event: 'request_failed', err: new TypeError('a') })
  log.error({ event: 'request_failed', err: new RangeError('a') })
  log.error({ event: 'request_failed', code: 'store_unavailable' })
  log.warn({ event: 'pdp_unreachable', address: '10.0.0.1:1', reason: 'not connected after 3000 ms' })
  log.warn({ event: 'pdp_unreachable', address: '[::a]:1', reason: 'not connected after 3000 ms' })
  log.warn({ event: 'upstream_failed', route: 'GET /a', reason: 'no' })
  log.warn({ event: 'upstream_failed', route: 'GET /b', reason: 'no' })
  expect(lines.length).toBe(7)
})

test('decisions, what is well, and lines without an event are all written', () => {
  for (let at = 0; at < 20; at += 1) {
    log.error({ event: 'decision', reason: 'internal' })
    log.info({ event: 'pdp_connected', address: 'a' })
    log.warn('plain text')
  }
  expect(lines.length).toBe(60)
})

test('more kinds than are told apart are counted by their event', () => {
  for (let at = 0; at < 5_000; at += 1) log.warn({ event: 'x', reason: String.fromCodePoint(0x4e00 + at) })
  expect(lines.length).toBeLessThanOrEqual(501)
  vi.advanceTimersByTime(10_000)
  const [repeated] = lines.map((line) => line.repeated).filter((count) => count !== undefined)
  expect(lines.filter((line) => line.repeated === undefined).length + Number(repeated)).toBe(5_000)
})
