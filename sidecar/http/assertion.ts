/** The signed assertion (a JWT, RFC 7519) about the sender, so that the service need not trust everybody who can reach its port. */
import { createECDH, createPrivateKey, hash, hkdfSync, type KeyObject, sign } from 'node:crypto'
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { publicMembers } from '../../pdp/shared/token/keys.ts'
import type { Identity } from './fields.ts'
import { FIELD_CHARS_MAX, verifiedClaim } from './identity-fields.ts'

export type AssertionEntry = {
  /** The HTTP field that carries the assertion, in lower case. */
  readonly header: string
  readonly audience: string
  /** Claims of the client's token that the assertion repeats. */
  readonly claims: readonly string[]
  readonly keysFile: string
}

/** The field in which the assertion replaces the client's token, for services that verify bearer tokens (RFC 6750). */
export const BEARER_FIELD = 'authorization'
/** The path at which the data port and the admin port serve the key set. */
export const ASSERTION_KEYS_PATH = '/.portcullis/assertion-keys'
/** Claims that the sidecar sets itself; they cannot be repeated from the token. */
export const OWN_CLAIMS: readonly string[] = [
  'iss',
  'sub',
  'aud',
  'exp',
  'nbf',
  'iat',
  'jti',
  'cnf',
  'client_id',
  'org',
  'scope',
]
const LIFETIME_SECONDS = 60
/** How long one assertion is used again: signing takes longer than the rest of a request. At least half of its lifetime is left then. */
const REUSED_SECONDS = 30

/** `keys`: the first one signs, all are published. `issuer`: the public address of the sidecar. */
export function createAssertion(
  { header: field, audience: usual, claims: names }: AssertionEntry,
  given: { readonly keys: readonly [Buffer, ...Buffer[]]; readonly issuer: string; readonly clock: () => number },
): {
  /** The value of the field, with a compact JWS; null: it would be too long for servers. `audience`: null or absent: that of the file. */
  readonly sign: (identity: Identity, audience?: string | null) => string | null
  /** The JWK Set (RFC 7517) that verifies assertions, as JSON. */
  readonly keySet: string
} {
  const { issuer, clock } = given
  const [secret, ...former] = given.keys
  const active = keyOf(secret)
  const scheme = field === BEARER_FIELD ? 'Bearer ' : ''
  const header = base64url({ alg: 'ES256', typ: 'JWT', kid: active.kid })
  // Signed assertions by audience and claims object. An entry is dropped when the sidecar forgets the verified token.
  const known = new Map<string, WeakMap<JsonMembers, { readonly text: string | null; readonly atSeconds: number }>>()

  function make(identity: Identity, audience: string, iat: number): string | null {
    const { subject, client, organization, scopes, claims } = identity
    const repeated = names.map((name) => [name, verifiedClaim(claims, name)] as const)
    const payload = base64url({
      ...Object.fromEntries(repeated.filter(([, value]) => value !== undefined)),
      iss: issuer,
      sub: subject,
      aud: audience,
      iat,
      exp: iat + LIFETIME_SECONDS,
      client_id: client,
      ...(organization !== null && { org: organization }),
      ...(scopes.size > 0 && { scope: [...scopes].join(' ') }),
    })
    if (header.length + payload.length > FIELD_CHARS_MAX) return null
    const input = `${header}.${payload}`
    // RFC 7518 section 3.4: the two numbers of the signature side by side, without ASN.1.
    const signature = sign('sha256', Buffer.from(input), { key: active.key, dsaEncoding: 'ieee-p1363' })
    return `${scheme}${input}.${signature.toString('base64url')}`
  }

  return {
    sign(identity, other = null) {
      const audience = other ?? usual
      const signed = known.get(audience) ?? new WeakMap()
      known.set(audience, signed)
      const nowSeconds = Math.floor(clock() / 1_000)
      const last = signed.get(identity.claims)
      const ageSeconds = last === undefined ? -1 : nowSeconds - last.atSeconds
      if (last !== undefined && ageSeconds >= 0 && ageSeconds < REUSED_SECONDS) return last.text
      const text = make(identity, audience, nowSeconds)
      signed.set(identity.claims, { text, atSeconds: nowSeconds })
      return text
    },
    keySet: JSON.stringify({ keys: [active, ...former.map(keyOf)].map(({ jwk }) => jwk) }),
  }
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const CURVE_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
/** FIPS 186-5 section A.2.1: with 64 bits more than the order, every key is nearly equally likely. */
const SEED_BYTES = 40

/** The key derived from the secret. It is always the same, so all replicas publish one set, before and after a restart. */
function keyOf(secret: Buffer): { readonly key: KeyObject; readonly kid: string; readonly jwk: object } {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', 'portcullis assertion ES256', SEED_BYTES))
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (CURVE_ORDER - 1n)) + 1n
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(scalar.toString(16).padStart(64, '0'), 'hex')
  const point = curve.getPublicKey()
  const [x, y, d] = [point.subarray(1, 33), point.subarray(33), curve.getPrivateKey()]
  const parts = { kty: 'EC', crv: 'P-256', x: x.toString('base64url'), y: y.toString('base64url') }
  // A scalar may be shorter than the curve (RFC 7518 section 6.2.2.1).
  const whole = Buffer.concat([Buffer.alloc(32 - d.length), d]).toString('base64url')
  const key = createPrivateKey({ key: { ...parts, d: whole }, format: 'jwk' })
  const kid = hash('sha256', JSON.stringify(publicMembers(parts)), 'base64url')
  return { key, kid, jwk: { ...parts, kid, use: 'sig', alg: 'ES256' } }
}
