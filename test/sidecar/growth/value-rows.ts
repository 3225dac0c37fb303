/** Growth of what takes the values of a check from a request: query, cookies, fields and body. */
import { Readable } from 'node:stream'
import { readInbound } from '../../../sidecar/request/inbound.ts'
import { buildQuestions } from '../../../sidecar/routes/checks.ts'
import { isUntyped, readBody, readJson } from '../../../sidecar/routes/json-body.ts'
import { createRouting, routeRequest } from '../../../sidecar/routes/route-request.ts'
import { requestValues } from '../../../sidecar/routes/values.ts'
import type { Growth } from '../../support/growth/growth.ts'
import { loadRoutes } from '../support/judge.ts'
import { filled, refusable, requestWith } from './inputs.ts'
import { FIELDS_MOST, HEADER_MOST, ORIGIN, TARGET_MOST } from './request-rows.ts'

const BODY_MOST = 65_536

const ROUTES = `
POST /query: member org:{query.org}
POST /body: viewer doc:{body.a.b}
POST /field: viewer doc:{header.x-a}
POST /path/{id}: {check: "viewer doc:{id}", body: judge}
POST /context: {check: "viewer doc:1", context: {ip: {query.ip}}}
POST /kinds: {any: [{all: [{equals: {body.m: a}}, "viewer doc:{body.a.b}"]}, {all: [{equals: {body.n: b}}, "viewer doc:{query.x}"]}]}
PUT /body: scope a
PUT /query: scope a
`
const routing = createRouting(loadRoutes(ROUTES))
const CLAIMS = { all: {}, scopes: new Set<string>(), organization: null }

type Sent = { readonly target: string; readonly fields?: readonly string[]; readonly body?: string }

/** All that the sidecar does with the request before it asks the PDP, but for its token. */
function asked({ target, fields = [], body = '' }: Sent): unknown {
  const length = ['content-type', 'application/json', 'content-length', `${body.length}`]
  const client = requestWith([...(body === '' ? [] : length), ...fields], { method: 'POST', target })
  const request = readInbound(client, ORIGIN)
  const match = routeRequest(routing, request)
  if (match.kind !== 'route' || match.route.check === null) throw new TypeError(`${target} has no route with a check`)
  const { check, context } = match.route
  const text = body === '' ? null : readJson(Buffer.from(body))
  if (text !== null) match.judgeJson?.(text)
  const values = { request, parameters: match.parameters, keepQuery: false, claims: CLAIMS, body: text }
  return buildQuestions({ check, context }, requestValues(values))
}

const VALUE_RUNS = [
  'sidecar/routes/checks.ts:buildQuestions',
  'sidecar/routes/checks.ts:usesBody',
  'sidecar/routes/checks.ts:usesSource',
  'sidecar/routes/checks.ts:sourcesFrom',
  'sidecar/routes/values.ts:requestValues',
  'sidecar/routes/context.ts:readContext',
  'sidecar/routes/context.ts:isReadAlike',
  'sidecar/request/errors.ts:missing',
  'sidecar/request/errors.ts:unusable',
]
const QUERY_RUNS = [
  'sidecar/routes/query.ts:readQuery',
  'sidecar/routes/query.ts:isReadAs',
  'sidecar/routes/query.ts:decodeQuery',
  'sidecar/routes/path-twins.ts:refuseQueryTwin',
  'sidecar/http/folding.ts:keyParts',
  'sidecar/http/folding.ts:readsAlike',
]
const BODY_RUNS = [
  'sidecar/routes/json-body.ts:readJson',
  'sidecar/routes/json-body.ts:readMember',
  'sidecar/routes/json-body.ts:eachTopMember',
  'sidecar/routes/path-twins.ts:refuseJsonTwin',
  'sidecar/http/folding.ts:nestsAlike',
]

type Kind = { readonly most: number; readonly runs: readonly string[]; readonly make: (size: number) => Sent }
const query = (start: string, unit: string): Kind => ({
  most: TARGET_MOST,
  runs: [...VALUE_RUNS, ...QUERY_RUNS],
  make: (size) => ({ target: filled(size, unit, { before: start }) }),
})
const body = (target: string, unit: string, ends: { readonly before: string; readonly after: string }): Kind => ({
  most: BODY_MOST,
  runs: [...VALUE_RUNS, ...BODY_RUNS],
  make: (size) => ({ target, body: filled(size, unit, ends) }),
})
const field = (target: string, name: string, unit: string, runs: readonly string[] = []): Kind => ({
  most: HEADER_MOST,
  runs: [...VALUE_RUNS, ...runs],
  make: (size) => ({ target, fields: [name, filled(size, unit)] }),
})

