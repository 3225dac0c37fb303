/** Hashes or encrypts the redeemable secrets in oidc-provider's records: a stolen backup is useless without the master key. */
import { createHmac, hash } from 'node:crypto'
import { deriveKey, open, seal } from '../../process/encryption.ts'

// Records that are looked up by the bearer value: the digest of its 256 random bits is enough.
const HASHED_KINDS: ReadonlySet<string> = new Set([
  'AuthorizationCode',
  'RefreshToken',
  'PushedAuthorizationRequest',
  'Session',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
])
// Records that have another key too, so that oidc-provider needs the bearer value back. Members of the payload.
const SEALED: { readonly [kind: string]: readonly string[] | undefined } = {
  Session: ['jti'],
  DeviceCode: ['jti', 'userCode'],
  BackchannelAuthenticationRequest: ['jti'],
  Interaction: ['session', 'deviceCode'],
}

export type RecordSecrets = {
  /** The id of the row. */
  keyOf(kind: string, id: string): string
  /** A user code is short, so that its digest needs a key. */
  userCodeOf(userCode: string): string
  /** The payload to store. */
  seal(kind: string, key: string, payload: object): object
  /** The original of `seal`, except an id that is only hashed. Null if it was not sealed, or with another master key. */
  open(kind: string, key: string, payload: object): object | null
}

export function createRecordSecrets({ masterKey }: { readonly masterKey: Buffer }): RecordSecrets {
  const sealingKey = deriveKey(masterKey, 'record')
  const userCodeKey = deriveKey(masterKey, 'user-code')
  const nameOf = (kind: string, key: string): string => `${kind} ${key}`
  return {
    keyOf: (kind, id) => (HASHED_KINDS.has(kind) ? hash('sha256', id, 'base64url') : id),
    userCodeOf: (userCode) => createHmac('sha256', userCodeKey).update(userCode).digest('base64url'),
    seal(kind, key, payload) {
      const names = SEALED[kind]
      if (names === undefined) return HASHED_KINDS.has(kind) ? { ...payload, jti: undefined } : payload
      const entries = Object.entries(payload)
      const secret = Object.fromEntries(entries.filter(([name]) => names.includes(name)))
      const plain = Object.fromEntries(entries.filter(([name]) => !names.includes(name)))
      return { ...plain, sealed: seal(sealingKey, nameOf(kind, key), JSON.stringify(secret)) }
    },
    open(kind, key, payload) {
      if (SEALED[kind] === undefined) return payload
      if (!('sealed' in payload) || typeof payload.sealed !== 'string') return null
      const { sealed, ...plain } = payload
      try {
        const secret: object = JSON.parse(open(sealingKey, nameOf(kind, key), payload.sealed))
        return { ...plain, ...secret }
      } catch {
        return null
      }
    },
  }
}
