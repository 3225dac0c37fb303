import { exportJWK, generateKeyPair } from 'jose'
import { describe, expect, test } from 'vitest'
import { keySetIssues } from '../../../../../pdp/server/serve/management/clients/client-keys.ts'
import { registrationIssues } from '../../../../../pdp/server/serve/management/clients/client-registration.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'

async function keys(algorithm: string, options: object = {}) {
  const pair = await generateKeyPair(algorithm, { extractable: true, ...options })
  const json = async (key: Parameters<typeof exportJWK>[0]): Promise<JsonObject> =>
    JSON.parse(JSON.stringify(await exportJWK(key)))
  return { public: await json(pair.publicKey), private: await json(pair.privateKey) }
}
const ec = (await keys('ES256')).public
const rsa = (await keys('RS256')).public
const places = (key: JsonObject) => keySetIssues([ec, key]).map(({ place }) => place)

describe('keys of a client', () => {
  test.each(['RS256', 'PS256', 'ES256', 'ES384', 'Ed25519'])('for %s are taken', async (algorithm) => {
    expect(keySetIssues([{ ...(await keys(algorithm)).public, kid: 'k', use: 'sig', alg: algorithm }])).toEqual([])
  })

  test.each<[string, () => Promise<JsonObject> | JsonObject, string]>([
    ['of an unknown type', () => ({ ...ec, kty: 'ML-DSA' }), '/kty'],
    ['of a type in another case', () => ({ ...ec, kty: 'ec' }), '/kty'],
    ['without a type', () => ({ kid: 'x' }), '/kty'],
    ['that are symmetric', () => ({ kty: 'oct', k: 'c2VjcmV0' }), '/k'],
    ['that are private', async () => (await keys('ES256')).private, '/d'],
    ['that are private in a part', () => ({ ...rsa, dp: 'AQAB' }), '/dp'],
    ['that are too short', () => ({ ...rsa, n: String(rsa.n).slice(0, 171) }), '/n'],
    ['with a modulus of one bit less than needed', () => ({ ...rsa, n: `Pw${String(rsa.n).slice(2)}` }), '/n'],
    ['that are too long', () => ({ ...rsa, n: 'A'.repeat(100_000) }), '/n'],
    ['with another exponent than 65537', () => ({ ...rsa, e: Buffer.alloc(383, 0xff).toString('base64url') }), '/e'],
    ['for another algorithm', () => ({ ...rsa, alg: 'RS512' }), '/alg'],
    ['for a symmetric algorithm', () => ({ ...rsa, alg: 'HS256' }), '/alg'],
    ['for none', () => ({ ...rsa, alg: 'none' }), '/alg'],
    ['for encryption', () => ({ ...rsa, use: 'enc' }), '/use'],
    ['for other operations', () => ({ ...rsa, key_ops: ['encrypt'] }), '/key_ops'],
    ['on another curve', async () => (await keys('ES512')).public, ''],
    ['for agreement', async () => (await keys('ECDH-ES', { crv: 'X25519' })).public, ''],
    ['that are no point of their curve', () => ({ ...ec, x: 'AAAA' }), ''],
    ['with a member missing', () => ({ kty: 'EC', crv: 'P-256', x: ec.x ?? '' }), ''],
    ['whose algorithm is not the key’s', () => ({ ...ec, alg: 'RS256' }), ''],
  ])('%s are refused with their place', async (_, make, member) => {
    expect(places(await make())).toEqual([`/jwks/keys/1${member}`])
  })

  test('say how short they are', () => {
    const short = { ...rsa, n: `Pw${String(rsa.n).slice(2)}` }
    expect(keySetIssues([short])[0]?.message).toBe('has 2046 bits; at least 2048 are needed')
  })

  test.each<[object, readonly string[]]>([
    [{}, ['/jwks']],
    [{ jwks_uri: 'https://client.example/jwks' }, []],
    [{ jwks_uri: 'https://client.example/jwks', jwks: { keys: [] } }, ['/jwks_uri']],
    [{ jwks_uri: 'https://client.example/jwks', token_endpoint_auth_method: 'none' }, ['/jwks_uri']],
    [{ jwks_uri: 'https://client.example/jwks', client_secret: 's'.repeat(20) }, ['/client_secret']],
  ])('are given once, in the registration or by their address: %j', (given, places) => {
    const body = { token_endpoint_auth_method: 'private_key_jwt', grant_types: ['client_credentials'] }
    const issues = registrationIssues({ ...body, redirect_uris: [], ...given })
    expect(issues.map(({ place }) => place).filter((place) => place !== '/grant_types')).toEqual(places)
  })
})
