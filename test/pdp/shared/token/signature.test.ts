/** What `findSigner` asks of a token's header, and that jose and our list of algorithms agree, algorithm by algorithm. */
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { ALGORITHM_NAMES, type AlgorithmName } from '../../../../pdp/shared/token/algorithms.ts'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { findSigner } from '../../../../pdp/shared/token/signature.ts'
import { rsaKeys } from '../../../support/peers/issuer.ts'

// Made once, since an RSA key takes long.
const RSA = [rsaKeys(), rsaKeys()] as const

async function made(
  algorithm: AlgorithmName,
  which: 0 | 1 = 0,
): Promise<{ readonly token: string; readonly jwk: JWK }> {
  const isRsa = algorithm.startsWith('RS') || algorithm.startsWith('PS')
  const { privateKey, publicKey } = isRsa ? RSA[which] : await generateKeyPair(algorithm, { extractable: true })
  const token = await new SignJWT({ iss: 'a' }).setProtectedHeader({ alg: algorithm, kid: 'k' }).sign(privateKey)
  return { token, jwk: { ...(await exportJWK(publicKey)), kid: 'k' } }
}
const find = (token: string, header: object, { jwks, algorithms }: { jwks: JWK[]; algorithms?: AlgorithmName[] }) =>
  findSigner(token, { ...header }, { keys: localKeys(() => jwks), algorithms: algorithms ?? ALGORITHM_NAMES })
const refusal = { code: 'token_invalid' }

describe.each(ALGORITHM_NAMES)('a token signed with %s', (algorithm) => {
  test('is found to be signed by its key, and by no other', async () => {
    const [{ token, jwk }, other] = [await made(algorithm), await made(algorithm, 1)]
    const header = { alg: algorithm, kid: 'k' }
    await expect(find(token, header, { jwks: [other.jwk, jwk] })).resolves.toMatchObject({ kid: 'k' })
    await expect(find(token, header, { jwks: [other.jwk] })).rejects.toMatchObject(refusal)
    await expect(find(token, header, { jwks: [{ ...jwk, use: 'enc' }] })).rejects.toMatchObject(refusal)
    await expect(find(token, header, { jwks: [{ ...jwk, key_ops: ['sign'] }] })).rejects.toMatchObject(refusal)
    const others = ALGORITHM_NAMES.filter((name) => name !== algorithm)
    await expect(find(token, header, { jwks: [jwk], algorithms: others })).rejects.toMatchObject(refusal)
    await expect(find(`${token.slice(0, -8)}AAAAAAAA`, header, { jwks: [jwk] })).rejects.toMatchObject(refusal)
  })
})

test.each([
  ['no alg', { kid: 'k' }],
  ['alg none', { alg: 'none', kid: 'k' }],
  ['a symmetric alg', { alg: 'HS256', kid: 'k' }],
  ['an alg in another case', { alg: 'es256', kid: 'k' }],
  ['an alg that is a list', { alg: ['ES256'], kid: 'k' }],
  ['a kid that is a number', { alg: 'ES256', kid: 1 }],
  ['a kid that is null', { alg: 'ES256', kid: null }],
  ['another kid', { alg: 'ES256', kid: 'K' }],
  ['an alg that is not that of the signed header', { alg: 'ES384', kid: 'k' }],
])('a header with %s finds no key', async (_, header) => {
  const { token, jwk } = await made('ES256')
  await expect(find(token, header, { jwks: [jwk] })).rejects.toMatchObject(refusal)
})

test.each<[string, object, (jwk: JWK) => JWK[], string]>([
  ['an alg that its issuer does not use', { alg: 'HS256', kid: 'k' }, (jwk) => [jwk], 'the issuer uses ES256'],
  [
    'a kid that the issuer does not have',
    { alg: 'ES256', kid: 'new' },
    (jwk) => [jwk],
    'no current key of the issuer has',
  ],
  [
    'no kid, and several keys that suit',
    { alg: 'ES256' },
    (jwk) => [jwk, { ...jwk, kid: 'other' }],
    'header kid is missing',
  ],
])('the refusal of a token with %s says so', async (_, header, keysOf, message) => {
  const { token, jwk } = await made('ES256')
  await expect(find(token, header, { jwks: keysOf(jwk), algorithms: ['ES256'] })).rejects.toThrow(message)
})
