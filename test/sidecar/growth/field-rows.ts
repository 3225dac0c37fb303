/** Growth of what reads, strips and copies the fields of a request, and the text of its token and proof. */
import { parseAuthorization } from '../../../pdp/shared/token/authorization.ts'
import { readProof } from '../../../pdp/shared/token/dpop.ts'
import { hasType, parseJws } from '../../../pdp/shared/token/jws.ts'
import { packRefusal, unpackRefusal } from '../../../sidecar/doors/forward-auth.ts'
import { readForwarded } from '../../../sidecar/doors/forwarded-request.ts'
import { checkHandshake } from '../../../sidecar/enforce/websocket-handshake.ts'
import { removals, separateCookies } from '../../../sidecar/http/cookies.ts'
import { askedMethod, corsFields, fieldsFor, PUBLIC_CORS, preflightFields } from '../../../sidecar/http/cors.ts'
import {
  createHeaderRules,
  firstValue,
  onlyValue,
  pairsOf,
  splitList,
  upstreamFields,
  valuesOf,
} from '../../../sidecar/http/fields.ts'
import { foldName, isPlainName } from '../../../sidecar/http/folding.ts'
import { isGrpc } from '../../../sidecar/http/grpc.ts'
import { http2Fields, http2Lists } from '../../../sidecar/http/http2-fields.ts'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { loadRoutes } from '../support/judge.ts'
import { filled, refusable, requestWith } from './inputs.ts'
import { FIELDS_MOST, HEADER_MOST, ORIGIN, TARGET_MOST } from './request-rows.ts'

const TOKEN_MOST = 16_384
const PROOF_MOST = 8_192

const row = (
  name: string,
  runs: string | readonly string[],
  { most = HEADER_MOST, at }: { readonly most?: number; readonly at: Growth['at'] },
): Growth => ({ name, runs: [runs].flat(), most, at })

/** A function of one text. */
const ofText = (
  name: string,
  runs: string | readonly string[],
  {
    unit,
    before = '',
    after = '',
    most,
    work,
  }: {
    readonly unit: string
    readonly before?: string
    readonly after?: string
    readonly most?: number
    readonly work: (text: string) => unknown
  },
): Growth =>
  row(name, runs, {
    ...(most !== undefined && { most }),
    at(size) {
      const text = filled(size, unit, { before, after })
      return () => refusable(() => work(text))
    },
  })

const base64 = (text: string): string => Buffer.from(text).toString('base64url')
const tokenOf = (size: number, { header = '{}', payload = '{}' }): string => {
  const rest = base64(
    'x'.repeat(Math.max(0, Math.floor(((size - header.length * 1.4 - payload.length * 1.4) * 3) / 4))),
  )
  return `${base64(header)}.${base64(payload)}.${rest}`
}

const JWS = 'pdp/shared/token/jws.ts:parseJws'
const PROOF = 'pdp/shared/token/dpop.ts:readProof'

const TOKENS: readonly Growth[] = [
  ...[
    ['a token', 'a', ''],
    ['dots of a token', '.', ''],
    ['members of a token', '"a":1,', '{'],
    ['arrays of a token', '[', '{"a":'],
  ].map(([name = '', unit = '', before = '']) =>
    row(name, [JWS, 'pdp/shared/token/jws.ts:members', 'pdp/shared/token/jws.ts:hasType'], {
      most: TOKEN_MOST,
      at(size) {
        const text = filled((size * 3) / 4 - 50, unit, { before, after: before === '{' ? '"z":1}' : '' })
        const token = before === '' ? filled(size, unit) : `${base64('{"typ":"at+jwt"}')}.${base64(text)}.aaaa`
        return () => {
          const jws = parseJws(token, TOKEN_MOST)
          return jws !== null && hasType(jws.header, 'at+jwt')
        }
      },
    }),
  ),
  row('a signature of a token', JWS, {
    most: TOKEN_MOST,
    at(size) {
      const token = tokenOf(size - 50, {})
      return () => parseJws(token, TOKEN_MOST)
    },
  }),
  row('a key of a proof', PROOF, {
    most: PROOF_MOST,
    at(size) {
      const n = filled(size / 2, 'A')
      const header = `{"typ":"dpop+jwt","alg":"RS256","jwk":{"kty":"RSA","e":"AQAB","n":"${n}"}}`
      const proof = tokenOf(0, { header })
      return () => refusable(() => readProof([proof]))
    },
  }),
  ...[' ', 'a', 'a ', '=', 'Bearer '].map((unit) =>
    ofText(
      `an Authorization field of ${JSON.stringify(unit)}`,
      'pdp/shared/token/authorization.ts:parseAuthorization',
      {
        unit,
        before: 'Bearer ',
        after: '!',
        work: (text) => parseAuthorization([text]),
      },
    ),
  ),
]

const RULES = createHeaderRules({ strip: ['x-acme-*'], pass: [] })
const OWN = {
  version: '1.1',
  host: 'app.test',
  forwarded: { for: '192.0.2.1', host: 'app.test', proto: 'http' },
  requestId: 'r',
  traceparent: null,
  identity: null,
} as const

/** `count` fields of different names, each of which nobody remembers. */
const manyFields = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => [`x-${'a'.repeat(100)}${n}`, 'a, b']).flat()

