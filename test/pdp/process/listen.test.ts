import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { StartError } from '../../../pdp/process/exit.ts'
import { formatAddress, isLoopback, listenError, parseListenAddress } from '../../../pdp/process/listen.ts'

describe('parseListenAddress', () => {
  it.each([
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    [':65535', { host: '0.0.0.0', port: 65535 }],
    ['pdp.example:9090', { host: 'pdp.example', port: 9090 }],
  ])('reads %s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address)
  })

  it.each([
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

it.each(['127.0.0.1', '127.255.255.254', '::1', 'localhost'])('takes %s for loopback', (host) => {
  expect(isLoopback(host)).toBe(true)
})

it.each(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', '127.1', 'localhost.example.com', ''])(
  'does not take %j for loopback',
  (host) => {
    expect(isLoopback(host)).toBe(false)
  },
)

it('puts IPv6 in brackets', () => {
  expect(formatAddress({ host: '::1', port: 80 })).toBe('[::1]:80')
})

describe('listenError', () => {
  it('says in one line that a port is taken', async () => {
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

  it('leaves other errors as they are', () => {
    const err = new Error('other')
    expect(listenError(err, 'x', { host: 'h', port: 1 })).toBe(err)
  })
})
