/** RFC 9068 and RFC 8725: what is in every access token that we mint, and which texts are never taken for one. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { CompactEncrypt, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deriveKey, open } from '../../../../pdp/shared/base/encryption.ts'
import { importKey } from '../../../../pdp/shared/token/keys.ts'
import { createFlows, USER_GRANTS } from '../flows.ts'
import { API, decode, MASTER_KEY, openWorld, parseObject, postToken, type World } from '../harness.ts'
import { type Members, signAsUs } from './forge.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let token: string
let payload: JWTPayload
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  token = (await flows.code(eve)).tokens.access_token
  payload = decode(token).payload
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const isActive = async (text: string) => (await world.identity.introspect(text)).active
const atUserinfo = (text: string) =>
  fetch(`${world.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${text}` } })

describe('every access token', () => {
  test.each(USER_GRANTS)('of %s says at+jwt and RS256, and is for the resource that was asked for', async (grant) => {
    for (const resource of [undefined, API]) {
      const request = {
        ...eve,
        scope: 'openid offline_access orders:read',
        ...(resource === undefined ? {} : { resource }),
      }
      const { tokens } = await (grant === 'exchange'
        ? flows.exchangeOf(token, eve, { ...(resource === undefined ? {} : { resource }), scope: 'openid orders:read' })
        : flows.obtain(grant, request))
      const { header, payload: claims } = decode(tokens.access_token)
      expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: world.identity.publicKeys()[0]?.kid })
      expect(claims).toMatchObject({ aud: resource ?? world.issuer, scope: 'openid orders:read', client_id: 'flows' })
    }
  })

  test('has an id of its own, of at least 128 bits', async () => {
    const mint = async () => {
      const { body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
      return String(decode(String(body.access_token)).payload.jti)
    }
    const ids = await Promise.all(Array.from({ length: 50 }, mint))
    expect(new Set(ids).size).toBe(50)
    for (const id of ids) expect(id).toMatch(/^[\w-]{22,}$/)
  })

  test('is signed by a key of 2,048 bits at least, made here', () => {
    for (const jwk of world.identity.publicKeys()) {
      const { modulusLength } = createPublicKey({ key: { ...jwk }, format: 'jwk' }).asymmetricKeyDetails ?? {}
      expect(modulusLength).toBeGreaterThanOrEqual(2_048)
    }
  })
})

describe('a key', () => {
  const jwkOf = (bits: number) => ({
    ...generateKeyPairSync('rsa', { modulusLength: bits }).publicKey.export({ format: 'jwk' }),
    kid: 'k',
  })
  test.each([
    [1_024, false],
    [2_040, false],
    [2_048, true],
  ])('of %i bits verifies: %s (RFC 7518 section 3.3)', (bits, good) => {
    expect(importKey(jwkOf(bits)) !== null).toBe(good)
  })

  test.each([
    { kty: 'oct', k: 'AAAA' },
    { kty: 'RSA' },
    { kty: 'EC', crv: 'secp256k1', x: 'AA', y: 'AA' },
    { use: 'enc' },
  ])('such as %j does not', (jwk) => {
    expect(importKey('use' in jwk ? { ...jwkOf(2_048), ...jwk } : jwk)).toBeNull()
  })
})

/** The claims of a good token, so that only the form is wrong. */
describe('is never taken for an access token, though our key signed it:', () => {
  const seconds = () => Math.floor(Date.now() / 1_000)
  const cases: { readonly [why: string]: readonly [claims: () => Members, header?: Members] } = {
    'one of another issuer': [() => ({ iss: 'https://evil.example' })],
    'one of our issuer with a slash more': [() => ({ iss: `${world.issuer}/` })],
    'one of our issuer in capitals': [() => ({ iss: world.issuer.toUpperCase() })],
    'one without iss': [() => ({ iss: undefined })],
    'one without aud': [() => ({ aud: undefined })],
    'one without sub': [() => ({ sub: undefined })],
    'one without exp': [() => ({ exp: undefined })],
    'one without iat': [() => ({ iat: undefined })],
    'one without jti': [() => ({ jti: undefined })],
    'one without client_id': [() => ({ client_id: undefined })],
    'one that expires now': [() => ({ exp: seconds() })],
    'one that expired as text': [() => ({ exp: String(seconds() + 60) })],
    'one that is not valid yet': [() => ({ nbf: seconds() + 300 })],
    'one from the future': [() => ({ iat: seconds() + 300 })],
    'one whose jti is another kind of record': [() => ({ jti: 'Session' })],
    'one with a jti that is SQL': [() => ({ jti: `' or '1'='1` })],
    'one with a kid that is SQL': [() => ({}), { kid: `' or '1'='1` }],
    'one with a kid that is a path': [() => ({}), { kid: '../../../dev/null' }],
    'one with a kid from the prototype': [() => ({}), { kid: 'constructor' }],
    'one with a key in its header, and an unknown kid': [() => ({}), { kid: 'x', jwk: { kty: 'oct', k: 'AAAA' } }],
    'a compressed one': [() => ({}), { zip: 'DEF' }],
    'one with an unknown critical member': [() => ({}), { crit: ['exp'], exp: 1 }],
  }
  test.each(Object.entries(cases))('%s', async (_, [claims, header]) => {
    const forged = await signAsUs(world, { ...payload, ...claims() }, header).catch(() => rawSigned(claims(), header))
    expect(await isActive(forged)).toBe(false)
    const answer = await atUserinfo(forged)
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringMatching(/^Bearer error="invalid_token"/),
    ])
  })

  test('the good one, encrypted', async () => {
    const [jwk] = world.identity.publicKeys()
    const key = createPublicKey({ key: { ...jwk }, format: 'jwk' })
    const encrypted = await new CompactEncrypt(Buffer.from(token))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', typ: 'at+jwt', cty: 'JWT' })
      .encrypt(key)
    expect(await isActive(encrypted)).toBe(false)
    expect((await atUserinfo(encrypted)).status).toBe(401)
    const metadata = await (await fetch(`${world.issuer}/.well-known/openid-configuration`)).text()
    expect(metadata).not.toMatch(/encryption|RSA1_5|RSA-OAEP/)
  })

  test('one with our public key as the secret of an HMAC', async () => {
    const [jwk] = world.identity.publicKeys()
    const pem = createPublicKey({ key: { ...jwk }, format: 'jwk' }).export({ format: 'pem', type: 'spki' })
    for (const secret of [
      Buffer.from(pem),
      Buffer.from(JSON.stringify(jwk)),
      Buffer.from(String(jwk?.n), 'base64url'),
    ]) {
      const forged = await new SignJWT(payload)
        .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: String(jwk?.kid) })
        .sign(secret)
      expect(await isActive(forged)).toBe(false)
    }
  })
})

