/** Growth of what reads the head of a request: target, host, fields, and the word of proxies. */
import { createNetworks } from '../../../pdp/shared/base/addresses.ts'
import { takeBrowserToken } from '../../../sidecar/request/browser-token.ts'
import { type InboundRequest, readInbound } from '../../../sidecar/request/inbound.ts'
import { originOf } from '../../../sidecar/request/origin.ts'
import { parseAuthority, parseTarget, unreadAuthority, unreadTarget } from '../../../sidecar/request/target.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { filled, refusable, requestWith } from './inputs.ts'

/** Characters of a target, and bytes of a header section, that the defaults allow. */
export const TARGET_MOST = 8_192
export const HEADER_MOST = 32_768
export const FIELDS_MOST = 100
export const ORIGIN = { origin: { address: '192.0.2.1', host: null, fault: null }, targetCharsMax: TARGET_MOST }

const TARGETS: { readonly [name: string]: (size: number) => string } = {
  'a target of short segments': (size) => filled(size, '/a'),
  'a target of one segment': (size) => filled(size, 'a', { before: '/' }),
  'a target of encoded characters': (size) => filled(size, '%C3%A9', { before: '/' }),
  'a target of encoded slashes': (size) => filled(size, 'a%2F', { before: '/', after: 'a' }),
  'a target of encoded reserved characters': (size) => filled(size, '/%3B'),
  'a target that ends with what no path has': (size) => filled(size, '/.a;', { after: '"' }),
  'a target of dots': (size) => filled(size, '.', { before: '/', after: ';' }),
  'a query': (size) => filled(size, 'a=%41&', { before: '/?' }),
  'an absolute target': (size) => filled(size, 'a', { before: 'http://', after: '/' }),
}

const HOSTS: { readonly [name: string]: (size: number) => string } = {
  'a host name': (size) => filled(size, 'a.', { after: 'a' }),
  'a host name with an end that it cannot have': (size) => filled(size, 'a', { after: '-!' }),
  'a host name of colons': (size) => filled(size, ':1'),
}

const LISTS: { readonly [name: string]: (size: number) => readonly string[] } = {
  'a list of addresses from a trusted proxy': (size) => [
    'x-forwarded-for',
    filled(size, '10.0.0.1,', { after: '10.0.0.1' }),
  ],
  'a Forwarded field of a trusted proxy': (size) => [
    'forwarded',
    filled(size, 'for=10.0.0.1,', { after: 'for=10.0.0.1' }),
  ],
  'a quoted text in a Forwarded field': (size) => ['forwarded', filled(size, '\\a', { before: 'for="' })],
  'blanks in a Forwarded field': (size) => ['forwarded', filled(size, ' ', { after: '=' })],
}

const FIELDS: { readonly [name: string]: (size: number) => readonly string[] } = {
  'a Connection field': (size) => ['connection', filled(size, 'a_b, ')],
  'a value': (size) => ['x-a', filled(size, 'a')],
  'the name of a field': (size) => [filled(size, 'a_'), ''],
  'a Content-Length': (size) => ['content-length', filled(size, '1')],
}

/** Names, values and the next ones that begin another token. */
const TOKENS: readonly (readonly [field: string, unit: string])[] = [
  ['cookie', 'tok=t;'],
  ['x-token', 'a'],
  ['cookie', 'a;'],
  ['cookie', '\u00a0'],
  ['cookie', ' '],
  ['sec-websocket-protocol', 'bearer,t,'],
  ['sec-websocket-protocol', 'base64url.bearer.authorization.k8s.io.dA,'],
  ['sec-websocket-protocol', ' '],
]

const inboundOf = (fields: readonly string[], isShadowed = false): InboundRequest =>
  readInbound(requestWith(fields), { ...ORIGIN, isShadowed })

const PROXIES = createNetworks([{ address: '10.0.0.0', bits: 8 }])
const from = (raw: readonly string[]) => ({ raw, peerAddress: () => '10.0.0.9', scheme: 'http' as const })

export const REQUEST_ROWS: readonly Growth[] = [
  ...Object.entries(TARGETS).map(([name, make]) => ({
    name,
    runs: [
      'sidecar/request/target.ts:parseTarget',
      'sidecar/request/target.ts:tooManySegments',
      'sidecar/request/target.ts:unreadTarget',
      'sidecar/request/errors.ts:malformed',
    ],
    most: TARGET_MOST,
    at: (size: number) => {
      const target = make(size)
      return () => [refusable(() => parseTarget(target)), unreadTarget(target)]
    },
  })),
  ...Object.entries(HOSTS).map(([name, make]) => ({
    name,
    runs: ['sidecar/request/target.ts:parseAuthority', 'sidecar/request/target.ts:unreadAuthority'],
    most: HEADER_MOST,
    at: (size: number) => {
      const host = make(size)
      return () => [refusable(() => parseAuthority(host)), unreadAuthority(host)]
    },
  })),
  ...Object.entries(LISTS).map(([name, make]) => ({
    name,
    runs: ['sidecar/request/origin.ts:originOf'],
    most: HEADER_MOST,
    at: (size: number) => {
      const origin = from(make(size))
      return () => originOf(origin, PROXIES)
    },
  })),
  ...Object.entries(FIELDS).map(([name, make]) => ({
    name,
    runs: ['sidecar/request/inbound.ts:readInbound'],
    most: HEADER_MOST,
    at: (size: number) => {
      const fields = make(size)
      return () => [refusable(() => inboundOf(fields)), refusable(() => inboundOf(fields, true))]
    },
  })),
  ...TOKENS.map(([field, unit]) => ({
    name: `a token among ${JSON.stringify(unit)} of ${field}`,
    runs: ['sidecar/request/browser-token.ts:takeBrowserToken'],
    most: HEADER_MOST,
    at: (size: number) => {
      const request = inboundOf([field, filled(size, unit), 'accept', 'text/event-stream'])
      const route = { tokenFrom: { header: ['x-token'], subprotocol: true, cookie: 'tok' }, origins: new Set<string>() }
      return () => refusable(() => takeBrowserToken(request, route, true))
    },
  })),
  ...['x-a', 'cookie', 'connection', 'dpop', 'authorization'].map((field) => ({
    name: `the number of ${field} fields`,
    runs: ['sidecar/request/inbound.ts:readInbound'],
    most: FIELDS_MOST - 1,
    at: (size: number) => {
      const fields = Array.from({ length: size }, () => [field, 'a']).flat()
      return () => refusable(() => inboundOf(fields))
    },
  })),
]
