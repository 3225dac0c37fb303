/** Whose word about the client is believed: of the proxies that the operator names, and of nobody else. */
import { afterEach, describe, expect, test } from 'vitest'
import { clientOf, createNetworks, parseAddress, parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import { originOf } from '../../../sidecar/request/origin.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, routeFile, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { fieldOf } from '../support/upstream.ts'

const PEER = '10.0.0.9'
const TRUSTED = createNetworks(['10.0.0.0/8', 'fd00::/8'].map(parseNetwork))
const origin = (raw: readonly string[], { peer = PEER, trusted = TRUSTED } = {}) =>
  originOf({ raw, peerAddress: () => peer, scheme: 'http' }, trusted)
const xff = (value: string): string[] => ['X-Forwarded-For', value]

describe('the address of a client', () => {
  test.each<[string, string[], string]>([
    ['the last that is no proxy', xff('6.6.6.6, 1.2.3.4'), '1.2.3.4'],
    ['behind several proxies', xff('6.6.6.6, 1.2.3.4, 10.1.1.1, fd00::1'), '1.2.3.4'],
    ['over several fields', [...xff('6.6.6.6'), ...xff('1.2.3.4'), ...xff('10.1.1.1')], '1.2.3.4'],
    ['with a port', xff('1.2.3.4:5678'), '1.2.3.4'],
    ['of IPv6 with a port', xff('[2001:DB8::0:1]:80'), '2001:db8::1'],
    ['of bare IPv6', xff('2001:db8:0:0:0:0:0:1'), '2001:db8::1'],
    ['of IPv4 mapped into IPv6', xff('6.6.6.6, ::ffff:1.2.3.4'), '1.2.3.4'],
    ['of a proxy that is mapped into IPv6', xff('1.2.3.4, ::ffff:a01:101'), '1.2.3.4'],
    ['in front of all proxies is the first proxy', xff('10.1.1.1, 10.2.2.2'), '10.1.1.1'],
    ['that a proxy does not know is that proxy', xff('6.6.6.6, unknown, 10.1.1.1'), '10.1.1.1'],
    ['of Forwarded', ['Forwarded', 'for=6.6.6.6, For="[2001:db8::1]:47011";proto=http;by=_x'], '2001:db8::1'],
    ['hidden in Forwarded', ['Forwarded', 'for=6.6.6.6, for=_hidden'], PEER],
    ['of an element without it', ['Forwarded', 'for=6.6.6.6, proto=https'], PEER],
    ['of both kinds of field that agree', [...xff('1.2.3.4'), 'forwarded', 'for="1.2.3.4:80"'], '1.2.3.4'],
    ['without any field', [], PEER],
  ])('%s', (_name, raw, address) => {
    expect(origin(raw)).toMatchObject({ address, fault: null })
  })

  test.each<[string, string[]]>([
    ['a name', xff('client.test')],
    ['nothing', xff('')],
    ['nothing behind a comma', xff('1.2.3.4,')],
    ['a number', xff('16909060')],
    ['an address with a zone of digits', xff('1.2.3.4.5')],
    ['octal numbers', xff('01.02.03.04')],
    ['a Forwarded that ends early', ['Forwarded', 'for="1.2.3.4']],
    ['a Forwarded with two addresses in one element', ['Forwarded', 'for=1.2.3.4;for=6.6.6.6']],
    ['a Forwarded without a name', ['Forwarded', '=1.2.3.4']],
    ['a Forwarded of bare IPv6', ['Forwarded', 'for=2001:db8::1']],
    ['two kinds of field that differ', [...xff('1.2.3.4'), 'Forwarded', 'for=6.6.6.6']],
    ['a Forwarded that lets the address out', [...xff('1.2.3.4'), 'Forwarded', 'proto=https']],
    ['two schemes that differ', ['X-Forwarded-Proto', 'https', 'Forwarded', 'proto=http']],
    ['two hosts that differ', ['X-Forwarded-Host', 'a.test', 'Forwarded', 'host=b.test']],
    ['another scheme', ['X-Forwarded-Proto', 'gopher']],
    ['a host that is none', ['X-Forwarded-Host', 'a.test/x']],
    ['a host with user information', ['X-Forwarded-Host', 'a@b.test']],
  ])('is not made of %s, and the log still has that of the proxy', (_name, raw) => {
    const { address, fault } = origin(raw)
    expect([address, fault]).toEqual([PEER, expect.any(String)])
  })

  test.each(['192.0.2.1', '::1', '11.0.0.1', 'fe80::1%eth0', ''])('is that of the connection from %j', (peer) => {
    const raw = [...xff('1.2.3.4'), 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'a.test', 'Forwarded', 'for="']
    const address = peer.replace('%eth0', '')
    expect(origin(raw, { peer })).toEqual({ address, scheme: 'http', host: null, fault: null })
  })

  test.each([
    ' '.repeat(30_000),
    '\t;'.repeat(15_000),
    `for="${'\\"'.repeat(15_000)}`,
    `for=1.2.3.4${' '.repeat(30_000)}x`,
  ])('is read in one pass: case %#', (text) => {
    for (let round = 0; round < 20; round += 1) expect(origin(['Forwarded', text]).address).toBe(PEER)
  })
})

describe('scheme and host', () => {
  test.each<[string[], string, string | null]>([
    [[...xff('1.2.3.4'), 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'App.test'], 'https', 'app.test'],
    [[...xff('1.2.3.4'), 'X-Forwarded-Proto', 'http, HTTPS'], 'https', null],
    [[...xff('1.2.3.4, 10.1.1.1'), 'X-Forwarded-Proto', 'http, https, http'], 'https', null],
    [[...xff('1.2.3.4, 10.1.1.1'), 'X-Forwarded-Proto', 'wss'], 'https', null],
    [['X-Forwarded-Proto', 'https'], 'https', null],
    [
      ['Forwarded', 'for=6.6.6.6;proto=http;host=evil.test, for=1.2.3.4;proto=https;host="a.test:8"'],
      'https',
      'a.test',
    ],
    // Of two fields one may be the client's own.
    [[...xff('1.2.3.4'), 'Forwarded', 'for=1.2.3.4;proto=https;host=evil.test'], 'http', null],
    [
      ['Forwarded', 'for=1.2.3.4', ...xff('1.2.3.4'), 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', 'a'],
      'http',
      null,
    ],
    [
      [
        ...xff('1.2.3.4'),
        'X-Forwarded-Proto',
        'https',
        'X-Forwarded-Host',
        'A',
        'Forwarded',
        'for=1.2.3.4;proto=https;host=a',
      ],
      'https',
      'a',
    ],
    [xff('1.2.3.4'), 'http', null],
  ])('of %j are %s and %s', (raw, scheme, host) => {
    const found = origin(raw)
    expect([found.scheme, found.host?.hostname ?? null, found.fault]).toEqual([scheme, host, null])
  })
})

describe('networks', () => {
  test.each([
    ['10.0.0.0/8', '10.255.255.255', '11.0.0.0'],
    ['192.0.2.1', '192.0.2.1', '192.0.2.2'],
    ['2001:db8::/33', '2001:db8:7fff::1', '2001:db8:8000::1'],
    ['::ffff:10.0.0.0/104', '10.1.2.3', '11.1.2.3'],
    ['::1', '::1', '::2'],
  ])('%s has %s and not %s', (network, inside, outside) => {
    const networks = createNetworks([parseNetwork(network)])
    expect([networks.has(inside), networks.has(outside), networks.has('')]).toEqual([true, false, false])
  })

  test.each([
    ['10.0.0.1/8', 'has bits set behind its prefix'],
    ['2001:db8::1/64', 'has bits set behind its prefix'],
    ['0.0.0.0/0', 'would trust every address'],
    ['::/0', 'would trust every address'],
    ['::ffff:0.0.0.0/96', 'would trust every address'],
    ['10.0.0.0/33', 'more than 32 bits'],
    ['fd00::/129', 'more than 128 bits'],
    ['10.0.0.0/08', 'a prefix that is not a number'],
    ['10.0.0.0/', 'a prefix that is not a number'],
    ['10.0.0.0/8/8', 'is no IP address and no CIDR block'],
    ['ingress.test', 'is no IP address and no CIDR block'],
    ['10.0.0', 'is no IP address and no CIDR block'],
    ['fe80::1%eth0', 'is no IP address and no CIDR block'],
    ['', 'is no IP address and no CIDR block'],
  ])('%j is a mistake of the route file at its place', (text, message) => {
    const source = routeFile('GET /a: public', {
      extra: `trusted_proxies:\n  - 127.0.0.1\n  - ${JSON.stringify(text)}`,
    })
    const filled = source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:2')
    const { issues } = parseRouteFile(filled)
    expect(issues).toEqual([{ line: 8, column: 5, message: expect.stringContaining(message) }])
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::7', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::10.0.0.1', '0:0:0:0::/64'],
    ['a:b', 'a:b'],
    ['', ''],
  ])('%s is the client %s', (address, client) => {
    expect(clientOf(address)).toBe(client)
  })

  test.each([
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:201', '192.0.2.1'],
    ['2001:DB8:0::0:1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    // It only looks like a mapped address (RFC 4291 section 2.5.5.1), so it is no IPv4 address.
    ['::10.0.0.1', '::a00:1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
    ['x', null],
    ['10.1', null],
    ['167772161', null],
    ['012.0.0.1', null],
    ['0xa.0.0.1', null],
    ['::ffff:012.0.0.1', null],
  ])('%s is written %s', (text, address) => {
    expect(parseAddress(text)).toBe(address)
  })
})

describe('behind a proxy', () => {
  let h: Harness | null = null
  afterEach(async () => {
    await h?.close()
    h = null
  })
  const ROUTES = `
GET /a: viewer doc:1
GET /public: public
GET admin.app.test/public: public
GET /t/{id}: public`.trim()
  const start = async (extra: string): Promise<Harness> => {
    h = await startHarness({ routes: ROUTES, script: tuples(['alice viewer doc:1']), extra })
    return h
  }
  const FIELDS = ['X-Forwarded-For: 6.6.6.6, 203.0.113.7', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: app.test']
  const told = (harness: Harness) =>
    ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'].map((name) =>
      fieldOf(harness.upstream.reached[0], name),
    )
  const logged = (harness: Harness) =>
    harness.log.flatMap((line) => ('client_address' in line ? [line.client_address] : []))

  test('that is trusted, the service and the log are told of the client', async () => {
    const harness = await start('trusted_proxies: [127.0.0.0/8]')
    expect((await harness.send('GET /a', { fields: FIELDS })).status).toBe(200)
    expect(told(harness)).toEqual(['203.0.113.7', 'https', 'app.test', null])
    expect(logged(harness)).toEqual(['203.0.113.7'])
  })

  test('the same holds over HTTP/2', async () => {
    const harness = await start('trusted_proxies: [127.0.0.1]')
    const session = openSession(harness.port)
    const headers = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' }
    expect((await ask(session, 'GET /public', { headers })).status).toBe(200)
    session.destroy()
    expect(told(harness)).toEqual(['203.0.113.7', 'https', 'app.test', null])
  })

  test.each(['', 'trusted_proxies: [192.0.2.0/24]'])('that is not, of nothing that it says: %s', async (extra) => {
    const harness = await start(extra)
    const fields = [...FIELDS, 'Forwarded: for=203.0.113.7;proto=https', 'X-Forwarded-Port: 443']
    expect((await harness.send('GET /a', { fields })).status).toBe(200)
    expect(told(harness)).toEqual(['127.0.0.1', 'http', 'app.test', null])
    expect(logged(harness)).toEqual(['127.0.0.1'])
  })

  test('whose word cannot be read, it is 400 and nothing is forwarded', async () => {
    const harness = await start('trusted_proxies: [127.0.0.1]')
    const answer = await harness.send('GET /public', { fields: ['X-Forwarded-For: client.test'] })
    expect([answer.status, harness.upstream.reached.length]).toEqual([400, 0])
    expect(logged(harness)).toEqual(['127.0.0.1'])
  })

  test.each([
    ['evil.test', 421],
    ['admin.app.test', 400],
    ['other.app.test', 200],
    ['app.test', 200],
  ])('that names the host %s, it is %i', async (host, status) => {
    const harness = await start('trusted_proxies: [127.0.0.1]\nhosts: [app.test, other.app.test]')
    const fields = [`X-Forwarded-Host: ${host}`]
    expect((await harness.send('GET /public', { token: null, fields })).status).toBe(status)
    expect(harness.upstream.reached.length).toBe(status === 200 ? 1 : 0)
    if (status === 200) expect(told(harness)[2]).toBe(host)
  })

  test.each([
    ['app.test:9999', 'app.test'],
    ['app.test:443', 'app.test:443'],
    ['app.test:0', 'app.test'],
    ['app.test', 'app.test'],
  ])('or without one, a Host of %s is told as %s', async (host, seen) => {
    const harness = await start('')
    expect((await harness.send('GET /public', { token: null, host })).status).toBe(200)
    expect(told(harness)[2]).toBe(seen)
    harness.upstream.reached.length = 0
    await harness.send('GET /public', { token: null, host: `app.test:${harness.port}` })
    expect(told(harness)[2]).toBe(`app.test:${harness.port}`)
  })

  test('its name for the scheme changes nothing for a proof', async () => {
    const harness = await start('trusted_proxies: [127.0.0.1]')
    const answer = await harness.send('GET /a', { token: null, fields: [...FIELDS, 'Authorization: DPoP x'] })
    expect([answer.status, field(answer, 'www-authenticate')?.startsWith('DPoP')]).toEqual([401, true])
  })
})
