/** HTTP/2 clients that hold answers back by their windows. */
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { frame, headers, PREFACE, pseudo, TYPES } from '../support/raw-http2.ts'

let h: Harness
const closers: (() => void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await h.close()
})
/** SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2). */
const CLOSED_WINDOW = frame(TYPES.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))

describe('a reader that takes a byte at a time by its window', () => {
  test.each([
    ['a small answer', 'x'.repeat(10_000), 1],
    ['a small answer without a length', 'x'.repeat(10_000), 2],
    ['a large answer', 'x'.repeat(1_000_000), 1],
  ])('does not keep the places of %s', async (_name, body, pieceCount) => {
    h = await startHarness({
      routes: 'GET /a: public',
      script: tuples([]),
      limits: { bodyGraceMs: 200, bodyBytesPerSecondMin: 100_000, routeRequestsMax: 1, waitingMax: 0 },
    })
    h.upstream.handle = (_req, res) => {
      if (pieceCount === 1) return void res.writeHead(200, { 'content-length': String(body.length) }).end(body)
      res.write(body.slice(0, 10))
      res.end(body.slice(10))
    }
    const socket = connect(h.port, '127.0.0.1').on('error', () => undefined)
    closers.push(() => void socket.destroy())
    socket.resume()
    socket.write(Buffer.concat([PREFACE, CLOSED_WINDOW, headers(1, pseudo('GET', '/a'))]))
    await until(() => h.upstream.reached.length === 1)
    const byte = frame(TYPES.window, 0, 1, Buffer.from([0, 0, 0, 1]))
    const dripping = setInterval(() => void (socket.writable && socket.write(byte)), 20)
    closers.push(() => clearInterval(dripping))
    expect((await h.send('GET /a', { token: null })).status).toBe(503)
    h.upstream.handle = null
    await until(async () => (await h.send('GET /a', { token: null })).status === 200)
  })
})
