/** How other authorizers behind gateways were got past; each cause is a test here. */
import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { CheckRequestSchema } from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { DOOR_PROFILES, GRPC_PROFILES, HTTP_PROFILES } from '../../../sidecar/http/door-fields.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { loadFile, routeFile } from '../support/harness.ts'
import {
  checkOf,
  type DoorHarness,
  linesOf,
  openAndClose,
  ROUTES,
  readCheckResponse,
  WITHOUT_BODIES,
} from './door-harness.ts'

const ALICE = tuples(['alice viewer doc:1'])
let doors: DoorHarness
const open = openAndClose()

const bearer = async (): Promise<readonly [string, string]> => [
  'authorization',
  `Bearer ${await doors.inner.issuer.token()}`,
]
const UNDECIDED = { status: 503 }

test('reads a repeated header field as repeated, also where the gateway joins it (CVE-2021-32777, CVE-2026-26308)', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: tuples(['alice viewer doc:1', 'alice viewer doc:1,2']) })
  const one = { target: '/shelf', fields: [await bearer(), ['x-doc', '1'] as const] }
  const two = { ...one, fields: [...one.fields, ['x-doc', '2'] as const] }
  for (const profile of DOOR_PROFILES) {
    expect(await doors.ask(profile, one)).toMatchObject({ status: 200 })
    expect({ profile, ...(await doors.ask(profile, two)) }).toMatchObject({ profile, code: 'request_invalid' })
  }
})

test('takes no value in which the gateway may have replaced bytes', async () => {
  const script = tuples(['alice viewer doc:1!', 'alice viewer doc:1'])
  doors = await open({ routes: WITHOUT_BODIES, script, profiles: GRPC_PROFILES })
  const shelf = async (value: string) => ({ target: '/shelf', fields: [await bearer(), ['x-doc', value] as const] })
  for (const profile of GRPC_PROFILES) {
    const expected = profile === 'envoy' ? { status: 200 } : { status: 400, code: 'request_invalid' }
    expect({ profile, ...(await doors.ask(profile, await shelf('1!'))) }).toMatchObject({ profile, ...expected })
    const { fields } = await shelf('1')
    const other = { target: '/shelf', fields: [...fields, ['user-agent', 'hello!'] as const] }
    expect(await doors.ask(profile, other)).toMatchObject({ status: 200 })
    const target = { target: '/docs/1!', fields: [await bearer()] }
    expect({ profile, ...(await doors.ask(profile, target)) }).toMatchObject({ profile, ...expected })
  }
})

test('demands raw header fields of Envoy', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy'] })
  const response = await doors.check('envoy', checkOf({ target: '/public' }, false))
  expect(readCheckResponse(response)).toMatchObject(UNDECIDED)
  expect(doors.inner.log).toContainEqual(
    expect.objectContaining({ event: 'door_unfit', reason: expect.stringContaining('encode_raw_headers') }),
  )
})

test('answers CONNECT and a request without path, method or host by a refusal (CVE-2026-73547)', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  for (const profile of GRPC_PROFILES) {
    const ask = (request: Parameters<typeof checkOf>[0]) => doors.ask(profile, request)
    expect(await ask({ method: 'CONNECT', target: '' })).toMatchObject({ status: 405 })
    for (const bad of [{ target: '' }, { method: '' }, { host: '' }, { target: 'public' }, { scheme: 'ws' }])
      expect({ bad, ...(await ask({ target: '/public', ...bad })) }).toMatchObject({ bad, code: 'request_invalid' })
    const empty = await doors.check(profile, create(CheckRequestSchema, {}))
    expect(readCheckResponse(empty)).toMatchObject(UNDECIDED)
  }
  for (const profile of HTTP_PROFILES)
    for (const at of [3, 4, 5, 6]) {
      const lines = linesOf(profile, { target: '/public' })
      const missing = lines.filter((_, index) => index !== at)
      const doubled = [...lines, lines[at] ?? '']
      expect((await doors.raw(profile, missing)).status).toBe(profile === 'nginx' ? 403 : 400)
      expect((await doors.raw(profile, doubled)).status).toBe(profile === 'nginx' ? 403 : 400)
    }
})

