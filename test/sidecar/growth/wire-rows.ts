/**
 * Growth over a real socket: everything between the bytes of a stranger and the answer, alone and pipelined, over HTTP/1.1 and
 * HTTP/2; and what reads frames and questions of gateways before.
 */
import type { ClientHttp2Session } from 'node:http2'
import { create } from '@bufbuild/protobuf'
import { CheckRequestSchema } from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { readCheck } from '../../../sidecar/doors/check-request.ts'
import { countFields, FrameGuard } from '../../../sidecar/listener/http2-frame-guard.ts'
import { readProxyHeader } from '../../../sidecar/listener/proxy-header.ts'
import { exchange } from '../../support/growth/exchange.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { openWorld, type World } from '../sign-in/world.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { filled, refusable } from './inputs.ts'
import { HEADER_MOST, TARGET_MOST } from './request-rows.ts'

let opened: Promise<World> | null = null
/** By the first row that needs it: whoever reads the names of the rows only starts nothing. */
const world = (): Promise<World> => {
  opened ??= openWorld()
  return opened
}

const LISTENER = [
  'sidecar/listener/listener.ts:createListener',
  'sidecar/listener/protocol-detection.ts:detectProtocol',
  'sidecar/listener/parser-bytes.ts:readAlong',
  'sidecar/listener/request-lines.ts:watchRequestLines',
]
const SIGN_IN = [
  'sidecar/sign-in/browser.ts:createBrowser',
  'sidecar/sign-in/own-pages.ts:answerOwn',
  'sidecar/sign-in/begin-sign-in.ts:goalOf',
  'sidecar/sign-in/begin-sign-in.ts:isLoop',
  'sidecar/sign-in/begin-sign-in.ts:lead',
  'sidecar/sign-in/begin-sign-in.ts:sendTo',
  'sidecar/sign-in/begin-sign-in.ts:signInUrl',
  'sidecar/sign-in/callback.ts:returned',
  'sidecar/sign-in/navigation.ts:readerOf',
  'sidecar/sign-in/navigation.ts:isPrefetch',
  'sidecar/sign-in/navigation.ts:isOwnPage',
  'sidecar/sign-in/navigation.ts:requireOwnPage',
  'sidecar/sign-in/pending-sign-in.ts:begin',
  'sidecar/sign-in/pending-sign-in.ts:finish',
  'sidecar/sign-in/pending-sign-in.ts:hasStarts',
  'sidecar/sign-in/pending-sign-in.ts:shortened',
  'sidecar/sign-in/sealing.ts:createSealing',
  'sidecar/sign-in/session-cookies.ts:joinSession',
  'sidecar/sign-in/session-store.ts:createSessions',
  'sidecar/sign-in/denial-pages.ts:denialPage',
  'sidecar/sign-in/navigation.ts:frameFor',
  'sidecar/sign-in/words/words.ts:readerWords',
]
const SIGN_OUT = ['sidecar/sign-in/sign-out.ts:signOut', 'sidecar/sign-in/sign-out.ts:signedOutByIssuer']
const NAVIGATE = 'Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Site: same-origin\r\n'

type Sent = { readonly line?: string; readonly fields?: string; readonly body?: string }
type Sends = { readonly [name: string]: readonly [most: number, runs: readonly string[], make: (size: number) => Sent] }

/** Room for the fields of every request. */
const head = (size: number): number => size - 600
const cookies = (unit: (at: number) => string) => (size: number) => {
  let text = 'Cookie: a=b'
  for (let at = 0; text.length < head(size); at += 1) text += `; ${unit(at)}`
  return { line: 'GET /docs/1', fields: `${NAVIGATE}${text}\r\n` }
}
const target = (before: string, unit: string) => (size: number) => ({
  line: `GET ${filled(size, unit, { before })}`,
  fields: NAVIGATE,
})

