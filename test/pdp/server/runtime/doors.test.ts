/** RFC 8725 section 3.12 over the whole product: every kind of token, and every way to send one, at every door of a running PDP. */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { exportJWK, type JWTHeaderParameters, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SERVICE_SCOPES } from '../../../../pdp/identity/oauth/scopes.ts'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { createFlow } from '../../identity/flow.ts'
import { createFlows } from '../../identity/flows.ts'
import { API, CONTEXT, decode, postToken, SECRET } from '../../identity/harness.ts'
import { type ClientKey, digestOf, type Members, newClientKey, proveKey, signAsUs } from '../../identity/rfc/forge.ts'
import { decisionClient } from '../serve/decision-client.ts'
import { openRunningWorld, type RunningWorld } from './running-world.ts'

const EVERYTHING = SERVICE_SCOPES.join(' ')
const CA = readFileSync(join(import.meta.dirname, '../../../support/certificates/ca.pem'))
const eve = { person: 'eve', organization: 'acme' }
let world: RunningWorld
let flows: ReturnType<typeof createFlows>
let key: ClientKey
/** Of a client with every scope; each forged token has its claims. */
let manager: string
/** Of the same client, bound to the key. */
let bound: string
beforeAll(async () => {
  world = await openRunningWorld()
  flows = createFlows(world)
  key = await newClientKey()
  const metadata = { grant_types: ['client_credentials'], scope: EVERYTHING }
  const rest = { app: null, organization: 'acme', metadata, secretHash: hashGeneratedSecret(SECRET) }
  await world.directory.putClient({ id: 'manager', ...rest }, CONTEXT)
  const written = ['user:eve', 'service:manager'].map((subject) => {
    const tuple = { object: 'doc:1', relation: 'viewer', subject, expiresAtMs: null }
    return { kind: 'tuple', op: 'write', tuple } as const
  })
  await world.store.write('acme', written, { context: CONTEXT })
  manager = await serviceToken('manager', { scope: EVERYTHING })
  bound = await serviceToken('manager', { scope: EVERYTHING }, { dpop: await proveKey(world, key) })
})
afterAll(() => world.close())

async function serviceToken(id: string, form: Record<string, string> = {}, headers: Record<string, string> = {}) {
  const { body } = await postToken(world, { grant_type: 'client_credentials', ...form }, { id, headers })
  return String(body.access_token)
}

type HttpDoor = { readonly method: string; readonly path: string; readonly body?: object }
const CHECK = { relation: 'viewer', resource: 'doc:1' }
const EVALUATION = {
  subject: { type: 'user', id: 'eve' },
  action: { name: 'viewer' },
  resource: { type: 'doc', id: '1' },
}
const HTTP = {
  decisions: { method: 'POST', path: '/oauth/decisions', body: { permissions: [CHECK] } },
  AuthZEN: { method: 'POST', path: '/access/v1/evaluation', body: EVALUATION },
  management: { method: 'GET', path: '/v1/organizations/acme/members' },
  'Shared Signals': { method: 'GET', path: '/ssf/stream' },
  SCIM: { method: 'GET', path: '/scim/v2/Users' },
  UserInfo: { method: 'GET', path: '/oauth/userinfo' },
} satisfies { readonly [name: string]: HttpDoor }
type Sent = { readonly [field: string]: string | string[] }

