/** Hashes or encrypts the redeemable secrets in oidc-provider's records: a stolen backup is useless without the master key. */
import { createHmac, hash } from 'node:crypto'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import { nameOfRecord, RECORD_PURPOSE } from './sealed-names.ts'

// Records that are found by the bearer value alone: its digest is enough, because the value has 256 random bits.
const HASHED_KINDS: ReadonlySet<string> = new Set([
  'AuthorizationCode',
  'RefreshToken',
  'PushedAuthorizationRequest',
  'Session',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
])
// Members of payloads that are encrypted: these records are also found by another key, and oidc-provider then needs the bearer value.
const SEALED: { readonly [kind: string]: readonly string[] | undefined } = {
  Session: ['jti'],
  DeviceCode: ['jti', 'userCode'],
  BackchannelAuthenticationRequest: ['jti'],
  Interaction: ['session', 'deviceCode'],
}

export type RecordSecrets = {
  /** The id under which the row is stored. */
  keyOf(kind: string, id: string): string
  /** The stored form of a user code: a keyed digest, because the code is short enough to guess. */
  userCodeOf(userCode: string): string
  /** The stored forms of a user code, one for each master key. */
  userCodesOf(userCode: string): readonly string[]
  /** Encrypts the secret parts of a payload for storing. */
  seal(kind: string, key: string, payload: object): object
  /** Reverses `seal`, except for an id that is only hashed. Null: the payload was not sealed, or with another master key. */
  open(kind: string, key: string, payload: object): object | null
}

const USER_CODE_PURPOSE = 'user-code'

export function createRecordSecrets({ masterKeys }: { readonly masterKeys: MasterKeys }): RecordSecrets {
  const digest = (key: Buffer, userCode: string): string =>
    createHmac('sha256', key).update(userCode).digest('base64url')
  return {
    keyOf: (kind, id) => (HASHED_KINDS.has(kind) ? hash('sha256', id, 'base64url') : id),
    userCodeOf: (userCode) => digest(masterKeys.derive(USER_CODE_PURPOSE)[0], userCode),
    userCodesOf: (userCode) => masterKeys.derive(USER_CODE_PURPOSE).map((key) => digest(key, userCode)),
    seal(kind, key, payload) {
      const names = SEALED[kind]
      if (names === undefined) return HASHED_KINDS.has(kind) ? { ...payload, jti: undefined } : payload
      const entries = Object.entries(payload)
      const secret = Object.fromEntries(entries.filter(([name]) => names.includes(name)))
      const plain = Object.fromEntries(entries.filter(([name]) => !names.includes(name)))
      return {
        ...plain,
        sealed: seal(masterKeys.derive(RECORD_PURPOSE), nameOfRecord(kind, key), JSON.stringify(secret)),
      }
    },
    open(kind, key, payload) {
      if (SEALED[kind] === undefined) return payload
      if (!('sealed' in payload) || typeof payload.sealed !== 'string') return null
      const { sealed, ...plain } = payload
      try {
        const secret: object = JSON.parse(
          open(masterKeys.derive(RECORD_PURPOSE), nameOfRecord(kind, key), payload.sealed),
        )
        return { ...plain, ...secret }
      } catch {
        return null
      }
    },
  }
}
