/**
 * Signatures and keys of the project Wycheproof (github.com/C2SP/wycheproof, `testvectors_v1/json_web_*_test.json`), put
 * through both of our verifiers: `jose` for tokens, `node:crypto` for DPoP proofs. `jose-vectors.jsonl` has its values for
 * asymmetric keys; of 213 faults in the padding of one RSA signature every sixth.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ALGORITHM_NAMES, isAlgorithm, verifySignature } from '../../../../pdp/shared/token/algorithms.ts'
import { importKey, localKeys } from '../../../../pdp/shared/token/keys.ts'
import { findSigner } from '../../../../pdp/shared/token/signature.ts'

type Header = { readonly alg?: unknown; readonly kid?: unknown }
type Group = {
  readonly keys: readonly { readonly [name: string]: unknown }[]
  readonly tokens: readonly { readonly vector: string; readonly good: boolean; readonly jws: string }[]
}

/** Where we answer otherwise than Wycheproof, with the reason. */
const EXCEPTIONS: { readonly [vector: string]: readonly [good: boolean, reason: string] } = {
  'key 7': [true, 'a key that bad hardware made (ROCA) is the business of the issuer, whose key it is'],
  '346': [false, 'the key is for PS256 alone, and the token is signed with PS384'],
  '347': [false, 'the key is for ES521, which is no algorithm'],
  '350': [false, 'as 346'],
  '351': [false, 'as 347'],
}

const groups = readFileSync(new URL('jose-vectors.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Group)
const cases = groups.flatMap(({ keys, tokens }) =>
  tokens.map(({ vector, good, jws }) => ({ vector, jws, keys, good: EXCEPTIONS[vector]?.[0] ?? good })),
)

describe('Wycheproof', () => {
  test.each(cases)('vector $vector: good is $good, for jose', async ({ jws, keys, good }) => {
    const issuer = { keys: localKeys(() => keys), algorithms: ALGORITHM_NAMES }
    const found = findSigner(jws, headerOf(jws), issuer)
    if (good) await expect(found).resolves.toMatchObject({ kid: keys[0]?.kid ?? null })
    else await expect(found).rejects.toMatchObject({ code: 'token_invalid' })
  })

  test.each(cases)('vector $vector: good is $good, for node:crypto', async ({ jws, keys, good }) => {
    expect(await isGoodProof(jws, keys)).toBe(good)
  })

  test('has many more bad vectors than good ones, and every exception is one of them', () => {
    expect(cases.length).toBeGreaterThan(190)
    expect(cases.filter(({ good }) => !good).length).toBeGreaterThan(3 * cases.filter(({ good }) => good).length)
    expect(cases.map(({ vector }) => vector)).toEqual(expect.arrayContaining(Object.keys(EXCEPTIONS)))
  })
})

async function isGoodProof(jws: string, keys: Group['keys']): Promise<boolean> {
  const { alg } = headerOf(jws)
  const end = jws.lastIndexOf('.')
  const signed = { input: Buffer.from(jws.slice(0, end)), signature: Buffer.from(jws.slice(end + 1), 'base64url') }
  for (const jwk of keys) {
    const key = importKey(jwk)
    if (key === null || !isAlgorithm(alg) || !key.algorithms.has(alg)) continue
    if (await verifySignature(alg, key.publicKey, signed)) return true
  }
  return false
}

/** Most vectors sign a text and not JSON, so that our parser would refuse them before their signature. */
function headerOf(jws: string): Header {
  try {
    return JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()) ?? {}
  } catch {
    return {}
  }
}
