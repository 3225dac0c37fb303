/** Clients that keep all the places they get, while others are served. They are told apart by what a trusted proxy says of them. */
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { RawAnswer } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { startHarness } from '../support/harness.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const EACH = 35

test.each([
  ['a route', 'route_requests_max', 'GET /slow', 'Too many requests of this route are open'],
  ['the process', 'requests_max', 'GET /other', 'Too many requests are open'],
])('clients that come one after the other leave places of %s for others', async (_name, limit, line, detail) => {
  const extra = `trusted_proxies: [127.0.0.1]\nlimits: {${limit}: 64, waiting_max: 0}`
  const harness = await startHarness({ routes: 'GET /slow: public\nGET /other: public', extra })
  const held: ServerResponse[] = []
  closers.push(
    () => harness.close(),
    () => {
      for (const res of held) res.end()
    },
  )
  harness.upstream.handle = (_req, res) => void held.push(res)
  const refused: RawAnswer[] = []
  const ask = (asked: string, address: string) =>
    void harness
      .send(asked, { token: null, fields: [`X-Forwarded-For: ${address}`] })
      .then((answer) => answer.status === 503 && refused.push(answer))
  const shares: number[] = []
  for (let at = 1; at <= 6; at += 1) {
    const before = held.length
    for (let sent = 0; sent < EACH; sent += 1) ask('GET /slow', `203.0.113.${at}`)
    await until(() => held.length + refused.length === at * EACH)
    shares.push(held.length - before)
  }
  expect(shares).toEqual([32, 13, 6, 4, 2, 2])
  for (const { body } of refused) expect(JSON.parse(body)).toMatchObject({ code: 'busy', detail })
  for (const address of ['198.51.100.1', '2001:db8::1', '2001:db8:1::1']) ask(line, address)
  await until(() => held.length === 59 + 3)
})

test('one client that opens all connections that it may has half of them', async () => {
  const harness = await startHarness({ routes: 'GET /other: public', limits: { connectionsMax: 20 } })
  closers.push(() => harness.close())
  const open = (localAddress: string): Socket => {
    const socket = connect({ port: harness.port, host: '127.0.0.1', localAddress })
    socket.on('error', () => undefined).on('data', () => undefined)
    closers.push(() => socket.destroy())
    return socket
  }
  const sockets = Array.from({ length: 15 }, () => open('127.0.0.1'))
  await until(() => sockets.filter(({ destroyed }) => destroyed).length === 5)
  const other = open('127.0.0.2')
  other.write('GET /other HTTP/1.1\r\nHost: app.test\r\n\r\n')
  await until(() => other.bytesRead > 0)
})
