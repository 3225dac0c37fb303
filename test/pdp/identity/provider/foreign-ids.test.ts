/** A tenant's client that names what belongs to another tenant is answered by every endpoint as about what nobody has. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EVERYTHING, EXCHANGE } from '../flows.ts'
import { GRANTS, openWorld, parseObject, REDIRECT, SECRET, type World } from '../harness.ts'

const VERIFIER = 'v'.repeat(43)
type Names = { readonly [name: string]: string }
let world: World
let metadata: JsonObject
/** What the client `tenant-flows` of acme got, and its names. */
let theirs: Names
/** In the same forms. */
let nobodys: Names
let own = ''
beforeAll(async () => {
  world = await openWorld()
  const grants = [...GRANTS, 'client_credentials']
  const client = { redirect_uris: [REDIRECT], scope: EVERYTHING, grant_types: grants }
  const exchange = { exchange_clients: ['beta-flows', 'tenant-flows'], exchange_resources: [world.issuer] }
  await world.putClient({
    id: 'beta-flows',
    organization: 'beta',
    metadata: { ...client, ...exchange },
    secretHash: hashGeneratedSecret(SECRET),
  })
  metadata = parseObject(await (await fetch(`${world.issuer}/.well-known/openid-configuration`)).text())
  const flows = createFlows(world)
  const eve = { person: 'eve', organization: 'acme', client: 'tenant-flows' }
  const { access_token: access, refresh_token: refresh = '', id_token: identity = '' } = (await flows.code(eve)).tokens
  own = (await flows.code({ person: 'bob', organization: 'beta', client: 'beta-flows' })).tokens.access_token
  const pushed = await post('/oauth/par', { ...REQUEST, client_id: 'tenant-flows' }, 'tenant-flows')
  theirs = {
    access,
    refresh,
    identity,
    device: (await flows.startDevice(eve)).started.device_code,
    ciba: (await flows.startCiba(eve)).started.auth_req_id,
    request: String(parseObject(pushed.text).request_uri),
    organization: 'acme',
    person: 'eve',
    client: 'tenant-flows',
  }
  const secrets = ['access', 'refresh', 'identity', 'device', 'ciba', 'request'].map((name) => [
    name,
    altered(theirs[name]),
  ])
  nobodys = { ...Object.fromEntries(secrets), organization: 'nobody-o', person: 'nobody', client: 'nobody-c' }
})
afterAll(() => world.close())

/** As long, and of the same characters. */
function altered(secret = ''): string {
  const at = secret.length - 12
  return (
    secret.slice(0, at) +
    [...secret.slice(at)]
      .toReversed()
      .join('')
      .replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))
  )
}

const REQUEST = {
  response_type: 'code',
  redirect_uri: REDIRECT,
  scope: 'openid',
  code_challenge: 'c'.repeat(43),
  code_challenge_method: 'S256',
}
const grant = (type: string, form: Names) => ['/oauth/token', { grant_type: type, ...form }] as const
const SUBJECT = { subject_token: '{own}', subject_token_type: ACCESS_TOKEN }
const CALLS: readonly (readonly [path: string, form: Names])[] = [
  grant('authorization_code', { code: '{device}', redirect_uri: REDIRECT, code_verifier: VERIFIER }),
  grant('refresh_token', { refresh_token: '{refresh}' }),
  grant(DEVICE_CODE, { device_code: '{device}' }),
  grant(CIBA, { auth_req_id: '{ciba}' }),
  grant(EXCHANGE, { ...SUBJECT, subject_token: '{access}' }),
  grant(EXCHANGE, { ...SUBJECT, actor_token: '{access}', actor_token_type: ACCESS_TOKEN }),
  grant(EXCHANGE, { ...SUBJECT, organization: '{organization}' }),
  grant('urn:ietf:params:oauth:grant-type:jwt-bearer', { assertion: '{identity}', organization: '{organization}' }),
  grant('client_credentials', { organization: '{organization}' }),
  grant('client_credentials', { client_id: '{client}' }),
  ['/oauth/introspect', { token: '{access}' }],
  ['/oauth/introspect', { token: '{refresh}', token_type_hint: 'refresh_token' }],
  ['/oauth/introspect', { token: '{identity}' }],
  ['/oauth/par', { ...REQUEST, organization: '{organization}' }],
  ['/oauth/par', { ...REQUEST, login_hint: '{person}@x.example' }],
  ['/oauth/par', { ...REQUEST, request_uri: '{request}' }],
  ['/oauth/device_authorization', { scope: 'openid', organization: '{organization}' }],
  ['/oauth/bc-authorize', { scope: 'openid', login_hint: '{person}@x.example' }],
  ['/oauth/bc-authorize', { scope: 'openid', login_hint: 'bob@x.example', organization: '{organization}' }],
  ['/oauth/bc-authorize', { scope: 'openid', id_token_hint: '{identity}' }],
  ['GET /oauth/authorize', { ...REQUEST, client_id: 'beta-flows', organization: '{organization}' }],
  ['GET /oauth/authorize', { ...REQUEST, client_id: 'beta-flows', prompt: 'none', id_token_hint: '{identity}' }],
]
/**
 * Endpoints that take names of nobody, or whose bearer is who is told: of a token that was issued to another client, RFC 7009
 * section 2.1 has the revocation refused.
 */