test('refuses a question in which the gateway describes two different requests', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy'] })
  for (const [name, value] of [
    [':path', '/docs/1'],
    [':method', 'POST'],
    [':authority', 'x.test'],
    ['host', 'app.test'],
  ] as const) {
    const answer = await doors.ask('envoy', { target: '/public', fields: [[name, value]] })
    expect({ name, ...answer }).toMatchObject({ name, status: 400, code: 'request_invalid' })
  }
  const apart = checkOf({ target: '/public' }, true)
  const http = apart.attributes?.request?.http
  if (http !== undefined) http.query = 'a=b'
  expect(readCheckResponse(await doors.check('envoy', apart))).toMatchObject({ status: 400 })
})

test('refuses folded and control characters in header fields, and an upgrade that nobody would watch', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy', 'traefik'] })
  for (const value of ['a\r\n b', 'a\nb', 'a\0b', '\u007f'])
    expect(await doors.ask('envoy', { target: '/public', fields: [['x-a', value]] })).toMatchObject({ status: 400 })
  expect(await doors.ask('envoy', { target: '/public', fields: [['x a', 'b']] })).toMatchObject({ status: 400 })
  expect(await doors.ask('envoy', { target: '/public', fields: [['upgrade', 'websocket']] })).toMatchObject({
    status: 400,
  })
  expect(await doors.ask('traefik', { target: '/public', scheme: 'wss' })).toMatchObject({ status: 400 })
})

test('takes no list of Connection by which the gateway would drop what it got from us (CVE-2022-31813, CVE-2026-29054)', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  for (const profile of HTTP_PROFILES) {
    const fields = [['Connection', 'close, X-Auth-Subject']] as const
    expect(await doors.ask(profile, { target: '/public', fields })).toMatchObject({ status: 400 })
  }
  const listed = await doors.ask('envoy', {
    target: '/public',
    fields: [
      ['connection', 'x-a'],
      ['x-a', 'b'],
    ],
  })
  expect(listed.removed).toContain('x-a')
})

test('reads a body only as a whole, and believes no word of the client about it (opa-envoy)', async () => {
  doors = await open({ routes: ROUTES, script: ALICE, body: true, profiles: ['envoy'] })
  const json = ['content-type', 'application/json'] as const
  const flag = (value: string) => ['x-envoy-auth-partial-body', value] as const
  const post = async (body: string, ...fields: (readonly [string, string])[]) => {
    const length = ['content-length', String(Buffer.byteLength(body))] as const
    return { method: 'POST', target: '/docs', body, fields: [await bearer(), json, length, ...fields] }
  }
  const good = await post('{"id":"1"}', flag('false'))
  expect(await doors.ask('envoy', good)).toMatchObject({ status: 200 })
  for (const request of [
    await post('{"id":"1"}', flag('true')),
    await post('{"id":"1"}', flag('false'), flag('true')),
    await post('{"id":"1"}'),
  ])
    expect(await doors.ask('envoy', request)).toMatchObject({ status: 413, code: 'request_too_large' })
  const short = checkOf(good, true)
  const http = short.attributes?.request?.http
  if (http !== undefined) http.size = 1_000n
  expect(readCheckResponse(await doors.check('envoy', short))).toMatchObject({ status: 413 })
  expect(await doors.ask('envoy', await post('{"id":"2"}', flag('false')))).toMatchObject({ status: 403 })
})

const QUERIES = `GET /search: viewer doc:{query.doc}
POST /search: viewer doc:{query.doc}
POST /kept: {check: "viewer doc:{query.doc}", body: keep}
POST /docs/{id}: viewer doc:{id}
DELETE /docs/{id}: owner doc:{id}`
const JSON_TYPE = ['content-type', 'application/json'] as const

