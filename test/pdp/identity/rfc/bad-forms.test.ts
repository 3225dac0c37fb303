/** Every endpoint under /oauth that takes a form, with bad ones: an error of its RFC, and not a word about the inside. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { effort } from '../../../support/effort.ts'
import { sendRaw } from '../../../support/peers/raw-http.ts'
import { VERIFIER } from '../flow.ts'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EXCHANGE } from '../flows.ts'
import { openWorld, parseObject, REDIRECT, type World } from '../harness.ts'
import {
  badCases,
  basic,
  codeRequest,
  createSender,
  deep,
  expectDecent,
  type Form,
  failures,
  inBatches,
  jwt,
} from './bad-input.ts'

let world: World
let subject: string
beforeAll(async () => {
  world = await openWorld()
  subject = (await createFlows(world).code({ person: 'eve', organization: 'acme' })).tokens.access_token
})
afterAll(() => world.close())

type Endpoint = { readonly path: string; readonly base: () => Form }
const grant = (grant_type: string, form: Form): Endpoint => ({
  path: '/oauth/token',
  base: () => ({ grant_type, ...form }),
})

/** Each with a form that fails for one reason at most: an unknown token or code. */
const FORMS: { readonly [name: string]: Endpoint } = {
  'pushed request': { path: '/oauth/par', base: codeRequest },
  'device authorization': { path: '/oauth/device_authorization', base: () => ({ scope: 'openid' }) },
  'backchannel authentication': {
    path: '/oauth/bc-authorize',
    base: () => ({ scope: 'openid', login_hint: 'eve@x.example' }),
  },
  introspection: { path: '/oauth/introspect', base: () => ({ token: subject }) },
  revocation: { path: '/oauth/revoke', base: () => ({ token: 'unknown' }) },
  authorization_code: grant('authorization_code', { code: 'x', redirect_uri: REDIRECT, code_verifier: VERIFIER }),
  refresh_token: grant('refresh_token', { refresh_token: 'x' }),
  client_credentials: grant('client_credentials', {}),
  device_code: grant(DEVICE_CODE, { device_code: 'x' }),
  CIBA: grant(CIBA, { auth_req_id: 'x' }),
  'token exchange': {
    path: '/oauth/token',
    base: () => ({ grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN, scope: 'openid' }),
  },
}

const { post } = createSender(() => world)