const KINDS: { readonly [name: string]: Kind } = {
  'keys of a query': query('/query?org=1', '&a'),
  'long keys of a query': query('/query?org=1&', 'a'),
  'parts of one key of a query': query('/query?org=1&', 'a.b['),
  'encoded bytes of a key of a query': query('/query?org=1&', '%2561'),
  'a value of a query': query('/query?org=', 'a'),
  'an encoded value of a query': query('/query?org=', '%C3%A9'),
  'a value of a context': query('/context?ip=', 'a'),
  'keys beside a parameter of the path': query('/path/1?', 'id&'),
  'semicolons beside a parameter of the path': query('/path/1?', 'a;'),
  'cookies beside a value of a query': field('/query?org=1', 'cookie', 'a=%41; '),
  'blanks in a cookie': field('/query?org=1', 'cookie', ' '),
  'a value of a field': field('/field', 'x-a', 'a'),
  'members of a body': body('/body', '"a":1,', { before: '{', after: '"z":1}' }),
  'members of the member of a body': body('/body', '"c":1,', { before: '{"a":{', after: '"b":1}}' }),
  'members in another member of a body': body('/body', '"b":{},', { before: '{"x":{', after: '"b":1},"a":{"b":1}}' }),
  'arrays in arrays of a body': body('/body', '[', { before: '{"x":', after: '1}' }),
  'blanks of a body': body('/body', ' ', { before: '{', after: '"a":{"b":1}}' }),
  'a text of a body': body('/body', '\\u0041', { before: '{"a":{"b":"', after: '"}}' }),
  'a number of a body': body('/body', '1', { before: '{"a":{"b":', after: '}}' }),
  'a key of a body': body('/body', '._[', { before: '{"', after: '":1,"a":{"b":1}}' }),
  'methods in a body': body('/body', '"_method":"PUT",', { before: '{', after: '"a":{"b":1}}' }),
  'twins of a parameter in a body': body('/path/1', '"id":"1",', { before: '{', after: '"z":1}' }),
  'a body that lacks what each alternative needs': body('/kinds', '"c":1,', { before: '{', after: '"z":1}' }),
  'a body that one alternative is for': body('/kinds', '"c":1,', { before: '{"m":"z",', after: '"n":"b"}' }),
  'what is no JSON': body('/body', '{"a":', { before: '', after: '' }),
}

export const VALUE_ROWS: readonly Growth[] = [
  ...Object.entries(KINDS).map(([name, { most, runs, make }]) => ({
    name,
    runs,
    most,
    at: (size: number) => {
      const sent = make(size)
      return () => refusable(() => asked(sent))
    },
  })),
  ...[1, 1_024].map((pieceBytes) => ({
    name: `a body in pieces of ${pieceBytes} bytes`,
    runs: [
      'sidecar/routes/json-body.ts:readBody',
      'sidecar/routes/json-body.ts:readWhole',
      'sidecar/request/inbound.ts:fieldValues',
      'sidecar/routes/json-body.ts:checkMedia',
    ],
    most: pieceBytes === 1 ? BODY_MOST / 16 : BODY_MOST,
    at: (size: number) => {
      const fields = ['content-type', 'application/json', 'content-length', `${size}`]
      const head = requestWith(fields, { method: 'POST' })
      const request = readInbound(head, ORIGIN)
      const pieces = Array.from({ length: Math.ceil(size / pieceBytes) }, () => Buffer.alloc(pieceBytes, '1'))
      const limits = { need: 'value', bytesMax: BODY_MOST, timeoutMs: 60_000 } as const
      return () => readBody({ ...head, body: Readable.from(pieces) }, request, limits)
    },
  })),
  {
    name: 'fields of a body without a type',
    runs: ['sidecar/routes/json-body.ts:isUntyped'],
    most: FIELDS_MOST - 1,
    at: (size: number) => {
      const request = readInbound(requestWith(Array.from({ length: size }, () => ['x-a', '1']).flat()), ORIGIN)
      return () => isUntyped(request)
    },
  },
]
