/** Signing keys: generated at the first start, stored encrypted, published as a JWK set. */
import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint, type JWK, SignJWT } from 'jose'
import { ADVISORY_LOCKS } from '../../../engine/store/advisory-locks.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { SIGNING_KEY_PURPOSE } from './sealed-names.ts'

const RSA_BITS = 2_048

export type SigningKeys = {
  /** Private keys; the active key is first, because the first one signs. */
  readonly privateJwks: readonly JWK[]
  /** Public keys in the same order: active, next (published before it signs), retired (until its tokens expire). */
  readonly publicJwks: readonly JWK[]
  readonly activeKid: string
}
/** A key in the form in which it is stored, with an encrypted private part. */
export type NewKey = {
  readonly kid: string
  readonly publicJwk: JWK
  readonly sealed: string
  readonly state: 'next' | 'active'
}

/** Throws Error if another master key encrypted the stored keys; PdpError `store_unavailable`. */
export async function loadSigningKeys(deps: { sql: Sql; masterKeys: MasterKeys }): Promise<SigningKeys> {
  const sealingKeys = deps.masterKeys.derive(SIGNING_KEY_PURPOSE)
  await ensureKeys(deps.sql, sealingKeys)
  const rows = await deps.sql.query<{ kid: string; public_jwk: JWK; sealed: string }>(
    `select kid, public_jwk, private_jwk_sealed as sealed from signing_key
     where state <> 'retired' or retire_after > now()
     order by case state when 'active' then 0 when 'next' then 1 else 2 end, created_at, kid`,
  )
  const [active] = rows
  if (active === undefined) throw new Error('there is no signing key')
  return {
    privateJwks: rows.map((row) => unseal(sealingKeys, row)),
    publicJwks: rows.map((row) => row.public_jwk),
    activeKid: active.kid,
  }
}

/** Signs the claims with the active key. The JWT is kept, and made again for other claims or another active key. */
export function createStatementSigner(current: () => SigningKeys): (claims: JsonObject) => Promise<string> {
  const sign = createTokenSigner(current, 'JWT')
  let last: { readonly kid: string; readonly text: string; readonly token: string } | null = null
  return async (claims) => {
    const text = JSON.stringify(claims)
    if (last?.kid === current().activeKid && last.text === text) return last.token
    const signed = { text, ...(await sign(claims)) }
    last = signed
    return signed.token
  }
}

/** Makes a signer of tokens with this `typ`. It uses the active key and names it in each token. */
export function createTokenSigner(
  current: () => SigningKeys,
  typ: string,
): (claims: JsonObject) => Promise<{ readonly token: string; readonly kid: string }> {
  return async (claims) => {
    const { privateJwks, activeKid: kid } = current()
    const [active] = privateJwks
    if (active === undefined) throw new TypeError('there is no signing key')
    const header = { alg: 'RS256', typ, kid }
    return { kid, token: await new SignJWT({ ...claims }).setProtectedHeader(header).sign(active) }
  }
}

function unseal(sealingKeys: readonly Buffer[], { kid, sealed }: Pick<NewKey, 'kid' | 'sealed'>): JWK {
  try {
    return JSON.parse(open(sealingKeys, kid, sealed))
  } catch (err) {
    throw new Error('the signing keys cannot be opened: PORTCULLIS_MASTER_KEY is not the key that sealed them', {
      cause: err,
    })
  }
}

async function ensureKeys(sql: Sql, sealingKeys: readonly [Buffer, ...Buffer[]]): Promise<void> {
  await sql.transaction(async (transaction) => {
    await transaction.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.signingKeys])
    const stored = await transaction.query("select 1 from signing_key where state = 'active'")
    if (stored.length > 0) return
    for (const key of await Promise.all([makeKey(sealingKeys, 'active'), makeKey(sealingKeys, 'next')])) {
      await storeKey(transaction, key)
    }
  })
}

export async function storeKey(sql: Queries, key: NewKey): Promise<void> {
  await sql.query(
    'insert into signing_key (kid, public_jwk, private_jwk_sealed, state) values ($1, $2::jsonb, $3, $4)',
    [key.kid, JSON.stringify(key.publicJwk), key.sealed, key.state],
  )
}

export async function makeKey(sealingKeys: readonly [Buffer, ...Buffer[]], state: NewKey['state']): Promise<NewKey> {
  const pair = await promisify(generateKeyPair)('rsa', { modulusLength: RSA_BITS })
  const bare = pair.publicKey.export({ format: 'jwk' })
  const kid = await calculateJwkThumbprint(bare) // RFC 7638
  const use = { kid, alg: 'RS256', use: 'sig' }
  const privateJwk = { ...pair.privateKey.export({ format: 'jwk' }), ...use }
  return { kid, publicJwk: { ...bare, ...use }, sealed: seal(sealingKeys, kid, JSON.stringify(privateJwk)), state }
}