/** True when the token was taken: a question was allowed, or the call was answered. */
async function takes({ method, path, body }: HttpDoor, headers: Sent): Promise<boolean> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = request(world.issuer + path, { method, headers: { ...type, ...headers } })
  const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    sent.on('error', reject).on('response', async (response) => {
      let text = ''
      for await (const piece of response) text += piece
      resolve({ status: response.statusCode, text })
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
  const isDecision = path === HTTP.decisions.path
  return answer.status === 200 && (!isDecision || answer.text.includes('"allowed":true'))
}

/** True when the call is answered, and the question about the token is allowed. */
async function takesOverGrpc(of: { readonly token: string; readonly caller: string }): Promise<boolean> {
  const client = decisionClient(world.grpc, CA)
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${of.caller}`)
  try {
    const { permissions } = await client.decide({ token: of.token, permissions: [CHECK] }, metadata)
    return permissions[0]?.allowed === true
  } catch {
    return false
  } finally {
    client.close()
  }
}
const DOORS = {
  ...HTTP,
  'gRPC, about the token': (token: string) => takesOverGrpc({ token, caller: manager }),
  'gRPC, as caller': (token: string) => takesOverGrpc({ token: manager, caller: token }),
} satisfies { readonly [name: string]: HttpDoor | ((token: string) => Promise<boolean>) }
type Door = keyof typeof DOORS

async function takenAt(token: string): Promise<readonly string[]> {
  const taken: string[] = []
  for (const [name, door] of Object.entries(DOORS)) {
    const isTaken = typeof door === 'function' ? door(token) : takes(door, { authorization: `Bearer ${token}` })
    if (await isTaken) taken.push(name)
  }
  return taken
}

const now = (): number => Math.floor(Date.now() / 1_000)
const claims = (over: Members = {}): JsonObject => ({ ...decode(manager).payload, ...over }) as JsonObject
const ours = (over: Members = {}, header: Members = {}) => signAsUs(world, claims(over), header)
const stranger = generateKeyPairSync('rsa', { modulusLength: 2_048 })
/** The claims under a header like ours, by a key that is not ours. */
const forged = (by: typeof stranger.privateKey | Buffer, header: JWTHeaderParameters) =>
  new SignJWT(claims())
    .setProtectedHeader({ typ: 'at+jwt', kid: String(decode(manager).header.kid), ...header })
    .sign(by)
const EVENT = 'https://schemas.openid.net/secevent/caep/event-type/session-revoked'

const SERVICE: readonly Door[] = ['decisions', 'AuthZEN', 'management', 'Shared Signals', 'SCIM']
const GRPC: readonly Door[] = ['gRPC, about the token', 'gRPC, as caller']
const PERSON: readonly Door[] = ['decisions', 'AuthZEN', 'UserInfo', 'gRPC, about the token']
/** Each with the doors that take it. */
const KINDS: { readonly [kind: string]: readonly [readonly Door[], () => Promise<string>] } = {
  'a service’s token for the issuer': [[...SERVICE, ...GRPC], async () => manager],
  'the same claims, signed by us again': [[...SERVICE, ...GRPC], () => ours()],
  'the same with the whole media type as typ': [[...SERVICE, ...GRPC], () => ours({}, { typ: 'application/at+jwt' })],
  'a person’s token for the issuer': [PERSON, async () => (await flows.code(eve)).tokens.access_token],
  'a person’s token for an API': [
    PERSON,
    async () => (await flows.code({ ...eve, resource: API })).tokens.access_token,
  ],
  // A service that got it may ask about its bearer (RFC 9449 leaves no other way), and nothing else.
  'a token that is bound to a key': [['decisions', 'gRPC, about the token'], async () => bound],
  'a service’s token for an API': [[], () => serviceToken('robot', { resource: API, scope: 'orders:read' })],
  'a service’s token without scopes': [
    [...GRPC.slice(0, 1), 'decisions'],
    () => serviceToken('manager', { scope: 'audit:read' }),
  ],
  'an ID token': [[], async () => (await flows.code(eve)).tokens.id_token ?? ''],
  'a refresh token': [[], async () => (await flows.code(eve)).tokens.refresh_token ?? ''],
  'an authorization code': [
    [],
    async () =>
      (await createFlow(world).authorize({ client_id: 'flows', scope: 'openid' })).searchParams.get('code') ?? '',
  ],
  'a device code': [[], async () => (await flows.startDevice(eve)).started.device_code],
  'an auth_req_id': [[], async () => (await flows.startCiba(eve)).started.auth_req_id],
  'a client assertion': [[], () => proveKey(world, key, claims({ iss: 'manager' }), { typ: undefined })],
  'a DPoP proof': [[], () => proveKey(world, key, claims())],
  'a revoked token': [
    [],
    async () => {
      const token = await serviceToken('manager', { scope: EVERYTHING })
      const headers = { authorization: `Basic ${btoa(`manager:${SECRET}`)}` }
      await fetch(`${world.issuer}/oauth/revoke`, { method: 'POST', headers, body: new URLSearchParams({ token }) })
      return token
    },
  ],
  ...Object.fromEntries(
    [
      ...[
        'JWT',
        'logout+jwt',
        'secevent+jwt',
        'token-introspection+jwt',
        'oauth-authz-req+jwt',
        'dpop+jwt',
        'at+jwt;v=1',
      ],
      ...[undefined, ['at+jwt']],
    ].map((typ) => [`typ ${typ}`, [[], () => ours({ events: { [EVENT]: {} } }, { typ })]]),
  ),
  ...Object.fromEntries(
    [undefined, 'nobody', '../../../dev/null', 1].map((kid) => [`kid ${kid}`, [[], () => ours({}, { kid })]]),
  ),
  'alg none': [[], async () => new UnsecuredJWT(claims()).encode()],
  'no signature': [[], async () => `${manager.slice(0, manager.lastIndexOf('.'))}.`],
  'another spelling of the signature': [[], async () => `${manager}=`],
  'HS256 with our public key': [
    [],
    async () => {
      const keys = await (await fetch(`${world.issuer}/oauth/jwks`)).text()
      return forged(Buffer.from(keys), { alg: 'HS256' })
    },
  ],
  'RS256 by another key': [[], () => forged(stranger.privateKey, { alg: 'RS256' })],
  'PS256 by another key': [[], () => forged(stranger.privateKey, { alg: 'PS256' })],
  'a key of its own in the header': [
    [],
    async () => {
      const jwk = await exportJWK(stranger.publicKey)
      return forged(stranger.privateKey, { alg: 'RS256', jwk, jku: `${world.issuer}/oauth/jwks` })
    },
  ],
  'a critical extension': [
    [],
    async () => {
      const [, payload, signature] = (await ours()).split('.')
      const header = { ...decode(manager).header, crit: ['b64'], b64: true }
      return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.${signature}`
    },
  ],
  'an encrypted token': [[], async () => `${btoa('{"alg":"dir","enc":"A128GCM"}')}.a.b.c.d`],
  'another issuer': [[], () => ours({ iss: 'https://evil.example' })],
  'the issuer with a slash more': [[], () => ours({ iss: `${world.issuer}/` })],
  'the issuer in a list': [[], () => ours({ iss: [world.issuer] })],
  'an id that we did not give': [[], () => ours({ jti: randomUUID() })],
  'the id of a person’s token': [
    [],
    async () => ours({ jti: decode((await flows.code(eve)).tokens.access_token).payload.jti }),
  ],
  'no audience': [[], () => ours({ aud: undefined })],
  'a list of no audiences': [[], () => ours({ aud: [] })],
  'an end that has passed': [[], () => ours({ exp: now() - 1 })],
  'no end': [[], () => ours({ exp: undefined })],
  'an end in text': [[], () => ours({ exp: `${now() + 600}` })],
  'a beginning ahead': [[], () => ours({ nbf: now() + 600 })],
  'a time of issue ahead': [[], () => ours({ iat: now() + 600 })],
}

