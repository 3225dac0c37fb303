import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createClockSkew } from '../../../sidecar/runtime/clock-skew.ts'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const NOW_MS = Date.parse('2026-01-02T03:04:05.900Z')
const MINUTES_MS = 5 * 60_000

describe('a Date field', () => {
  const heard = (date: string, { askedMs = NOW_MS - 100, ageSeconds = 0 } = {}): [number, string | null] => {
    let behind = Number.NaN
    const onMeasured = (_party: string, ms: number): void => {
      behind = ms
    }
    const skew = createClockSkew({ clock: () => NOW_MS, onMeasured })
    skew.observe('https://as.test', { date, askedMs, ageSeconds })
    return [behind, skew.hint()]
  }
  const dated = (ms: number): string => new Date(ms).toUTCString()

  test.each([
    ['of now', dated(NOW_MS), {}],
    ['within what tokens are given', dated(NOW_MS + 5_000), {}],
    ['of an answer that took long, and was made early', dated(NOW_MS - 60_000), { askedMs: NOW_MS - 60_000 }],
    ['that lay in a cache', dated(NOW_MS - MINUTES_MS), { ageSeconds: 300 }],
  ])('%s says that clocks agree', (_name, date, options) => {
    expect(heard(date, options)).toEqual([0, null])
  })

  test('of the future says that this clock is behind, one of the past that it is ahead', () => {
    const [behind, late] = heard(dated(NOW_MS + MINUTES_MS))
    const [ahead, early] = heard(dated(NOW_MS - MINUTES_MS))
    expect(Math.round(behind / 10_000) * 10_000).toBe(MINUTES_MS)
    expect(Math.round(ahead / 10_000) * 10_000).toBe(-MINUTES_MS)
    expect(late).toMatch(/^The clock of this server is (299|300) s behind that of https:\/\/as\.test$/)
    expect(early).toMatch(/^The clock of this server is (299|300) s ahead of that of https:\/\/as\.test$/)
  })

  test.each(['', 'yesterday', '0'.repeat(100)])('that is none says nothing: %j', (date) => {
    expect(heard(date)).toEqual([Number.NaN, null])
  })

  test('of an age that is none counts without it', () => {
    expect(heard(dated(NOW_MS), { ageSeconds: Number.NaN })).toEqual([0, null])
  })
})

test('the Date of a key set, and its Age, are handed on', async () => {
  const date = new Date(NOW_MS).toUTCString()
  const server = createServer((_req, res) => res.writeHead(200, { date, age: '7' }).end('{}'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const options = { redirect: 'manual', headers: {}, signal: AbortSignal.timeout(5_000) } as const
  expect((await createKeyFetch({})(`http://127.0.0.1:${port}/`, options)).dated).toEqual({ date, ageSeconds: 7 })
  server.close()
})

describe('a sidecar whose clock is behind', () => {
  let h: Harness
  afterEach(() => h.close())

  test('hears it from the PDP, says so in the log, the metric and the 401, and allows nothing', async () => {
    h = await startHarness({
      routes: 'GET /invoices/{id}: viewer invoice:{id}',
      script: tuples(['alice viewer invoice:1']),
      clock: () => Date.now() - MINUTES_MS,
    })
    const { send, issuer, log, pdp, upstream, registry } = h
    // The first answer brings the Date of the PDP.
    expect((await send('GET /invoices/1')).status).toBe(200)
    await until(() => log.some((line) => 'event' in line && line.event === 'clock_skewed'))
    expect(log).toContainEqual(expect.objectContaining({ event: 'clock_skewed', against: pdp.address }))
    expect(await registry.metrics()).toMatch(/_clock_behind_seconds\{against="127[^}]*\} (299|300|301)\n/)
    upstream.reached.length = 0
    const now = Math.floor(Date.now() / 1_000)
    const answer = await send('GET /invoices/1', { token: await issuer.token({ iat: now, exp: now + 300 }) })
    const problem = JSON.parse(answer.body)
    expect([answer.status, problem.code]).toEqual([401, 'token_invalid'])
    expect(problem.detail).toMatch(/^The clock of this server is \d+ s behind that of 127\.0\.0\.1:\d+$/)
    const line = log.findLast((one) => 'event' in one && one.event === 'decision')
    expect(line).toMatchObject({
      detail: expect.stringMatching(/ s in the future by the clock of this server; The clock of this/),
    })
    expect(upstream.reached).toEqual([])
  })

  test('says nothing of it when the clocks agree, whatever is wrong with a token', async () => {
    h = await startHarness({ routes: 'GET /invoices/{id}: viewer invoice:{id}', script: tuples([]) })
    const expired = await h.issuer.token({ exp: Math.floor(Date.now() / 1_000) - 60 })
    expect(JSON.parse((await h.send('GET /invoices/1', { token: expired })).body).detail).toBeUndefined()
  })
})