describe('a JWT that names a member twice', () => {
  test('counts with the last one, for every reader alike (RFC 7515 section 4)', async () => {
    expect(await isActive(await rawSigned({}, {}, ['"typ":"JWT",', '']))).toBe(true)
    expect(await isActive(await rawSigned({}, {}, ['', ',"typ":"JWT"']))).toBe(false)
    const sub = await rawSigned({}, {}, ['', ''], ['', ',"sub":"ann"'])
    expect(await isActive(sub)).toBe(true)
    expect(await world.identity.introspect(sub)).toMatchObject({ subject: { id: 'ann' } })
    const own = await (await atUserinfo(sub)).text()
    expect(parseObject(own).sub).toBe('ann')
  })
})

/** Signed as it is: a library would refuse to make what we must refuse to take. `[before, after]` the members. */
async function rawSigned(
  claims: Members,
  header: Members = {},
  inHeader = ['', ''],
  inPayload = ['', ''],
): Promise<string> {
  const { sign } = await import('node:crypto')
  const [row] = await world.sql.query<{ kid: string; private_jwk_sealed: string }>(
    "select * from signing_key where state = 'active'",
  )
  const jwk = parseObject(open([deriveKey(MASTER_KEY, 'signing-key')], row?.kid ?? '', row?.private_jwk_sealed ?? ''))
  const part = (value: object, [before = '', after = '']: readonly string[]) =>
    Buffer.from(`{${before}${JSON.stringify(value).slice(1, -1)}${after}}`).toString('base64url')
  const full = { alg: 'RS256', typ: 'at+jwt', kid: row?.kid, ...header }
  const input = `${part(full, inHeader)}.${part({ ...payload, ...claims }, inPayload)}`
  return `${input}.${sign('sha256', Buffer.from(input), { key: jwk, format: 'jwk' }).toString('base64url')}`
}
