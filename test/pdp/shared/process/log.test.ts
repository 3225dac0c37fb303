import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLog, type Log } from '../../../../pdp/shared/process/log.ts'

const START_MS = Date.parse('2026-01-02T03:04:05.006Z')

let log: Log
let times: string[]
beforeEach(() => {
  vi.useFakeTimers({ now: START_MS })
  times = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      times.push(JSON.parse(String(chunk)).time)
      done()
    },
  })
  log = createLog({ service: 'test', level: 'info', destination })
})
afterEach(() => void vi.useRealTimers())

test('each line says when it was written, those of one millisecond alike', () => {
  for (const ms of [0, 0, 1, 999]) {
    vi.setSystemTime(START_MS + ms)
    log.info({ event: 'x' })
  }
  expect(times).toEqual([
    '2026-01-02T03:04:05.006Z',
    '2026-01-02T03:04:05.006Z',
    '2026-01-02T03:04:05.007Z',
    '2026-01-02T03:04:06.005Z',
  ])
})

test('a clock that is set back is believed', () => {
  log.info({ event: 'x' })
  vi.setSystemTime(0)
  log.info({ event: 'x' })
  vi.setSystemTime(START_MS)
  log.info({ event: 'x' })
  expect(times).toEqual(['2026-01-02T03:04:05.006Z', '1970-01-01T00:00:00.000Z', '2026-01-02T03:04:05.006Z'])
})
