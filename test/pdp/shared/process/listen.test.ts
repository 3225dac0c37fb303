import { once } from 'node:events'
import { connect, createServer, type ListenOptions, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { StartError } from '../../../../pdp/shared/process/exit.ts'
import {
  bindableAddress,
  formatAddress,
  isLoopback,
  listenError,
  listenOn,
  namedBySetting,
  parseListenAddress,
  plainAddress,
} from '../../../../pdp/shared/process/listen.ts'
import { freePort } from '../../../support/free-port.ts'

describe('parseListenAddress', () => {
  test.each([
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    [':65535', { host: '::', port: 65535 }],
    ['pdp.example:9090', { host: 'pdp.example', port: 9090 }],
  ])('reads %s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address)
  })

  test.each([
    '',
    '8080',
    'host',
    'host:',
    'host:65536',
    'host:-1',
    'host:8080x',
    '::1:80',
    '[1.2.3.4]:80',
    '[::g]:80',
    'http://host:80',
    'a b:80',
    'host:+80',
  ])('refuses %j', (text) => {
    expect(() => parseListenAddress(text)).toThrow(/must be host:port|IPv6/)
  })
})

test.each(['127.0.0.1', '127.255.255.254', '::1', 'localhost'])('takes %s for loopback', (host) => {
  expect(isLoopback(host)).toBe(true)
})

test.each(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', '127.1', 'localhost.example.com', ''])(
  'does not take %j for loopback',
  (host) => {
    expect(isLoopback(host)).toBe(false)
  },
)

test('puts IPv6 in brackets', () => {
  expect(formatAddress({ host: '::1', port: 80 })).toBe('[::1]:80')
})

describe('listenError', () => {
  test('says in one line that a port is taken', async () => {
    const first = createServer()
    await new Promise<void>((done) => first.listen(0, '127.0.0.1', done))
    const address = first.address()
    const port = address === null || typeof address === 'string' ? 0 : address.port
    const err = await new Promise((done) => createServer().once('error', done).listen(port, '127.0.0.1'))
    const said = listenError(err, 'The HTTP listener', { host: '127.0.0.1', port })
    expect(said).toBeInstanceOf(StartError)
    expect(said).toHaveProperty(
      'message',
      `The HTTP listener cannot listen on 127.0.0.1:${port}: another process uses this port`,
    )
    await new Promise((done) => first.close(done))
  })

  test('is followed by the setting that gives another address', async () => {
    const refused = Promise.reject(
      new StartError('The HTTP listener cannot listen on h:1: another process uses this port'),
    )
    await expect(namedBySetting('PORTCULLIS_HTTP_LISTEN', refused)).rejects.toThrow(
      'The HTTP listener cannot listen on h:1: another process uses this port. Choose another address by PORTCULLIS_HTTP_LISTEN',
    )
  })

  test('leaves other errors as they are', () => {
    const err = new Error('other')
    expect(listenError(err, 'x', { host: 'h', port: 1 })).toBe(err)
  })
})

describe('on every address', () => {
  const open: Server[] = []
  afterEach(async () => {
    for (const server of open.splice(0)) await new Promise((done) => server.close(done))
  })
  function server(): Server {
    const made = createServer((socket) => socket.destroy())
    open.push(made)
    return made
  }
  const listen = (options: ListenOptions): Promise<unknown> => once(server().listen(options), 'listening')
  const everywhere = (port: number) => listenOn(server(), 'The sidecar', { host: '::', port })

  test.each(['127.0.0.1', '::1'])('a server is reached at %s', async (host) => {
    const { port } = await everywhere(0)
    await once(connect(port, host), 'connect')
  })

  test.each([
    ['IPv6 only', { host: '::', ipv6Only: true }],
    ['IPv4 only', { host: '0.0.0.0' }],
    ['one IPv6 address', { host: '::1' }],
    ['one IPv4 address', { host: '127.0.0.1' }],
  ])('a port is refused that another has for %s', async (_what, options) => {
    const port = await freePort()
    await listen({ ...options, port })
    await expect(everywhere(port)).rejects.toThrow(`The sidecar cannot listen on [::]:${port}: another process uses`)
  })

  test.each([
    ['IPv6 only', { host: '::', ipv6Only: true }],
    ['IPv4 only', { host: '0.0.0.0' }],
    ['one IPv6 address', { host: '::1' }],
    ['one IPv4 address', { host: '127.0.0.1' }],
  ])('nobody gets the same port afterwards for %s', async (_what, options) => {
    const { port } = await everywhere(0)
    await expect(listen({ ...options, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  test.each([
    ['EAFNOSUPPORT', '0.0.0.0'],
    ['EADDRNOTAVAIL', '0.0.0.0'],
    [null, '::'],
    ['EADDRINUSE', '::'],
    ['EACCES', '::'],
  ])('where a probe of IPv6 answers %s, that is %s', async (code, host) => {
    expect(await bindableAddress({ host: '::', port: 1 }, async () => code)).toEqual({ host, port: 1 })
  })

  test.each(['::1', '0.0.0.0', '127.0.0.1', 'pdp.example'])('does not mean %s, which stays as it is', async (host) => {
    const address = { host, port: 1 }
    expect(await bindableAddress(address, async () => 'EAFNOSUPPORT')).toEqual(address)
  })
})

test.each([
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['::FFFF:10.0.0.1', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.1'],
  ['fd00::1', 'fd00::1'],
  ['::ffff:a00:1', '::ffff:a00:1'],
  [undefined, ''],
])('a peer at %s is written as %s', (address, written) => {
  expect(plainAddress(address)).toBe(written)
})
