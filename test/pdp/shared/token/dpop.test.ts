import { generateKeyPairSync } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AccessClaims } from '../../../../pdp/shared/token/claims.ts'
import { createProofVerifier, type ProofRequest } from '../../../../pdp/shared/token/dpop.ts'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { createNonces } from '../../../../pdp/shared/token/nonces.ts'
import { processReplayMemory } from '../../../../pdp/shared/token/replay.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import {
  type Claims,
  createIssuer,
  ecKeys,
  type KeyPair,
  proof,
  rsaKeys,
  thumbprint,
} from '../../../support/peers/issuer.ts'

const URL_OF_REQUEST = 'https://app.test/invoices/1'
let now = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => now
const seconds = (): number => Math.floor(now / 1_000)

let keys: KeyPair
let token: string
let claims: AccessClaims & { readonly jkt: string }
beforeAll(async () => {
  keys = ecKeys()
  const issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock })
  const jkt = await thumbprint(keys.publicKey)
  token = await issuer.token({ cnf: { jkt } })
  const source = localKeys(() => issuer.jwks.keys, clock)
  const verifier = createTokenVerifier({
    issuers: [{ issuer: issuer.issuer, keys: source, algorithms: ['RS256'] }],
    audience: null,
    clock,
  })
  claims = { ...(await verifier.verify(token)), jkt }
})
beforeEach(() => {
  now = Date.parse('2026-01-01T00:00:00Z')
})

const verifier = (entriesMax = 100) =>
  createProofVerifier({ clock, replay: processReplayMemory({ clock, entriesMax }) })
const make = (over: { claims?: Claims; header?: Claims; keys?: KeyPair } = {}): Promise<string> =>
  proof({ keys, method: 'GET', url: URL_OF_REQUEST, token, clock, ...over })
const request = (...proofs: string[]): ProofRequest => ({ proofs, method: 'GET', url: URL_OF_REQUEST })

test('accepts a proof of the key, the request and the token', async () => {
  await expect(verifier()(request(await make()), claims)).resolves.toBeUndefined()
})

test.each(['https://APP.test:443/invoices/1', 'HTTPS://app.test/invoices/1?x=1#f', 'https://app.test/%69nvoices/%31'])(
  'accepts htu %s, which names the same resource',
  async (htu) => {
    await expect(verifier()(request(await make({ claims: { htu } })), claims)).resolves.toBeUndefined()
  },
)

test('accepts no proof for what is no URL, whatever its htu is', async () => {
  const text = await make({ claims: { htu: 'x' } })
  await expect(verifier()({ proofs: [text], method: 'GET', url: 'null/invoices/1' }, claims)).rejects.toMatchObject({
    code: 'proof_invalid',
  })
})