test('lets no JSON pass unseen in which a service could find another value, or another method, than was judged', async () => {
  doors = await open({ routes: QUERIES, script: ALICE })
  for (const profile of DOOR_PROFILES) {
    const ask = async (line: string, ...fields: (readonly [string, string])[]) => {
      const [method = '', target = ''] = line.split(' ')
      return { line, profile, ...(await doors.ask(profile, { method, target, fields: [await bearer(), ...fields] })) }
    }
    for (const line of ['POST /search?doc=1', 'GET /search?doc=1', 'POST /docs/1'])
      expect(await ask(line, JSON_TYPE)).toMatchObject({ line, profile, status: 415, code: 'media_type_unsupported' })
    for (const line of ['POST /search?doc=1', 'GET /search?doc=1'])
      expect(await ask(line, ['content-type', 'text/csv'])).toMatchObject({ line, profile, status: 415 })
    expect(await ask('GET /search?doc=1')).toMatchObject({ profile, status: 200 })
    expect(await ask('POST /kept?doc=1', JSON_TYPE)).toMatchObject({ profile, status: 200 })
    expect(await ask('POST /docs/1', ['content-type', 'text/csv'])).toMatchObject({ profile, status: 200 })
  }
})

test('finds a body without a type where the gateway sends it, and takes an HTTP/2 request without one as it is', async () => {
  doors = await open({ routes: QUERIES, script: ALICE, body: true, profiles: GRPC_PROFILES })
  for (const profile of GRPC_PROFILES) {
    const asked = async (body: string, ...fields: (readonly [string, string])[]) => {
      const get = { method: 'GET', target: '/search?doc=1', body, fields: [await bearer(), ...fields] }
      const check = checkOf(get, profile === 'envoy')
      const http = check.attributes?.request?.http
      if (http !== undefined) http.protocol = 'HTTP/2'
      return readCheckResponse(await doors.check(profile, check))
    }
    expect(await asked('doc=2', ['x-envoy-auth-partial-body', 'false'])).toMatchObject({ status: 415 })
    expect(await asked('doc=2')).toMatchObject({ status: 413 })
    expect(await asked('')).toMatchObject({ status: 200 })
  }
})

test('looks into JSON where the gateway sends it', async () => {
  doors = await open({ routes: QUERIES, script: ALICE, body: true, profiles: GRPC_PROFILES })
  const whole = ['x-envoy-auth-partial-body', 'false'] as const
  const post = async (target: string, body: string) => {
    const length = ['content-length', String(Buffer.byteLength(body))] as const
    return { method: 'POST', target, body, fields: [await bearer(), JSON_TYPE, length, whole] }
  }
  for (const profile of GRPC_PROFILES) {
    expect(await doors.ask(profile, await post('/search?doc=1', '{"doc":"2"}'))).toMatchObject({ status: 400 })
    expect(await doors.ask(profile, await post('/docs/1', '{"_method":"DELETE"}'))).toMatchObject({ status: 400 })
    expect(await doors.ask(profile, await post('/search?doc=1', '{"a":"2"}'))).toMatchObject({ status: 200 })
  }
})

test('is warned of by check, with the routes and what to write', () => {
  const door = '{profile: nginx, listen: "unix:/run/door"}'
  const warnings = (extra: string) => {
    const source = routeFile(QUERIES, { extra: `hosts: [app.test]\n${extra}` })
    return fileWarnings(loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '"127.0.0.1:1"')))
  }
  expect(warnings(`doors: [${door}]`)).toEqual([
    expect.stringMatching(
      /^the door for nginx gets no bodies, so on GET \/search, POST \/search, POST \/docs\/{id} it answers 415 to JSON and forms, and where a check reads the query to every request with a Content-Type: .*body: keep/,
    ),
  ])
  expect(warnings('doors: [{profile: envoy, listen: "unix:/run/door", body: true}]')).toEqual([])
  expect(warnings('')).toEqual([])
})