describe.each(Object.entries(FORMS))('%s', (name, { path, base }) => {
  const encoded = (form: Form) => new URLSearchParams(form).toString()

  test('refuses any parameter of any form with an error of its RFC', async () => {
    const before = failures(world).length
    const names = Object.keys(FORMS)
    // The short run gives each case to one endpoint.
    await inBatches(
      badCases(names.indexOf(name), effort({ short: names.length, long: 1 })),
      async ({ name: parameter, what, value }) => {
        const { [parameter]: _, ...others } = base()
        const body = `${encoded(others)}&${parameter}=${value}`
        expectDecent(await post(path, body), `${parameter} with ${what}`)
      },
    )
    expect(failures(world).slice(before)).toEqual([])
  }, 60_000)

  test('refuses any of its parameters twice, or as a list or an object', async () => {
    // RFC 6749 section 3.1: those that an endpoint does not know are ignored.
    for (const name of [...Object.keys(base()), 'client_id']) {
      const twice = await post(path, `${encoded(base())}&${name}=a&${name}=b`)
      expectDecent(twice, `${name} twice`)
      expect([name, twice.status, parseObject(twice.text).error]).toEqual([name, 400, 'invalid_request'])
      for (const form of [`${name}[]=a`, `${name}[a]=b`, `${name}.a=b`]) {
        const { [name]: _, ...others } = base()
        expectDecent(await post(path, `${encoded(others)}&${form}`), form)
      }
    }
  })

  test('refuses what is not a form', async () => {
    const form = encoded(base())
    const json = JSON.stringify(base())
    const bodies: readonly (readonly [string, string | Uint8Array<ArrayBuffer>, Form])[] = [
      ['JSON', json, { 'content-type': 'application/json' }],
      ['deep JSON', deep(20_000), { 'content-type': 'application/json' }],
      ['text', form, { 'content-type': 'text/plain' }],
      ['parts', form, { 'content-type': 'multipart/form-data; boundary=x' }],
      ['no type', form, { 'content-type': '' }],
      ['another type that ends alike', form, { 'content-type': 'text/application/x-www-form-urlencoded' }],
      ['a compressed form', new Uint8Array(gzipSync(form)), { 'content-encoding': 'gzip' }],
      ['JSON that says it is a form', json, {}],
      ['nothing', '', {}],
      ['separators', '&&&===&&&', {}],
    ]
    for (const [what, body, headers] of bodies) {
      const answer = await post(path, body, headers)
      expectDecent(answer, what)
      // A device needs no parameter: without a scope it asks for that of its registration, and names it does not know are ignored.
      if (name !== 'device authorization') expect([what, answer.status >= 400]).toEqual([what, true])
      expect([what, answer.headers.get('content-type')?.split(';')[0]]).toEqual([what, 'application/json'])
    }
  })

  test('refuses more than it reads, and too many parameters', async () => {
    const before = failures(world).length
    for (const body of [
      `${encoded(base())}&padding=${'x'.repeat(60_000)}`,
      `${encoded(base())}&padding=${'x'.repeat(2_000_000)}`,
      `${encoded(base())}&${Array.from({ length: 20_000 }, (_, i) => `p${i}=1`).join('&')}`,
    ]) {
      const answer = await post(path, body)
      expectDecent(answer, `${body.length} bytes`)
      expect([400, 413]).toContain(answer.status)
    }
    expect(failures(world).slice(before)).toEqual([])
  })

  test.each([
    ['no secret', 'Basic'],
    ['no base64', 'Basic !!!'],
    ['no colon', `Basic ${Buffer.from('flows').toString('base64')}`],
    ['a bad escape', `Basic ${Buffer.from('flows:%zz').toString('base64')}`],
    ['NUL', `Basic ${Buffer.from('fl\0ws:x').toString('base64')}`],
    ['bytes that are not UTF-8', `Basic ${Buffer.from([0xff, 0x3a, 0xfe]).toString('base64')}`],
    ['an endless secret', basic('flows', 'x'.repeat(7_000))],
    ['another scheme', 'Bearer x'],
    ['two schemes', `${basic()}, ${basic()}`],
    ['a client of markup', basic('<b>', 'x')],
    ['the client’s id as its secret', basic('flows', 'flows')],
  ])('refuses a client with %s', async (why, authorization) => {
    const answer = await post(path, encoded(base()), { authorization })
    expectDecent(answer, why)
    expect([400, 401]).toContain(answer.status)
    expect(['invalid_client', 'invalid_request']).toContain(parseObject(answer.text).error)
  })

  test.each([
    ['the same again', basic()],
    ['those of another client', basic('web')],
    ['a token', 'Bearer x'],
    ['nothing', ''],
  ])('refuses credentials in two fields, of which the second has %s', async (why, second) => {
    const form = encoded(base())
    const lines = [`POST ${path} HTTP/1.1`, 'Host: id', 'Content-Type: application/x-www-form-urlencoded']
    const fields = [`Content-Length: ${form.length}`, `Authorization: ${basic()}`, `Authorization: ${second}`]
    const request = `${[...lines, ...fields].join('\r\n')}\r\n\r\n${form}`
    const { status, body } = await sendRaw(Number(new URL(world.issuer).port), request)
    expect([why, status, parseObject(body).error]).toEqual([why, 400, 'invalid_request'])
  })

  test.each([
    'x',
    '',
    'a.b.c',
    jwt(deep(500)),
    jwt('{"htm":{},"htu":[],"jti":1,"iat":"x"}'),
    `${'a'.repeat(4_000)}.b.c`,
  ])('refuses the proof %.20j, or has no use for one', async (dpop) => {
    const before = failures(world).length
    expectDecent(await post(path, encoded(base()), { dpop }), dpop.slice(0, 30))
    expect(failures(world).slice(before)).toEqual([])
  })
})
