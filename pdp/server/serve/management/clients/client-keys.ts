/** Validates the keys of a private_key_jwt client at registration, because an unusable key would fail at every token request. */

import { CLIENT_SIGNING_ALGORITHMS } from '../../../../identity/provider/client-metadata.ts'
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import { type JsonObject, pointer } from '../../../../shared/domain/json.ts'
import { modulusBits, RSA_BITS_MAX, RSA_BITS_MIN, RSA_EXPONENT_ENCODED } from '../../../../shared/token/algorithms.ts'
import { importKey } from '../../../../shared/token/keys.ts'

// RFC 7518 section 6: members of private and symmetric keys.
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const KEY_TYPES = ['RSA', 'EC', 'OKP']
const ALGORITHMS: ReadonlySet<string> = new Set(CLIENT_SIGNING_ALGORITHMS)

/** `member`: the member of the key that is wrong; null: the key as a whole. */
type KeyIssue = { readonly member: string | null; readonly message: string }

export function keySetIssues(keys: readonly JsonObject[]): readonly ValidationIssue[] {
  return keys.flatMap((key, i) => {
    const issue = keyIssue(key)
    if (issue === null) return []
    const steps = issue.member === null ? [] : [issue.member]
    return [{ place: pointer('/jwks', 'keys', i, ...steps), message: issue.message }]
  })
}

function keyIssue(key: JsonObject): KeyIssue | null {
  const secret = PRIVATE_MEMBERS.find((member) => Object.hasOwn(key, member))
  if (secret !== undefined) return { member: secret, message: 'belongs to a private or symmetric key' }
  const { kty, alg, use, key_ops: operations } = key
  if (typeof kty !== 'string' || !KEY_TYPES.includes(kty)) {
    return { member: 'kty', message: `is not one of ${KEY_TYPES.join(', ')}` }
  }
  if (alg !== undefined && (typeof alg !== 'string' || !ALGORITHMS.has(alg))) {
    return { member: 'alg', message: `is not one of ${CLIENT_SIGNING_ALGORITHMS.join(', ')}` }
  }
  if (use !== undefined && use !== 'sig') return { member: 'use', message: 'is not sig' }
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) {
    return { member: 'key_ops', message: 'does not hold verify' }
  }
  const rsaIssue = kty === 'RSA' ? rsaKeyIssue(key) : null
  if (rsaIssue !== null) return rsaIssue
  const usable = [...(importKey(key)?.algorithms ?? [])].some((algorithm) => ALGORITHMS.has(algorithm))
  if (usable) return null
  return { member: null, message: `is not a public key for one of ${CLIENT_SIGNING_ALGORITHMS.join(', ')}` }
}

function rsaKeyIssue({ n, e }: JsonObject): KeyIssue | null {
  const bits = typeof n === 'string' ? modulusBits(n) : RSA_BITS_MIN
  if (bits < RSA_BITS_MIN) return { member: 'n', message: `has ${bits} bits; at least ${RSA_BITS_MIN} are needed` }
  if (bits > RSA_BITS_MAX) return { member: 'n', message: `has more than ${RSA_BITS_MAX} bits` }
  if (typeof e === 'string' && e !== RSA_EXPONENT_ENCODED) {
    return { member: 'e', message: `is not ${RSA_EXPONENT_ENCODED}, which is 65537` }
  }
  return null
}
