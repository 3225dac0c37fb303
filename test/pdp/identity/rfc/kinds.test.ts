/** RFC 8725 section 3.12: each kind of credential is taken where it is wanted, and nowhere else. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { createBrowser } from '../../../support/browser.ts'
import { createFlow } from '../flow.ts'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EXCHANGE } from '../flows.ts'
import { decode, openWorld, parseObject, postToken, REDIRECT, SECRET, type World } from '../harness.ts'
import { type ClientKey, digestOf, type Members, newClientKey, proveKey, signAsUs } from './forge.ts'

const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const lines: string[] = []
let world: World
let flows: ReturnType<typeof createFlows>
/** One key for proofs and assertions, so that it does not tell them apart. */
let key: ClientKey
let subject: string
/** Bound to the key. */
let bound: string

beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  key = await newClientKey()
  const { kty = '', crv = '', x = '', y = '' } = key.jwk
  const metadata = {
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [{ kty, crv, x, y, alg: 'ES256', use: 'sig' }] },
  }
  await world.putClient({ id: 'keyed', metadata })
  subject = (await flows.code(eve)).tokens.access_token
  const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN }
  const { body } = await postToken(world, form, { id: 'gateway', headers: { dpop: await proveKey(world, key) } })
  bound = String(body.access_token)
})
afterAll(async () => {
  console.log(`what is taken where\n${lines.join('\n')}`)
  await world.close()
})
const eve = { person: 'eve', organization: 'acme' }

/** What would make a body right for a place, put into every JWT that is shown there: only the type then tells. */
const fits = (place: Place): Members => (place === 'proof at UserInfo' ? userinfoFit() : {})
const userinfoFit = (): Members => ({ htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, ath: digestOf(bound) })
const assertionBody = (): Members => ({
  iss: 'keyed',
  sub: 'keyed',
  aud: world.issuer,
  client_id: 'keyed',
  exp: Math.floor(Date.now() / 1_000) + 60,
})

const kinds = [
  ...(['access token', 'ID token', 'refresh token', 'DPoP proof', 'client assertion'] as const),
  ...(['authorization code', 'device code', 'auth_req_id', 'jti', 'security event token'] as const),
]
type Kind = (typeof kinds)[number]
const KINDS: Record<Kind, (place: Place) => Promise<string>> = {
  'access token': async () => (await flows.code(eve)).tokens.access_token,
  'ID token': async () => (await flows.code(eve)).tokens.id_token ?? '',
  'refresh token': async () => (await flows.code(eve)).tokens.refresh_token ?? '',
  'DPoP proof': async (place) => proveKey(world, key, { ...assertionBody(), ...fits(place) }),
  'client assertion': async (place) => proveKey(world, key, { ...assertionBody(), ...fits(place) }, { typ: undefined }),
  'authorization code': async () => {
    const parameters = { client_id: 'flows', scope: 'openid' }
    return (await createFlow(world).authorize(parameters)).searchParams.get('code') ?? ''
  },
  'device code': async () => {
    const { started, browser } = await flows.startDevice(eve)
    await flows.answerDevice(browser, started.verification_uri, eve, started.user_code)
    return started.device_code
  },
  auth_req_id: async () => {
    const { started } = await flows.startCiba(eve)
    await flows.answerCiba(createBrowser(world.issuer), eve)
    return started.auth_req_id
  },
  'security event token': async (place) => {
    const { payload } = decode((await flows.code(eve)).tokens.access_token)
    const events = { 'https://schemas.openid.net/secevent/caep/event-type/session-revoked': {} }
    return (await world.identity.signSet({ ...payload, ...fits(place), events } as JsonObject)).token
  },
  jti: async () => String(decode((await flows.code(eve)).tokens.access_token).payload.jti),
}

const token = async (form: Record<string, string>, options: Parameters<typeof postToken>[2] = { id: 'flows' }) =>
  (await postToken(world, form, options)).status === 200
const authorized = async (path: string, authorization: string, headers: Record<string, string> = {}) =>
  (await fetch(world.issuer + path, { headers: { authorization, ...headers } })).status === 200

