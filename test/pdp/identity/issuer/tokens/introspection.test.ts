import { generateKeyPair, importJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { deriveKey, open } from '../../../../../pdp/shared/base/encryption.ts'
import { clientToken, type SignInRequest, signIn } from '../../../../support/sign-in.ts'
import { openStatementCounter } from '../../../../support/statements.ts'
import {
  API,
  CONTEXT,
  decode,
  MASTER_KEY,
  openWorld,
  PASSWORD,
  parseObject,
  REDIRECT,
  SECRET,
  type World,
} from '../../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const service = async (more = {}) =>
  (await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET, ...more })).access_token
const person = async (more: Partial<SignInRequest> = {}) => {
  const request = { issuer: world.issuer, clientId: 'web', clientSecret: SECRET, redirectUri: REDIRECT }
  return (await signIn({ ...request, email: 'eve@x.example', password: PASSWORD, ...more })).tokens
}
const isActive = async (token: string) => (await world.identity.introspect(token)).active
/** A token as we would sign it, with our own active key. */
async function sign(
  payload: { readonly [claim: string]: unknown },
  header: { readonly [member: string]: unknown } = {},
) {
  const [row] = await world.sql.query<{ kid: string; private_jwk_sealed: string }>(
    "select * from signing_key where state = 'active'",
  )
  const jwk = parseObject(open([deriveKey(MASTER_KEY, 'signing-key')], row?.kid ?? '', row?.private_jwk_sealed ?? ''))
  const key = await importJWK(jwk, 'RS256')
  return new SignJWT(payload)
    .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: row?.kid ?? '', ...header })
    .sign(key)
}

describe('introspection of an active token', () => {
  test('costs one statement, once the token is known', async () => {
    const url = new URL(inject('postgresUrl'))
    const [database] = await world.sql.query<{ name: string }>('select current_database() as name')
    url.pathname = `/${database?.name}`
    const counter = await openStatementCounter(url.href)
    const token = (await person()).access_token
    await world.identity.introspect(token)
    const counted = await counter.during(() => world.identity.introspect(token))
    await counter.close()
    expect(counted.filter(({ text }) => /oidc_record|client|user_account/.test(text))).toMatchObject([{ calls: 1 }])
  })

  test("tells a service token's subject, organization, app and scopes", async () => {
    const token = await service({ scope: 'decisions:read decisions:ask' })
    expect(await world.identity.introspect(token)).toEqual({
      active: true,
      subject: { type: 'service', id: 'robot' },
      organization: 'acme',
      clientId: 'robot',
      app: 'invoices',
      scopes: new Set(['decisions:read', 'decisions:ask']),
      audiences: [world.issuer],
      jkt: null,
      jti: decode(token).payload.jti,
      grantId: null,
      actors: [],
      issuedAtMs: Number(decode(token).payload.iat) * 1_000,
      expiresAtMs: Number(decode(token).payload.exp) * 1_000,
      acr: null,
      authTime: null,
      revocationKeys: [`jti ${decode(token).payload.jti}`, 'client robot'],
    })
  })

  test("tells a person's token with its grant and authentication context, which is not in the token", async () => {
    const { access_token: token } = await person()
    expect(await world.identity.introspect(token)).toMatchObject({
      subject: { type: 'user', id: 'eve' },
      organization: 'acme',
      clientId: 'web',
      app: null,
      grantId: expect.stringMatching(/^[\w-]{43}$/),
      acr: 'pwd',
      authTime: expect.any(Number),
    })
    for (const claim of ['acr', 'auth_time', 'amr']) expect(decode(token).payload).not.toHaveProperty(claim)
  })

  test('takes the app from the audience before the client, and follows the manifest', async () => {
    await world.putClient({
      id: 'robot',
      organization: 'acme',
      app: null,
      metadata: { grant_types: ['client_credentials'] },
    })
    const token = await service({ resource: API })
    expect(await world.identity.introspect(token)).toMatchObject({ app: 'invoices', audiences: [API] })
    expect(await world.identity.introspect(await service())).toMatchObject({ app: null })
    await world.putClient({
      id: 'robot',
      organization: 'acme',
      app: 'invoices',
      metadata: { grant_types: ['client_credentials'], scope: 'decisions:read decisions:ask' },
    })
  })
})