const SENDS: Sends = {
  'a target over a socket': [TARGET_MOST, LISTENER, (size) => ({ line: `GET ${filled(size, '/a.pl%20')}` })],
  'a field over a socket': [HEADER_MOST, LISTENER, (size) => ({ fields: `X-A: ${filled(head(size), 'a, ')}\r\n` })],
  'fields over a socket': [90, LISTENER, (size) => ({ fields: 'Cookie: a=b\r\n'.repeat(size) })],
  'a token over a socket': [
    HEADER_MOST,
    LISTENER,
    (size) => ({ fields: `Authorization: Bearer ${filled(head(size), 'a.')}\r\n` }),
  ],
  'a body over a socket': [262_144, LISTENER, (size) => ({ line: 'POST /docs/1', body: filled(size, '{"a":1}') })],
  'cookies of sessions': [
    HEADER_MOST,
    SIGN_IN,
    cookies((at) => `__Host-portcullis-session${at === 0 ? '' : at}=${'a'.repeat(200)}`),
  ],
  'cookies of starts': [HEADER_MOST, SIGN_IN, cookies((at) => `__Host-portcullis-state-${at}=${'a'.repeat(200)}`)],
  'a planted cookie': [HEADER_MOST, SIGN_IN, cookies((at) => `\xa0__Host-portcullis-session=${at}`)],
  'the state of a callback': [TARGET_MOST, SIGN_IN, target('/.portcullis/callback?code=c&state=', 'a.')],
  'parameters of a callback': [TARGET_MOST, SIGN_IN, target('/.portcullis/callback?', 'state=a&')],
  'the goal of a sign-in': [TARGET_MOST, SIGN_IN, target('/.portcullis/sign-in?goal=', 'a.')],
  'a page that leads to a sign-in': [TARGET_MOST, SIGN_IN, target('/docs/1?', 'a=%C3%A9&')],
  'an Accept field of a browser': [
    HEADER_MOST,
    SIGN_IN,
    (size) => ({ line: 'GET /docs/1', fields: `Accept: ${filled(head(size), 'text/html;q=0,')}\r\n` }),
  ],
  'blanks of an Accept field': [
    HEADER_MOST,
    SIGN_IN,
    (size) => ({ line: 'GET /docs/1', fields: `Accept: text/html;${filled(head(size), ' ')}q\r\n` }),
  ],
  'languages of a browser': [
    HEADER_MOST,
    SIGN_IN,
    (size) => ({ line: 'GET /none', fields: `${NAVIGATE}Accept-Language: ${filled(head(size), 'nl ;q=0.1,')}\r\n` }),
  ],
  'a purpose of a browser': [
    HEADER_MOST,
    SIGN_IN,
    (size) => ({ line: 'GET /docs/1', fields: `Purpose: ${filled(head(size), 'prefetc ')}\r\n` }),
  ],
  'a sign-out': [
    HEADER_MOST,
    SIGN_OUT,
    (size) => ({
      ...cookies((at) => `__Host-portcullis-session-${at}=a`)(size),
      line: 'POST /.portcullis/sign-out',
      body: '',
    }),
  ],
  'a logout token over a socket': [
    16_000,
    SIGN_OUT,
    (size) => ({
      line: 'POST /.portcullis/backchannel-logout',
      fields: 'Content-Type: application/x-www-form-urlencoded\r\n',
      body: filled(size, 'a.', { before: 'logout_token=' }),
    }),
  ],
  'a form of a logout token': [
    16_000,
    SIGN_OUT,
    (size) => ({
      line: 'POST /.portcullis/backchannel-logout',
      fields: 'Content-Type: application/x-www-form-urlencoded\r\n',
      body: filled(size, 'logout_token=%41&'),
    }),
  ],
}

function bytesOf({ line = 'GET /docs/1', fields = '', body }: Sent, host: string, ends: boolean): string {
  const length = body === undefined ? '' : `Content-Length: ${body.length}\r\n`
  return `${line} HTTP/1.1\r\nHost: ${host}\r\n${ends ? 'Connection: close\r\n' : ''}${fields}${length}\r\n${body ?? ''}`
}

/** `countOf`: how many of them go out at once on one connection; the last one ends it. */
const overSocket =
  (make: (size: number) => Sent, countOf: (size: number) => number): Growth['at'] =>
  (size) => {
    const sent = make(size)
    const count = countOf(size)
    return async () => {
      const { ports, origin } = await world()
      const host = origin.slice('http://'.length)
      const text = bytesOf(sent, host, false).repeat(count - 1) + bytesOf(sent, host, true)
      return exchange(ports[0] ?? 0, Buffer.from(text, 'latin1'))
    }
  }

const WIRE: readonly Growth[] = Object.entries(SENDS).map(([name, [most, runs, make]]) => ({
  name,
  runs,
  most,
  at: overSocket(make, () => 1),
}))
/** A tenth of the largest input, and as many of them as a connection may have waiting. */
const PIPELINED: readonly Growth[] = Object.entries(SENDS).map(([name, [most, runs, make]]) => ({
  name: `the number of pipelined requests with ${name}`,
  runs,
  most: 80,
  at: (size) =>
    overSocket(
      () => make(most / 10),
      () => size,
    )(size),
}))

