/** Requests without a token that come at once on one connection. */
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Served, serve } from '../harness.ts'

let served: Served
const sockets: Socket[] = []
beforeAll(async () => {
  served = await serve()
})
afterAll(() => served.close())
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

function open({ reads }: { readonly reads: boolean }) {
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
  sockets.push(socket)
  const seen = { text: '', ended: false }
  if (reads) socket.on('data', (chunk) => (seen.text += chunk))
  else socket.pause()
  socket.on('error', () => undefined)
  socket.on('close', () => {
    seen.ended = true
  })
  const statuses = (): number[] => [...seen.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return { socket, seen, statuses }
}
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const answered = (path: string): number =>
  served.logged.filter((line) => line.event === 'request' && line.route === path).length

test('1,400 requests on each of three connections that read nothing cost three answers, and others are served', async () => {
  const before = answered('/openapi.json')
  const attackers = [0, 1, 2].map(() => open({ reads: false }))
  for (const { socket } of attackers) socket.write(get('/openapi.json').repeat(1_400))
  await expect.poll(() => answered('/openapi.json')).toBe(before + 3)
  await expect.poll(() => served.send('GET', '/.well-known/ssf-configuration')).toMatchObject({ status: 200 })
  expect(answered('/openapi.json')).toBe(before + 3)
})

test('a client that takes what it asked for gets every answer', async () => {
  const { socket, statuses } = open({ reads: true })
  socket.write(get('/openapi.json').repeat(20))
  await expect.poll(statuses).toEqual(Array.from({ length: 20 }, () => 200))
})

test.each(['/openapi.json', '/.well-known/ssf-configuration', '/scim/v2/Schemas', '/scim/v2/ServiceProviderConfig'])(
  '%s is 304 to who has it',
  async (path) => {
    const first = await fetch(served.url + path)
    const tag = first.headers.get('etag') ?? ''
    expect([first.status, tag.length]).toEqual([200, 29])
    expect(await first.json()).toBeTypeOf('object')
    const again = await fetch(served.url + path, { headers: { 'if-none-match': tag } })
    expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, tag, ''])
    expect((await fetch(served.url + path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  },
)

describe('what is no request', () => {
  test.each([
    ['garbage', 'garbage\r\n\r\n', 400],
    ['a field without a name', 'GET /openapi.json HTTP/1.1\r\n: x\r\n\r\n', 400],
    ['a head that is too long', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('is refused when the requests in front of it are answered: %s', async (_name, last, status) => {
    const { socket, seen, statuses } = open({ reads: true })
    socket.write(get('/openapi.json') + get('/nothing') + last)
    await expect.poll(() => seen.ended).toBe(true)
    expect(statuses()).toEqual([200, 404, status])
  })

  test('is refused at once when it is the body of the request under way', async () => {
    const { socket, seen, statuses } = open({ reads: true })
    const post =
      'POST /oauth/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked'
    socket.write(`${post}\r\n\r\n3\r\n{"a\r\nZZ\r\n`)
    await expect.poll(() => seen.ended).toBe(true)
    expect(statuses()[0]).toBeGreaterThanOrEqual(400)
  })
})
