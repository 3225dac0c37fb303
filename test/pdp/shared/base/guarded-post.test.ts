/** Calls of URLs that a transmitter chose: never to an internal address that no operator has named. */
import type { lookup } from 'node:dns'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createGuardedPost, isInternalAddress } from '../../../../pdp/shared/base/guarded-post.ts'
import { guardedFetch } from '../../../../pdp/signals/receiver/guarded-fetch.ts'

let server: Server
let host: string
const asked: string[] = []
beforeAll(async () => {
  server = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    if (req.url === '/redirect') res.writeHead(302, { location: '/elsewhere' }).end()
    else if (req.url === '/large') res.end('x'.repeat(1_000))
    else if (req.url !== '/never') res.end('{}')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  host = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

const call = (url: string, more: object = {}) => ({
  method: 'GET',
  url,
  headers: {},
  deadlineMs: 5_000,
  bytesMax: 100,
  ...more,
})
const resolving = (...addresses: readonly string[]): typeof lookup =>
  Object.assign(
    (_host: string, _options: object, done: (error: null, found: object) => void) =>
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    { __promisify__: undefined },
  ) as unknown as typeof lookup

describe('an address is internal', () => {
  test.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '192.168.1.1', '198.18.0.1'],
    ...[
      '224.0.0.1',
      '255.255.255.255',
      '::1',
      '::',
      '::ffff:10.0.0.1',
      'fe80::1',
      'fd00::1',
      '64:ff9b::a00:1',
      '2002:a00:1::',
    ],
    ...['2001:db8::1', 'not an address', ''],
  ])('%s', (address) => {
    expect(isInternalAddress(address)).toBe(true)
  })
  test.each(['93.184.215.14', '8.8.8.8', '2606:4700:4700::1111', '::ffff:8.8.8.8'])('not %s', (address) => {
    expect(isInternalAddress(address)).toBe(false)
  })
})

describe('a call is refused before anything is sent', () => {
  test.each([
    'http://idp.example/x',
    'http://127.0.0.1/x',
    'https://127.0.0.1/x',
    'https://[::1]/x',
    'https://169.254.169.254/latest/meta-data',
    'https://0x7f000001/x',
    'https://2130706433/x',
    'https://localhost/x',
    'https://LOCALHOST./x',
    'https://a.localhost/x',
    'https://metadata.google.internal/x',
    'https://metadata.google.internal./x',
    'https://printer.local/x',
    'https://pdp.portcullis.svc.cluster.local/x',
    'https://router.home.arpa/x',
    'https://nothing.invalid/x',
    'https://hidden.onion/x',
    'https://kubernetes/x',
    'https://metadata/x',
    'https://user:word@idp.example/x',
    'https://idp.example/x#y',
    'file:///etc/passwd',
    'ftp://idp.example/x',
    'nonsense',
  ])('%s', async (url) => {
    const guard = createGuardedPost({ internalHosts: [] })
    expect(() => guard.check(url)).toThrow(expect.objectContaining({ name: 'TargetRefused' }))
    await expect(guard.send(call(url))).rejects.toMatchObject({ name: 'TargetRefused' })
    guard.close()
  })

  test.each([['10.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['::1'], ['::ffff:127.0.0.1']])(
    'to a name of %j',
    async (...addresses) => {
      const guard = createGuardedPost({ internalHosts: [], lookup: resolving(...addresses) })
      await expect(guard.send(call('https://idp.example/x'))).rejects.toThrow('resolves to an internal address')
      guard.close()
    },
  )

  test('to another port of a host of which one was named', async () => {
    const guard = createGuardedPost({ internalHosts: ['127.0.0.1:1'] })
    await expect(guard.send(call(`http://${host}/x`))).rejects.toMatchObject({ name: 'TargetRefused' })
    guard.close()
  })
})

describe('a call of a host that was named', () => {
  test('is made, by its method, and follows no redirect', async () => {
    const guard = createGuardedPost({ internalHosts: [host] })
    expect(await guard.send(call(`http://${host}/redirect`, { method: 'DELETE' }))).toMatchObject({ status: 302 })
    expect(await guard.send(call(`http://${host}/x`, { method: 'PATCH', body: '{}' }))).toMatchObject({ status: 200 })
    expect(asked.slice(-2)).toEqual(['DELETE /redirect', 'PATCH /x'])
    guard.close()
  })

  test('reads no more than it may, waits no longer than it may, and ends when its caller does', async () => {
    const guard = createGuardedPost({ internalHosts: [host] })
    expect(await guard.send(call(`http://${host}/large`))).toMatchObject({ status: 200, body: null })
    await expect(guard.send(call(`http://${host}/never`, { deadlineMs: 50 }))).rejects.toThrow()
    const caller = new AbortController()
    const ended = guard.send(call(`http://${host}/never`, { signal: caller.signal, deadlineMs: 60_000 }))
    caller.abort()
    await expect(ended).rejects.toThrow()
    guard.close()
  })

  test('answers as fetch does', async () => {
    const guard = createGuardedPost({ internalHosts: [host] })
    const init = { method: 'GET', redirect: 'manual', signal: AbortSignal.timeout(5_000), headers: {} } as const
    const { status, body } = await guardedFetch(guard)(`http://${host}/x`, init)
    expect([status, await new Response(body).text()]).toEqual([200, '{}'])
    guard.close()
  })
})