let session: ClientHttp2Session | null = null
const HTTP2: readonly Growth[] = [
  ['a field over HTTP/2', HEADER_MOST, (size: number) => ({ 'x-a': filled(head(size), 'a, ') })],
  [
    'a cookie in many pieces over HTTP/2',
    90,
    (size: number) => ({ cookie: Array.from({ length: size }, (_, at) => `a${at}=b`) }),
  ],
  [
    'fields over HTTP/2, of different names',
    90,
    (size: number) => Object.fromEntries(Array.from({ length: size }, (_, at) => [`x-${at}`, 'a'])),
  ],
].map(([name, most, make]) => ({
  name: `${name}, whole`,
  runs: [
    'sidecar/listener/http2-server.ts:createHttp2Server',
    'sidecar/listener/http2-exchange.ts:http2Request',
    'sidecar/listener/http2-exchange.ts:http2Answer',
  ],
  most: Number(most),
  at(size: number) {
    const headers = (make as (size: number) => { readonly [name: string]: string })(size)
    return async () => {
      const { ports, origin } = await world()
      if (session === null || session.destroyed) session = openSession(ports[0] ?? 0)
      return ask(session, 'GET /docs/1', { headers: { ':authority': origin.slice('http://'.length), ...headers } })
    }
  },
}))

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const frame = (type: number, flags: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(1, 5)
  return Buffer.concat([head, payload])
}
/** A literal field without a name: a byte for its form, and two lengths. */
const FIELD = Buffer.from([0, 0, 0])
const pieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
const FRAMES: { readonly [name: string]: readonly [most: number, make: (size: number) => Buffer[]] } = {
  'a header block': [65_000, (size) => pieces(frame(1, 0, Buffer.alloc(Math.min(size, 16_000), FIELD)), 1_000)],
  'a header block byte by byte': [16_000, (size) => pieces(frame(1, 4, Buffer.alloc(size, FIELD)), 1)],
  'a header block in small frames': [
    500,
    (size) => [frame(1, 0, FIELD), ...Array.from({ length: size }, () => frame(9, 0, FIELD))],
  ],
  'frames without content': [900, (size) => Array.from({ length: size }, () => frame(6, 0, Buffer.alloc(8)))],
  'a body in frames': [4_000, (size) => Array.from({ length: size }, () => frame(0, 0, Buffer.alloc(10)))],
}
const GUARD: readonly Growth[] = [
  ...Object.entries(FRAMES).map(([name, [most, make]]) => ({
    name: `${name} of HTTP/2`,
    runs: ['sidecar/listener/http2-frame-guard.ts:countFields'],
    most,
    at: (size: number) => {
      const chunks = make(size)
      return () => {
        const guard = new FrameGuard({ emptyFramesMax: 1_000, nowMs: () => 0 })
        guard.inspect(PREFACE)
        return chunks.every((chunk) => guard.inspect(chunk))
      }
    },
  })),
  ...[[0], [0x80], [0x3f, 0xff], [0x20], [0, 0x7f, 0xff]].map((unit) => ({
    name: `a header block of the bytes ${unit.join(' ')}`,
    runs: ['sidecar/listener/http2-frame-guard.ts:countFields'],
    most: 65_000,
    at: (size: number) => {
      const block = Buffer.alloc(size, Buffer.from(unit))
      return () => countFields(block)
    },
  })),
]

type Asked = {
  readonly path?: string
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: string
}
const QUESTIONS: { readonly [name: string]: readonly [most: number, make: (size: number) => Asked] } = {
  'the path': [TARGET_MOST, (size) => ({ path: filled(size, '/a!') })],
  'a value': [HEADER_MOST, (size) => ({ headers: [['x-a', filled(size, 'a, ')]] })],
  'a name': [HEADER_MOST, (size) => ({ headers: [[filled(size, 'a_'), 'b']] })],
  'many fields': [2_000, (size) => ({ headers: Array.from({ length: size }, (_, at) => [`x-${at}`, 'a'] as const) })],
  'many fields of one name': [
    2_000,
    (size) => ({ headers: Array.from({ length: size }, () => ['x-a', 'a'] as const) }),
  ],
  'a body': [262_144, (size) => ({ body: filled(size, 'a') })],
}
const DOOR: readonly Growth[] = Object.entries(QUESTIONS).flatMap(([name, [most, make]]) =>
  (['envoy', 'istio'] as const).map((profile) => ({
    name: `${name} of a question of ${profile}`,
    runs: ['sidecar/doors/check-request.ts:readCheck'],
    most,
    at: (size: number) => {
      const { path = '/', headers = [], body = '' } = make(size)
      const fields =
        profile === 'envoy'
          ? { headerMap: { headers: headers.map(([key, value]) => ({ key, value })) } }
          : { headers: Object.fromEntries(headers) }
      const http = { method: 'GET', path, host: 'app.test', scheme: 'http', protocol: 'HTTP/1.1', body, ...fields }
      const check = create(CheckRequestSchema, { attributes: { request: { http } } })
      return () => refusable(() => readCheck(check, { profile, body: true }))
    },
  })),
)

const PROXIED: readonly Growth[] = ['PROXY UNKNOWN ', 'PROXY TCP6 :', '\r\n\r\n\0\r\nQUIT\n!\x21'].map((before) => ({
  name: `a header of the PROXY protocol after ${JSON.stringify(before)}`,
  runs: ['sidecar/listener/proxy-header.ts:readProxyHeader'],
  most: HEADER_MOST,
  at: (size: number) => {
    const bytes = Buffer.from(filled(size, '1:', { before }), 'latin1')
    return () => readProxyHeader(bytes)
  },
}))

export const WIRE_ROWS: readonly Growth[] = [...PROXIED, ...WIRE, ...PIPELINED, ...HTTP2, ...GUARD, ...DOOR]
