/** HTTP/2 streams that one client leaves open, by reading nothing, while another is served. */
import type { ServerResponse } from 'node:http'
import { type ClientHttp2Session, constants, type SessionOptions } from 'node:http2'
import { afterEach, describe, expect, test } from 'vitest'
import type { SidecarLimits } from '../../../sidecar/route-file/default-limits.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const LIMITS = { connectionsMax: 60, clientConnectionsMax: 20 }
async function start(extra = '', limits: Partial<SidecarLimits> = LIMITS): Promise<Harness> {
  const harness = await startHarness({ routes: 'GET /page: public', limits, extra })
  closers.push(() => harness.close())
  return harness
}
function session(harness: Harness, options: SessionOptions & { localAddress?: string } = {}): ClientHttp2Session {
  const opened = openSession(harness.port, options)
  closers.push(() => opened.destroy())
  return opened
}

describe('one client', () => {
  test.each([
    ['more than it may', LIMITS, 20],
    ['more than half of all', { connectionsMax: 30 }, 15],
  ])('that reads no answers, so that %s would stay open, leaves streams for others', async (_name, limits, most) => {
    const harness = await start('', limits)
    const refused: number[] = []
    let answered = 0
    for (let at = 0; at < 4; at += 1) {
      // Without a window, the body of an answer never leaves the sidecar.
      const reader = session(harness, { settings: { initialWindowSize: 0 } })
      for (let count = 0; count < 10; count += 1) {
        const stream = reader.request({ ':path': '/nowhere', ':authority': 'app.test' })
        stream.on('error', () => undefined)
        stream.on('response', () => {
          answered += 1
        })
        stream.on('close', () => refused.push(stream.rstCode ?? 0))
      }
    }
    await until(() => answered + refused.length === 40)
    expect([answered, new Set(refused)]).toEqual([most, new Set([constants.NGHTTP2_REFUSED_STREAM])])
    expect((await ask(session(harness, { localAddress: '127.0.0.2' }), 'GET /page')).status).toBe(200)
  })

  test('has its streams again once they end', async () => {
    const harness = await start()
    const reader = session(harness)
    for (let at = 0; at < 50; at += 1) expect((await ask(reader, 'GET /page')).status).toBe(200)
  })
})

test('a trusted proxy has streams for all of its clients', async () => {
  const harness = await start('trusted_proxies: [127.0.0.1]')
  const held: ServerResponse[] = []
  harness.upstream.handle = (_req, res) => void held.push(res)
  const proxy = session(harness)
  const answers = Array.from({ length: 25 }, () => ask(proxy, 'GET /page'))
  await until(() => held.length === 25)
  for (const res of held) res.end()
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(25).fill(200))
})

test('not even a trusted proxy has more streams than all may have', async () => {
  const harness = await start('trusted_proxies: [127.0.0.1]', { connectionsMax: 20 })
  const held: ServerResponse[] = []
  harness.upstream.handle = (_req, res) => void held.push(res)
  const proxy = session(harness)
  const answers = Array.from({ length: 25 }, () => ask(proxy, 'GET /page'))
  expect((await Promise.all(answers.slice(20))).map(({ reset }) => reset)).toEqual(
    Array(5).fill(constants.NGHTTP2_REFUSED_STREAM),
  )
  await until(() => held.length === 20)
  for (const res of held) res.end()
  expect((await Promise.all(answers.slice(0, 20))).map(({ status }) => status)).toEqual(Array(20).fill(200))
})
