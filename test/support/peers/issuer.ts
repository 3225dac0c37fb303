/** A token issuer for tests: keys of its own, tokens and proofs of any content, key sets served without a network. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose'
import type { Fetch } from '../../../pdp/shared/token/remote-keys.ts'

export type Claims = { [name: string]: unknown }
export type KeyPair = { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
export type Issuer = {
  readonly issuer: string
  readonly kid: string
  readonly keys: KeyPair
  /** The JWK Set that its key URL answers; tests may change it. */
  jwks: { keys: unknown[] }
  token(claims?: Claims, header?: Claims): Promise<string>
}

function* pairsInTurn(): Generator<KeyPair, never> {
  const pairs = Array.from({ length: 6 }, () => generateKeyPairSync('rsa', { modulusLength: 2048 }))
  for (;;) yield* pairs
}
const inTurn = pairsInTurn()

/** One of six pairs, in turn: making one takes a tenth of a second of CPU time, and hundreds of tests need some. */
export const rsaKeys = (): KeyPair => inTurn.next().value
export const ecKeys = (): KeyPair => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Tokens are for alice of acme, good for five minutes from `clock`, unless claims say otherwise; undefined drops one. */
export async function createIssuer(options: {
  readonly issuer: string
  readonly audience: string
  readonly clock: () => number
  readonly kid?: string
}): Promise<Issuer> {
  const { issuer, audience, clock, kid = 'k1' } = options
  const keys = rsaKeys()
  const jwk = { ...(await exportJWK(keys.publicKey)), kid, use: 'sig' }

  async function token(claims: Claims = {}, header: Claims = {}): Promise<string> {
    const now = Math.floor(clock() / 1_000)
    const base = { iss: issuer, aud: audience, sub: 'alice', client_id: 'c1', org: 'acme', scope: 'invoices:read' }
    const payload = { ...base, iat: now, exp: now + 300, jti: randomUUID(), ...claims }
    return compact({ alg: 'RS256', typ: 'at+jwt', kid, ...header }, payload, keys.privateKey)
  }
  return { issuer, kid, keys, jwks: { keys: [jwk] }, token }
}

/** Metadata and key sets of the issuers at the usual places; anything else is not found. */
export function issuerFetch(issuers: readonly Issuer[], asked: string[] = []): Fetch {
  return async (url) => {
    asked.push(url)
    for (const { issuer, jwks } of issuers) {
      if (url === `${issuer}/.well-known/openid-configuration`)
        return Response.json({ issuer, jwks_uri: `${issuer}/jwks` })
      if (url === `${issuer}/jwks`) return Response.json(jwks)
    }
    return new Response('not found', { status: 404 })
  }
}

export const thumbprint = async (key: KeyObject): Promise<string> => calculateJwkThumbprint(await exportJWK(key))

/** A DPoP proof; undefined drops a claim. */
export async function proof(options: {
  readonly keys: KeyPair
  readonly method: string
  readonly url: string
  readonly token: string
  readonly clock: () => number
  readonly claims?: Claims
  readonly header?: Claims
}): Promise<string> {
  const { keys, method, url, token, clock, claims = {}, header = {} } = options
  const ath = createHash('sha256').update(token).digest('base64url')
  const payload = { jti: randomUUID(), htm: method, htu: url, iat: Math.floor(clock() / 1_000), ath, ...claims }
  const jwk: JWK = await exportJWK(keys.publicKey)
  return compact({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header }, payload, keys.privateKey)
}

/** Signed as it is: a library would refuse to make what a verifier must refuse to take. */
function compact(header: Claims, payload: Claims, key: KeyObject): string {
  const part = (value: Claims): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(header)}.${part(payload)}`
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}