describe('refuses a proof', () => {
  const cases: { readonly [why: string]: { claims?: () => Claims; header?: Claims } } = {
    'for another method': { claims: () => ({ htm: 'POST' }) },
    'with the method in lower case': { claims: () => ({ htm: 'get' }) },
    'for another path': { claims: () => ({ htu: 'https://app.test/invoices/2' }) },
    'for a path with dots': { claims: () => ({ htu: 'https://app.test/invoices/2/../1' }) },
    'for another host': { claims: () => ({ htu: 'https://evil.test/invoices/1' }) },
    'for another scheme': { claims: () => ({ htu: 'http://app.test/invoices/1' }) },
    'for another port': { claims: () => ({ htu: 'https://app.test:8443/invoices/1' }) },
    'for a host with user information': { claims: () => ({ htu: 'https://app.test@evil.test/invoices/1' }) },
    'for a path with an escaped slash': { claims: () => ({ htu: 'https://app.test/invoices%2F1' }) },
    'for a path with escaped dots': { claims: () => ({ htu: 'https://app.test/invoices/2/%2E%2E/1' }) },
    'for a path that is escaped twice': { claims: () => ({ htu: 'https://app.test/%2569nvoices/1' }) },
    'without htu': { claims: () => ({ htu: undefined }) },
    'without ath': { claims: () => ({ ath: undefined }) },
    'for another token': { claims: () => ({ ath: 'A'.repeat(43) }) },
    'without jti': { claims: () => ({ jti: undefined }) },
    'with a number as jti': { claims: () => ({ jti: 1 }) },
    'with a huge jti': { claims: () => ({ jti: 'a'.repeat(1_025) }) },
    'without iat': { claims: () => ({ iat: undefined }) },
    'with iat as text': { claims: () => ({ iat: 'now' }) },
    'that is too old': { claims: () => ({ iat: seconds() - 60 }) },
    'from the future': { claims: () => ({ iat: seconds() + 11 }) },
    'of another typ': { header: { typ: 'JWT' } },
    'without jwk': { header: { jwk: undefined } },
    'with a symmetric jwk': { header: { jwk: { kty: 'oct', k: 'AAAA' } } },
    'with an unknown crit': { header: { crit: ['x'], x: 1 } },
  }
  test.each(Object.entries(cases))('%s', async (_why, { claims: over, header }) => {
    const text = await make({ ...(over && { claims: over() }), ...(header && { header }) })
    await expect(verifier()(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
    const afterGood = verifier()
    await afterGood(request(await make()), claims)
    await expect(afterGood(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })

  test('of a key that was good before: another signature or algorithm, or more in its jwk', async () => {
    const verify = verifier()
    await verify(request(await make()), claims)
    const jwk = await exportJWK(keys.publicKey)
    const forged = (await make()).split('.').with(2, 'A'.repeat(86)).join('.')
    const headers: Claims[] = [
      { jwk, alg: 'ES384' },
      { jwk: { ...jwk, use: 'enc' } },
      { jwk: await exportJWK(keys.privateKey) },
    ]
    const proofs = await Promise.all(headers.map((header) => make({ header })))
    for (const text of [forged, ...proofs])
      await expect(verify(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
    await expect(verify(request(await make()), claims)).resolves.toBeUndefined()
  })

  test('by a key that was good for another token', async () => {
    const verify = verifier()
    await verify(request(await make()), claims)
    const other = { ...claims, jkt: await thumbprint(ecKeys().publicKey) }
    await expect(verify(request(await make()), other)).rejects.toMatchObject({ code: 'token_invalid' })
  })

  const rsa = rsaKeys().publicKey
  const weak: { readonly [why: string]: () => Promise<Claims> } = {
    'an RSA exponent of 3,064 bits': async () => ({
      ...(await exportJWK(rsa)),
      e: Buffer.alloc(383, 0xff).toString('base64url'),
    }),
    'the RSA exponent 3': async () => ({ ...(await exportJWK(rsa)), e: 'Aw' }),
    'the RSA exponent in a longer form': async () => ({ ...(await exportJWK(rsa)), e: 'AAEAAQ' }),
    'an RSA modulus of 4,097 bits': async () => ({
      ...(await exportJWK(rsa)),
      n: Buffer.concat([Buffer.of(1), Buffer.alloc(512, 0xff)]).toString('base64url'),
    }),
    'an RSA modulus of 2,047 bits': async () => ({
      ...(await exportJWK(rsa)),
      n: Buffer.concat([Buffer.of(0x7f), Buffer.alloc(255, 0xff)]).toString('base64url'),
    }),
    'an RSA modulus of nothing': async () => ({ ...(await exportJWK(rsa)), n: 'AA' }),
    'a curve that its alg does not use': async () =>
      exportJWK(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey),
    'a curve of key agreement': async () => exportJWK(generateKeyPairSync('x25519').publicKey),
  }
  test.each(Object.entries(weak))('by a key with %s, whatever its signature is', async (_why, jwkOf) => {
    const jwk = await jwkOf()
    const text = await make({ header: { alg: jwk.kty === 'RSA' ? 'RS256' : 'ES256', jwk } })
    const jkt = await calculateJwkThumbprint(jwk as JWK)
    await expect(verifier()(request(text), { ...claims, jkt })).rejects.toMatchObject({
      code: 'proof_invalid',
      message: 'header jwk does not have the type and size that header alg needs',
    })
  })

  test('before it looks at the signature, for everything that is cheaper to see', async () => {
    const verify = verifier()
    const used = await make()
    await verify(request(used), claims)
    const unsigned = (text: string): string => text.split('.').with(2, 'A'.repeat(86)).join('.')
    const cases: readonly (readonly [string, object])[] = [
      [await make({ claims: { htm: 'POST' } }), { message: 'htm is not the method of the request' }],
      [await make({ claims: { htu: 'https://app.test/' } }), { message: 'htu is not the URL of the request' }],
      [await make({ claims: { ath: 'A'.repeat(43) } }), { message: 'ath is not the digest of the access token' }],
      [await make({ claims: { iat: 1 } }), { message: 'the proof is too old' }],
      [await make({ claims: { jti: '' } }), { message: 'jti is missing or malformed' }],
      [await make({ keys: ecKeys() }), { code: 'token_invalid' }],
      [used, { code: 'proof_replayed' }],
      [await make(), { message: 'the signature does not match header jwk' }],
    ]
    for (const [text, expected] of cases)
      await expect(verify(request(unsigned(text)), claims)).rejects.toMatchObject(expected)
  })

  test('that is unsigned without using up the one that is', async () => {
    const verify = verifier()
    const good = await make()
    const forged = good.split('.').with(2, 'A'.repeat(86)).join('.')
    await expect(verify(request(forged), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
    await expect(verify(request(good), claims)).resolves.toBeUndefined()
  })

  test('that others use at the same moment: exactly one passes', async () => {
    const verify = verifier()
    const good = await make()
    const uses = await Promise.allSettled(Array.from({ length: 20 }, () => verify(request(good), claims)))
    expect(uses.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const use of uses) if (use.status === 'rejected') expect(use.reason).toMatchObject({ code: 'proof_replayed' })
  })

  test('with its private key in it', async () => {
    const text = await make({ header: { jwk: await exportJWK(keys.privateKey) } })
    await expect(verifier()(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })

  test('signed by another key than its own', async () => {
    const text = await make({ keys: ecKeys(), header: { jwk: await exportJWK(keys.publicKey) } })
    await expect(verifier()(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })

  test('with an alg that is not its key’s', async () => {
    const header = { alg: 'RS256', jwk: await exportJWK(keys.publicKey) }
    const text = await make({ keys: rsaKeys(), header })
    await expect(verifier()(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })

  test('by another key than the token names', async () => {
    const text = await make({ keys: ecKeys() })
    await expect(verifier()(request(text), claims)).rejects.toMatchObject({ code: 'token_invalid' })
  })

  test('that is missing, doubled or no JWT', async () => {
    const text = await make()
    await expect(verifier()(request(), claims)).rejects.toMatchObject({ code: 'proof_missing' })
    await expect(verifier()(request(text, text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
    await expect(verifier()(request('x'), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })
})

test('with a nonce of ours is bound to its iat all the same', async () => {
  const nonces = createNonces({ secret: Buffer.alloc(32, 's'), clock })
  const verify = createProofVerifier({ clock, replay: processReplayMemory({ clock, entriesMax: 10 }), nonces })
  const nonce = nonces.current()
  for (const iat of [1, seconds() - 60, seconds() + 11]) {
    const text = await make({ claims: { nonce, iat } })
    await expect(verify(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  }
  await expect(verify(request(await make()), claims)).rejects.toMatchObject({ code: 'proof_nonce_required' })
  await expect(verify(request(await make({ claims: { nonce } })), claims)).resolves.toBeUndefined()
})

describe('a proof is used once', () => {
  test('within the whole window, also when it was dated ahead', async () => {
    const verify = verifier()
    const text = await make({ claims: { iat: seconds() + 10 } })
    await verify(request(text), claims)
    for (const laterMs of [0, 1_000, 60_000, 69_999]) {
      now = Date.parse('2026-01-01T00:00:00Z') + laterMs
      await expect(verify(request(text), claims)).rejects.toMatchObject({ code: 'proof_replayed' })
    }
    now += 1
    await expect(verify(request(text), claims)).rejects.toMatchObject({ code: 'proof_invalid' })
  })

  test('and remembered until nobody would accept it any more, counted from its iat', async () => {
    const memory = processReplayMemory({ clock, entriesMax: 10 })
    const until: number[] = []
    const replay = {
      ...memory,
      remember(used: Parameters<typeof memory.remember>[0], untilMs: number) {
        until.push(untilMs)
        return memory.remember(used, untilMs)
      },
    }
    const verify = createProofVerifier({ clock, replay })
    for (const iat of [seconds() - 59, seconds(), seconds() + 10])
      await verify(request(await make({ claims: { iat } })), claims)
    expect(until).toEqual([now + 1_000, now + 60_000, now + 70_000])
  })

  test('and is not spent by a request that it does not fit', async () => {
    const verify = verifier()
    const text = await make()
    await expect(verify({ ...request(text), method: 'PUT' }, claims)).rejects.toMatchObject({ code: 'proof_invalid' })
    await expect(verify(request(text), claims)).resolves.toBeUndefined()
  })

  test('and when that cannot be remembered any more, nothing is accepted', async () => {
    const verify = verifier(4)
    await verify(request(await make()), claims)
    await verify(request(await make()), claims)
    await expect(verify(request(await make()), claims)).rejects.toMatchObject({ code: 'proof_unverifiable' })
    now += 80_000
    await expect(verify(request(await make()), claims)).resolves.toBeUndefined()
  })
})