/** True when the text is taken for what is wanted there. */
const PLACES = {
  'bearer at UserInfo': (text) => authorized('/oauth/userinfo', `Bearer ${text}`),
  subject_token: (text) =>
    token({ grant_type: EXCHANGE, subject_token: text, subject_token_type: ACCESS_TOKEN }, { id: 'gateway' }),
  actor_token: (text) => {
    const actor = { actor_token: text, actor_token_type: ACCESS_TOKEN }
    const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN, ...actor }
    return token(form, { id: 'gateway' })
  },
  introspection: async (text) => {
    const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
    const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token: text }) }
    return parseObject(await (await fetch(`${world.issuer}/oauth/introspect`, init)).text()).active === true
  },
  decisions: async (text) => (await world.identity.recognize(text)).active,
  'id_token_hint at sign-out': async (text) => {
    const query = new URLSearchParams({ id_token_hint: text, client_id: 'flows' })
    return (await fetch(`${world.issuer}/oauth/logout?${query}`)).status === 200
  },
  'id_token_hint at sign-in': async (text) => {
    const error = await createFlow(world).errorOf({ client_id: 'flows', id_token_hint: text, prompt: 'none' })
    return error === 'login_required'
  },
  refresh_token: (text) => token({ grant_type: 'refresh_token', refresh_token: text }),
  code: (text) => {
    const form = { grant_type: 'authorization_code', code: text, redirect_uri: REDIRECT, code_verifier: 'v'.repeat(43) }
    return token(form)
  },
  device_code: (text) => token({ grant_type: DEVICE_CODE, device_code: text }),
  auth_req_id: (text) => token({ grant_type: CIBA, auth_req_id: text }),
  'proof at the token endpoint': (text) =>
    token({ grant_type: 'client_credentials' }, { id: 'robot', headers: { dpop: text } }),
  'proof at UserInfo': (text) => authorized('/oauth/userinfo', `DPoP ${bound}`, { dpop: text }),
  client_assertion: (text) =>
    token({ grant_type: 'client_credentials', client_assertion_type: ASSERTION, client_assertion: text }, {}),
  'request object': async (text) => (await createFlow(world).errorOf({ request: text })) === null,
} satisfies Record<string, (text: string) => Promise<boolean>>
type Place = keyof typeof PLACES

const WANTED: Record<Place, readonly Kind[]> = {
  'bearer at UserInfo': ['access token'],
  subject_token: ['access token'],
  actor_token: ['access token'],
  introspection: ['access token', 'refresh token'],
  decisions: ['access token'],
  'id_token_hint at sign-out': ['ID token'],
  'id_token_hint at sign-in': ['ID token'],
  refresh_token: ['refresh token'],
  code: ['authorization code'],
  device_code: ['device code'],
  auth_req_id: ['auth_req_id'],
  'proof at the token endpoint': ['DPoP proof'],
  'proof at UserInfo': ['DPoP proof'],
  client_assertion: ['client assertion'],
  'request object': [],
}

const places = Object.keys(PLACES).filter((name): name is Place => name in PLACES)

/** One of each is enough: what is refused is not used up, and what may be taken is made anew. */
const made = new Map<string, string>()
async function shown(kind: Kind, place: Place): Promise<string> {
  const isFitted = kind === 'DPoP proof' || kind === 'client assertion'
  if (isFitted || WANTED[place].includes(kind)) return KINDS[kind](place)
  const known = made.get(kind) ?? (await KINDS[kind](place))
  made.set(kind, known)
  return known
}

describe('where one kind is wanted, another is refused', () => {
  test.each(places)('%s', async (place) => {
    const taken: Kind[] = []
    for (const kind of kinds) if (await PLACES[place](await shown(kind, place))) taken.push(kind)
    lines.push(`${place.padEnd(30)} ${kinds.map((kind) => (taken.includes(kind) ? kind : '-')).join(' | ')}`)
    expect(taken).toEqual(WANTED[place])
  })
})

const TYPES: readonly (string | undefined)[] = [
  ...['at+jwt', 'JWT', 'dpop+jwt', 'client-authentication+jwt', 'logout+jwt', 'secevent+jwt'],
  ...['token-introspection+jwt', 'oauth-authz-req+jwt', 'application/jwt', 'at+jwt;x', undefined],
]

/** The body and the signer are right; the type alone is another's. */
type TypeCase = readonly [
  place: Place,
  accepted: readonly (string | undefined)[],
  make: (typ: string | undefined) => Promise<string>,
]
const TYPE_CASES: readonly TypeCase[] = [
  ['bearer at UserInfo', ['at+jwt'], async (typ) => signAsUs(world, decode(subject).payload, { typ })],
  ['subject_token', ['at+jwt'], async (typ) => signAsUs(world, decode(subject).payload, { typ })],
  ['decisions', ['at+jwt'], async (typ) => signAsUs(world, decode(subject).payload, { typ })],
  ['id_token_hint at sign-out', ['JWT', 'application/jwt', undefined], async (typ) => idToken(typ)],
  ['id_token_hint at sign-in', ['JWT', 'application/jwt', undefined], async (typ) => idToken(typ)],
  ['proof at the token endpoint', ['dpop+jwt'], async (typ) => proveKey(world, key, {}, { typ })],
  ['proof at UserInfo', ['dpop+jwt'], async (typ) => proveKey(world, key, userinfoFit(), { typ })],
  [
    'client_assertion',
    ['JWT', 'client-authentication+jwt', 'application/jwt', undefined],
    async (typ) => proveKey(world, key, assertionBody(), { typ }),
  ],
]
describe.each(TYPE_CASES)('%s', (place, accepted, make) => {
  test.each(TYPES)('takes typ %s only if it is its own', async (typ) => {
    expect(await PLACES[place](await make(typ))).toBe(accepted.includes(typ))
  })
})

async function idToken(typ: string | undefined): Promise<string> {
  return signAsUs(world, { ...decode(await shown('ID token', 'refresh_token')).payload, jti: randomUUID() }, { typ })
}