test.each(Object.entries(KINDS))('%s is taken at its own doors alone', async (_, [doors, make]) => {
  expect(await takenAt(await make())).toEqual(Object.keys(DOORS).filter((door) => doors.some((own) => own === door)))
})

const proofFor = ({ method, path }: HttpDoor, over: Members = {}, by = key) =>
  proveKey(world, by, { htm: method, htu: world.issuer + path, ath: digestOf(bound), ...over })
/** How the manager's token may come, and whether it is taken where it is good. */
const WAYS: { readonly [way: string]: readonly [boolean, (door: HttpDoor) => Promise<Sent>] } = {
  'as bearer': [true, async () => ({ authorization: `Bearer ${manager}` })],
  'with the scheme in capitals': [true, async () => ({ authorization: `BEARER ${manager}` })],
  'in two fields': [false, async () => ({ authorization: [`Bearer ${manager}`, `Bearer ${manager}`] })],
  'with another after a comma': [false, async () => ({ authorization: `Bearer ${manager}, Bearer x` })],
  'without a scheme': [false, async () => ({ authorization: manager })],
  'as the password of Basic': [false, async () => ({ authorization: `Basic ${btoa(`manager:${manager}`)}` })],
  'in X-Access-Token': [false, async () => ({ 'x-access-token': manager })],
  'as a cookie': [false, async () => ({ cookie: `access_token=${manager}; portcullis_session=${manager}` })],
  'as DPoP, but not bound': [
    false,
    async (door) => ({ authorization: `DPoP ${manager}`, dpop: await proofFor(door, { ath: digestOf(manager) }) }),
  ],
  'bound, with its proof': [true, async (door) => ({ authorization: `DPoP ${bound}`, dpop: await proofFor(door) })],
  'bound, without a proof': [false, async () => ({ authorization: `DPoP ${bound}` })],
  'bound, with a proof for another method': [
    false,
    async (door) => ({ authorization: `DPoP ${bound}`, dpop: await proofFor(door, { htm: 'DELETE' }) }),
  ],
  'bound, with a proof for another path': [
    false,
    async (door) => ({
      authorization: `DPoP ${bound}`,
      dpop: await proofFor(door, { htu: `${world.issuer}/oauth/token` }),
    }),
  ],
  'bound, with a proof for another token': [
    false,
    async (door) => ({ authorization: `DPoP ${bound}`, dpop: await proofFor(door, { ath: digestOf(manager) }) }),
  ],
  'bound, with a proof by another key': [
    false,
    async (door) => ({ authorization: `DPoP ${bound}`, dpop: await proofFor(door, {}, await newClientKey()) }),
  ],
  'bound, with an old proof': [
    false,
    async (door) => ({ authorization: `DPoP ${bound}`, dpop: await proofFor(door, { iat: now() - 600 }) }),
  ],
  'bound, with two proofs': [
    false,
    async (door) => ({ authorization: `DPoP ${bound}`, dpop: [await proofFor(door), await proofFor(door)] }),
  ],
}
describe.each(SERVICE)('at %s, a token', (name) => {
  const door: HttpDoor = HTTP[name as keyof typeof HTTP]
  test.each(Object.entries(WAYS))('%s', async (_, [isTaken, headers]) => {
    expect(await takes(door, await headers(door))).toBe(isTaken)
  })

  test('in the query, or with a proof that was used before, is refused', async () => {
    expect(await takes({ ...door, path: `${door.path}?access_token=${manager}` }, {})).toBe(false)
    const headers = { authorization: `DPoP ${bound}`, dpop: await proofFor(door) }
    expect([await takes(door, headers), await takes(door, headers)]).toEqual([true, false])
  })
})
