/** The supported asymmetric algorithms (RFC 7518 section 3.1, RFC 8037). DPoP proofs are verified here, using node:crypto. */
import { constants, type JsonWebKey, type KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto'

type Algorithm =
  | { readonly kty: 'RSA'; readonly hash: string; readonly padding: number; readonly saltLength?: number }
  | { readonly kty: 'EC'; readonly hash: string; readonly curve: string; readonly signatureBytes: number }
  | { readonly kty: 'OKP'; readonly curve: string; readonly signatureBytes: number }

const pkcs1 = (hash: string): Algorithm => ({ kty: 'RSA', hash, padding: constants.RSA_PKCS1_PADDING })
const pss = (hash: string, saltLength: number): Algorithm => ({
  kty: 'RSA',
  hash,
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength,
})
const ecdsa = (hash: string, curve: string, signatureBytes: number): Algorithm => ({
  kty: 'EC',
  hash,
  curve,
  signatureBytes,
})

const ALGORITHMS = {
  RS256: pkcs1('sha256'),
  RS384: pkcs1('sha384'),
  RS512: pkcs1('sha512'),
  PS256: pss('sha256', 32),
  PS384: pss('sha384', 48),
  PS512: pss('sha512', 64),
  ES256: ecdsa('sha256', 'prime256v1', 64),
  ES384: ecdsa('sha384', 'secp384r1', 96),
  ES512: ecdsa('sha512', 'secp521r1', 132),
  EdDSA: { kty: 'OKP', curve: 'ed25519', signatureBytes: 64 },
  Ed25519: { kty: 'OKP', curve: 'ed25519', signatureBytes: 64 },
} as const satisfies { readonly [name: string]: Algorithm }
export type AlgorithmName = keyof typeof ALGORITHMS
export const ALGORITHM_NAMES = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const satisfies readonly AlgorithmName[]

/** True for a supported algorithm, by exact match (RFC 7515 section 4.1.1). `none` and symmetric ones are unsupported. */
export const isAlgorithm = (name: unknown): name is AlgorithmName =>
  typeof name === 'string' && Object.hasOwn(ALGORITHMS, name)

/** The shortest modulus in bits (RFC 7518 sections 3.3 and 3.5). */
export const RSA_BITS_MIN = 2_048
/** The longest modulus, in bits. The key's owner chooses it, and verification costs grow with its square. */
export const RSA_BITS_MAX = 4_096
const RSA_EXPONENT = 65_537n
/** The exponent in a JWK (RFC 7518 section 6.3.1.2): only the shortest form is valid. */
export const RSA_EXPONENT_ENCODED = 'AQAB'
const JWK_CURVES: { readonly [curve: string]: string | undefined } = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
  ed25519: 'Ed25519',
}

/** Does what `keySuits` does, from the members of a JWK (RFC 7518 section 6), so that an unsuitable key is never imported. */
export function jwkSuits(jwk: JsonWebKey, name: AlgorithmName): boolean {
  const algorithm: Algorithm = ALGORITHMS[name]
  if (jwk.kty !== algorithm.kty) return false
  if (algorithm.kty !== 'RSA') return jwk.crv === JWK_CURVES[algorithm.curve]
  const bits = modulusBits(jwk.n ?? '')
  return jwk.e === RSA_EXPONENT_ENCODED && bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX
}

/** The length in bits of an RSA modulus in base64url. */
export function modulusBits(encoded: string): number {
  // A modulus far above the limit is not decoded: its length, at six bits per character, is enough.
  if (encoded.length * 6 > 2 * RSA_BITS_MAX) return encoded.length * 6
  const hex = Buffer.from(encoded, 'base64url').toString('hex').replace(/^0+/, '')
  return hex === '' ? 0 : (hex.length - 1) * 4 + Number.parseInt(hex[0] ?? '0', 16).toString(2).length
}

/** True when the type, curve and size of a public key fit the algorithm and our limits. */
export function keySuits(key: KeyObject, name: AlgorithmName): boolean {
  const algorithm: Algorithm = ALGORITHMS[name]
  const details = key.asymmetricKeyDetails
  if (algorithm.kty === 'RSA') {
    const bits = details?.modulusLength ?? 0
    if (key.asymmetricKeyType !== 'rsa' || details?.publicExponent !== RSA_EXPONENT) return false
    return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX
  }
  if (algorithm.kty === 'EC') return key.asymmetricKeyType === 'ec' && details?.namedCurve === algorithm.curve
  return key.asymmetricKeyType === algorithm.curve
}

type Signed = { readonly input: Buffer; readonly signature: Buffer }

/**
 * True for a valid signature. RS256 is verified here, since its 22 µs are less than the thread pool's cost; slower algorithms (ES256: 65
 * µs) use the pool.
 */
export function verifySignature(name: AlgorithmName, key: KeyObject, signed: Signed): Promise<boolean> {
  const prepared = prepare(name, key, signed)
  if (prepared === null) return Promise.resolve(false)
  const { hash, key: by, signature } = prepared
  if (ALGORITHMS[name].kty === 'RSA') return Promise.resolve(verify(hash, signed.input, by, signature))
  return new Promise((resolve, reject) => {
    verify(hash, signed.input, by, signature, (err, good) => (err === null ? resolve(good) : reject(err)))
  })
}

/** The arguments for the verification; null: the signature cannot be valid. */
function prepare(
  name: AlgorithmName,
  key: KeyObject,
  { signature }: Signed,
): {
  readonly hash: string | null
  readonly key: KeyObject | VerifyKeyObjectInput
  readonly signature: Buffer
} | null {
  const algorithm: Algorithm = ALGORITHMS[name]
  if (!keySuits(key, name)) return null
  if (algorithm.kty === 'RSA') {
    const { hash, padding, saltLength } = algorithm
    return { hash, key: { key, padding, ...(saltLength && { saltLength }) }, signature }
  }
  if (signature.length !== algorithm.signatureBytes) return null
  if (algorithm.kty === 'OKP') return { hash: null, key, signature }
  // Node takes 25 µs longer for the `ieee-p1363` form, because it looks up the key's curve each time.
  return { hash: algorithm.hash, key, signature: derSignature(signature) }
}

/** Converts r and s side by side (RFC 7518 section 3.4) to the DER sequence that OpenSSL reads (RFC 3279 section 2.2.3). */
function derSignature(signature: Buffer): Buffer {
  const middle = signature.length / 2
  const integers = Buffer.concat([derInteger(signature.subarray(0, middle)), derInteger(signature.subarray(middle))])
  const length = integers.length < 0x80 ? [integers.length] : [0x81, integers.length]
  return Buffer.concat([Buffer.from([0x30, ...length]), integers])
}

/** Shortest form: no leading zeros, except one if the first bit would make the integer negative. */
function derInteger(bytes: Buffer): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1
  const sign = (bytes[start] ?? 0) >= 0x80 ? [0] : []
  const value = bytes.subarray(start)
  return Buffer.concat([Buffer.from([0x02, value.length + sign.length, ...sign]), value])
}