const FIELDS: readonly Growth[] = [
  ...['/a', 'a'].map((unit) =>
    ofText(`a path of ${unit} whose cookies are removed`, 'sidecar/http/cookies.ts:removals', {
      unit,
      before: '/',
      most: TARGET_MOST,
      work: (path) => removals(['a', 'b'], { hostname: 'a.b.c.app.test', path }),
    }),
  ),
  row('fields for the service', ['sidecar/http/fields.ts:upstreamFields', 'sidecar/http/fields.ts:createHeaderRules'], {
    most: FIELDS_MOST - 1,
    at(size) {
      const inbound = readInbound(requestWith(manyFields(size)), ORIGIN)
      return () => upstreamFields({ ...inbound, rules: RULES, forwardToken: false, own: OWN })
    },
  }),
  row(
    'fields over HTTP/2',
    [
      'sidecar/http/http2-fields.ts:http2Fields',
      'sidecar/http/grpc.ts:isGrpc',
      'sidecar/http/fields.ts:firstValue',
      'sidecar/http/fields.ts:onlyValue',
      'sidecar/http/fields.ts:pairsOf',
      'sidecar/http/fields.ts:valuesOf',
    ],
    {
      most: FIELDS_MOST - 1,
      at(size) {
        const fields = manyFields(size)
        const name = 'content-length'
        const found = (): unknown[] => [firstValue(fields, name), onlyValue(fields, name), valuesOf(fields, name)]
        return () => [http2Fields(fields), isGrpc(fields), pairsOf(fields), ...found()]
      },
    },
  ),
  row('trailers of one name', 'sidecar/http/http2-fields.ts:http2Lists', {
    most: HEADER_MOST / 4,
    at(size) {
      const pairs = Array.from({ length: size }, () => ['a', '1'] as const)
      return () => http2Lists(pairs)
    },
  }),
  ofText('members of a list', 'sidecar/http/fields.ts:splitList', { unit: 'a , ', work: splitList }),
  ofText('blanks of a list', 'sidecar/http/fields.ts:splitList', { unit: ' ', after: 'a', work: splitList }),
  ofText('the name of one field', 'sidecar/http/folding.ts:foldName', { unit: 'A_', work: foldName }),
  ofText('the plain name of one field', 'sidecar/http/folding.ts:isPlainName', {
    unit: 'a',
    after: '!',
    work: isPlainName,
  }),
  ...[
    ['cookies', 'a=b; '],
    ['cookies of ours', '__Host-portcullis-session=a; '],
    ['cookies almost of ours', '; __Host-portculli'],
    ['blanks before a cookie of ours', ' '],
    ['equals signs of a cookie', '='],
  ].map(([name = '', unit = '']) =>
    ofText(name, 'sidecar/http/cookies.ts:separateCookies', {
      unit,
      after: '__Host-portcullis-x',
      work: (text) => separateCookies(['cookie', text]),
    }),
  ),
]

const [socket] = loadRoutes('GET /: {check: scope a, upgrade: [websocket]}').routes
const CORS = { ...PUBLIC_CORS, origins: new Set(['https://spa.test']), credentials: true }
const PREFLIGHT = ['origin', 'https://spa.test', 'access-control-request-method', 'GET']

const PAGES: readonly Growth[] = [
  ...['a, ', ' ', '"'].map((unit) =>
    ofText(
      `a preflight that asks for fields of ${JSON.stringify(unit)}`,
      ['sidecar/http/cors.ts:askedMethod', 'sidecar/http/cors.ts:preflightFields'],
      {
        unit,
        work(text) {
          const raw = [...PREFLIGHT, 'access-control-request-headers', text]
          return [askedMethod({ method: 'OPTIONS', raw, authorization: [] }), preflightFields(CORS, ['GET'], raw)]
        },
      },
    ),
  ),
  ofText(
    'an origin',
    ['sidecar/http/cors.ts:corsFields', 'sidecar/http/cors.ts:fieldsFor', 'sidecar/http/cors.ts:hasOrigin'],
    {
      unit: 'a',
      before: 'https://',
      work: (text) => [corsFields(CORS, ['origin', text]), fieldsFor(CORS, text)],
    },
  ),
]

const DOORS: readonly Growth[] = [
  ofText('the key of a WebSocket', 'sidecar/enforce/websocket-handshake.ts:checkHandshake', {
    unit: 'A',
    work(text) {
      if (socket === undefined) throw new TypeError('no route')
      const request = readInbound(requestWith(['sec-websocket-version', '13', 'sec-websocket-key', text]), ORIGIN)
      checkHandshake(request, socket)
    },
  }),
  ...['x-forwarded-for', 'x-forwarded-uri', 'connection', 'x-a'].map((name) =>
    ofText(`the field ${name} of a gateway`, 'sidecar/doors/forwarded-request.ts:readForwarded', {
      unit: 'a, ',
      work: (text) => readForwarded({ raw: ['x-forwarded-method', 'GET', name, text] }, 'traefik'),
    }),
  ),
  row(
    'a refusal that nginx brings back',
    ['sidecar/doors/forward-auth.ts:unpackRefusal', 'sidecar/doors/forward-auth.ts:packRefusal'],
    {
      most: PROOF_MOST,
      at(size) {
        const value = packRefusal({ status: 400, fields: [], body: filled((size * 3) / 4, 'a') })
        return () => unpackRefusal(['a', value], 'a')
      },
    },
  ),
]

export const FIELD_ROWS: readonly Growth[] = [...TOKENS, ...FIELDS, ...PAGES, ...DOORS]
