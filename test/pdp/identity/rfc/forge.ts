/** JWTs of any content: signed by the issuer's own key, as only a leak could, or by a client's. */
import { createHash, randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import { deriveKey, open } from '../../../../pdp/shared/base/encryption.ts'
import { MASTER_KEY, parseObject, type World } from '../harness.ts'

export type Members = { readonly [name: string]: unknown }
export type ClientKey = { readonly privateKey: CryptoKey; readonly jwk: JWK }

/** By the active key. A member of `header` that is undefined is left out. */
export async function signAsUs(world: Pick<World, 'sql'>, payload: JWTPayload, header: Members = {}): Promise<string> {
  const [row] = await world.sql.query<{ kid: string; private_jwk_sealed: string }>(
    "select * from signing_key where state = 'active'",
  )
  const kid = row?.kid ?? ''
  const jwk = parseObject(open([deriveKey(MASTER_KEY, 'signing-key')], kid, row?.private_jwk_sealed ?? ''))
  const key = await importJWK(jwk, 'RS256')
  return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid, ...header }).sign(key)
}

export async function newClientKey(): Promise<ClientKey> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  return { privateKey, jwk: await exportJWK(publicKey) }
}

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** A good DPoP proof for the token endpoint, unless told otherwise; undefined leaves a member out. */
export const proveKey = (
  world: Pick<World, 'issuer'>,
  { privateKey, jwk }: ClientKey,
  claims: Members = {},
  header: Members = {},
): Promise<string> =>
  new SignJWT({
    htm: 'POST',
    htu: `${world.issuer}/oauth/token`,
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
    .sign(privateKey)
