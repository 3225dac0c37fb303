/** Derives one key per purpose from the master keys, and encrypts values with it (AES-256-GCM). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

const MASTER_KEY_BYTES_MIN = 32
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const FORM = 'v1.'
const FINGERPRINT_BYTES = 8

/** RFC 5869. Different purposes give independent keys. Throws TypeError when the master key is shorter than 32 bytes. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  if (masterKey.length < MASTER_KEY_BYTES_MIN) {
    throw new TypeError(`the master key has ${masterKey.length} bytes; it needs at least ${MASTER_KEY_BYTES_MIN}`)
  }
  return Buffer.from(hkdfSync('sha256', masterKey, '', `portcullis ${purpose}`, KEY_BYTES))
}

/** A master key, or two of them during a rotation. */
export type MasterKeys = {
  /** The keys of this purpose: the first one encrypts and signs, all of them decrypt and verify. */
  derive(purpose: string): readonly [Buffer, ...Buffer[]]
}

/** The first key encrypts. Throws TypeError when a key is shorter than 32 bytes. */
export function masterKeysOf(first: Buffer, ...others: readonly Buffer[]): MasterKeys {
  const derived = new Map<string, readonly [Buffer, ...Buffer[]]>()
  return {
    derive(purpose) {
      const known = derived.get(purpose)
      if (known !== undefined) return known
      const keys = [deriveKey(first, purpose), ...others.map((key) => deriveKey(key, purpose))] as const
      derived.set(purpose, keys)
      return keys
    },
  }
}

/** A name for a master key in the database and in messages. The key cannot be derived from it. */
export const fingerprintOf = (masterKey: Buffer): string =>
  deriveKey(masterKey, 'fingerprint').subarray(0, FINGERPRINT_BYTES).toString('hex')

/** Encrypts with the first key. Binds the value to `name`: a value sealed under one name does not open under another. */
export function seal([key]: readonly [Buffer, ...Buffer[]], name: string, value: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(name))
  const sealed = Buffer.concat([iv, cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return FORM + sealed.toString('base64url')
}

/** Throws Error when no key fits, or the name or a byte differs from what was sealed. */
export function open(keys: readonly Buffer[], name: string, sealed: string): string {
  for (const key of keys.slice(0, -1)) {
    try {
      return openWith(key, name, sealed)
    } catch {
      // The other master key may fit.
    }
  }
  const last = keys.at(-1)
  if (last === undefined) throw new TypeError('there is no key')
  return openWith(last, name, sealed)
}

function openWith(key: Buffer, name: string, sealed: string): string {
  if (!sealed.startsWith(FORM)) throw new Error(`${name} is encrypted in an unknown format`)
  const bytes = Buffer.from(sealed.slice(FORM.length), 'base64url')
  if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error(`${name} is encrypted in an unknown format`)
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(name)).setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}