describe('a token is inactive on the very next call', () => {
  test('when its record is gone', async () => {
    const token = await service()
    expect(await isActive(token)).toBe(true)
    await world.sql.query('delete from oidc_record where id = $1', [decode(token).payload.jti])
    expect(await isActive(token)).toBe(false)
  })

  test.each([
    ['grant', "delete from oidc_record where kind = 'Grant' and id = $1"],
    ['binding', 'delete from grant_binding where grant_id = $1'],
  ])('when its %s is gone', async (_, statement) => {
    const { access_token: token } = await person()
    const state = await world.identity.introspect(token)
    await world.sql.query(statement, [state.active ? state.grantId : ''])
    expect(await world.identity.introspect(token)).toEqual({ active: false })
  })

  test('when its person is deleted', async () => {
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    const user = { id: 'gone', email: 'gone@x.example', emailVerified: true, name: null, passwordHash }
    await world.directory.putUser(user, CONTEXT)
    const { access_token: token } = await person({ email: user.email })
    expect(await isActive(token)).toBe(true)
    await world.directory.deleteUser('gone', CONTEXT)
    expect(await isActive(token)).toBe(false)
  })

  test('when its client is deleted', async () => {
    const stored = await world.directory.client('robot')
    if (stored === null) throw new Error('no client')
    await world.directory.putClient({ ...stored, id: 'short-lived' }, CONTEXT)
    const token = await service({ clientId: 'short-lived' })
    expect(await isActive(token)).toBe(true)
    await world.directory.deleteClient('short-lived', CONTEXT)
    expect(await isActive(token)).toBe(false)
  })

  test('when it has expired, to the second', async () => {
    const token = await service()
    const expiresAtMs = Number(decode(token).payload.exp) * 1_000
    world.time.atMs = expiresAtMs - 1
    expect(await isActive(token)).toBe(true)
    world.time.atMs = expiresAtMs
    expect(await isActive(token)).toBe(false)
    world.time.atMs = null
  })
})

describe('what is not an access token of ours is inactive', () => {
  test.each([[''], ['x'], ['a.b.c'], ['e30.e30.'], ['\0'], ['..'], ['a'.repeat(100_000)]])(
    'such as %j',
    async (text) => {
      expect(await isActive(text)).toBe(false)
    },
  )

  test('such as an ID token, a jti, a code verifier or half a token', async () => {
    const tokens = await person()
    const { jti } = decode(tokens.access_token).payload
    const cut = tokens.access_token.slice(0, -4)
    for (const text of [tokens.id_token ?? '', String(jti), cut, `${cut}AAAA`, `${tokens.access_token}.`]) {
      expect(await isActive(text)).toBe(false)
    }
  })

  test('such as one that was signed by us but never issued', async () => {
    const { payload } = decode(await service())
    expect(await isActive(await sign(payload))).toBe(true) // the very same token, signed again
    expect(await isActive(await sign({ ...payload, jti: 'never-issued' }))).toBe(false)
  })

  test('such as one whose record is of another kind of subject', async () => {
    const { payload } = decode(await service())
    expect(await isActive(await sign({ ...payload, sub: 'eve' }))).toBe(false)
    const { payload: personal } = decode((await person()).access_token)
    expect(await isActive(await sign({ ...personal, sub: 'web' }))).toBe(false)
    expect(await isActive(await sign({ ...personal, sub: 'nobody' }))).toBe(false)
  })

  test.each([
    ['another type', {}, { typ: 'JWT' }],
    ['another issuer', { iss: 'https://evil.example' }, {}],
    ['another confirmation than jkt', { cnf: { 'x5t#S256': 'a' } }, {}],
    ['an unknown critical header', {}, { crit: ['b64'], b64: true }],
  ])('such as one with %s', async (_, claims, header) => {
    const { payload } = decode(await service())
    expect(await isActive(await sign({ ...payload, ...claims }, header))).toBe(false)
  })

  test('such as one that another key signed under our kid', async () => {
    const token = await service()
    const { header, payload } = decode(token)
    const { privateKey } = await generateKeyPair('RS256')
    const forged = await new SignJWT(payload).setProtectedHeader({ ...header, alg: 'RS256' }).sign(privateKey)
    expect(await isActive(forged)).toBe(false)
  })
})

test('says that it cannot say when the store is gone', async () => {
  const other = await openWorld()
  const token = (await clientToken({ issuer: other.issuer, clientId: 'robot', clientSecret: SECRET })).access_token
  await other.store.close()
  await expect(other.identity.introspect(token)).rejects.toMatchObject({ code: 'store_unavailable' })
  const answer = await fetch(`${other.issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'robot', client_secret: SECRET, grant_type: 'client_credentials' }),
  })
  expect([answer.status, await answer.json()]).toMatchObject([503, { error: 'temporarily_unavailable' }])
  await other.close().catch(() => undefined)
})