const ELSEWHERE = ['/oauth/revoke', '/oauth/userinfo', '/oauth/logout']

async function post(path: string, form: Names, client = 'beta-flows') {
  const get = path.startsWith('GET ')
  const url = world.issuer + path.replace('GET ', '')
  const authorization = `Basic ${Buffer.from(`${client}:${SECRET}`).toString('base64')}`
  const answer = await fetch(get ? `${url}?${new URLSearchParams(form)}` : url, {
    method: get ? 'GET' : 'POST',
    redirect: 'manual',
    ...(get ? {} : { headers: { authorization }, body: new URLSearchParams(form) }),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** What is another one each time. */
const VOLATILE =
  /"(?:access_token|refresh_token|id_token|device_code|user_code|auth_req_id|request_uri|verification_uri_complete)":"[^"]*"/g

async function told(path: string, form: Names, names: Names) {
  const filled = Object.fromEntries(
    Object.entries(form).map(([name, value]) => [
      name,
      value.replaceAll(/\{(\w+)\}/g, (_, one) => (one === 'own' ? own : (names[one] ?? '?'))),
    ]),
  )
  const { status, headers, text } = await post(path, filled)
  const all = Object.values(names)
  const shown = (one: string): string =>
    all
      .reduce((rest, name) => rest.replaceAll(name, '…').replaceAll(encodeURIComponent(name), '…'), one)
      .replaceAll(VOLATILE, '')
  const location = headers.get('location')?.replace(/interaction\/[\w-]+/, 'interaction/…') ?? ''
  const fields = ['content-type', 'cache-control', 'www-authenticate', 'retry-after', 'dpop-nonce'].map((name) =>
    headers.get(name),
  )
  return {
    status,
    fields,
    location: shown(location),
    text: shown(text)
      .replace(/interaction\/[\w-]+/g, '…')
      .replace(/nonce-?="?[\w+/=-]+/g, ''),
  }
}

test('there is a call for each grant and each endpoint', () => {
  const grants = CALLS.flatMap(([, { grant_type: one }]) => one ?? [])
  expect(new Set(grants)).toEqual(
    new Set(Array.isArray(metadata.grant_types_supported) ? metadata.grant_types_supported : []),
  )
  const endpoints = Object.entries(metadata).flatMap(([name, url]) =>
    /_endpoint$/.test(name) ? [new URL(String(url)).pathname] : [],
  )
  const called = CALLS.map(([path]) => path.replace('GET ', ''))
  expect(new Set(endpoints)).toEqual(new Set([...called, ...ELSEWHERE]))
})

test.each(CALLS)('%s with %j says no more of another tenant than of nobody', async (path, form) => {
  const [first, second] = [await told(path, form, theirs), await told(path, form, nobodys)]
  expect(first).toEqual(second)
  for (const name of ['Acme', 'EVE', 'Eve']) expect(first.text).not.toContain(name)
})
