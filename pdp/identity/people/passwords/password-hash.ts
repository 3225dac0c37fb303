/**
 * Hashes of passwords and client secrets, as PHC strings.
 *
 * A secret that a person chose can be guessed, so it gets a memory-hard hash (scrypt). A generated secret has 256 random
 * bits and cannot be guessed, so a salted SHA-256 is as safe, and 10,000 times cheaper for each token request.
 */
import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { readScrypt, verifyImported } from './imported-hash.ts'

type ScryptCost = { readonly ln: number; readonly r: number; readonly p: number }
// 32 MiB and three passes: OWASP's equivalent of N = 2^17, r = 8, p = 1 for servers that cannot use 128 MiB for a sign-in.
const COST: ScryptCost = { ln: 15, r: 8, p: 3 }
const SALT_BYTES = 16
const HASH_BYTES = 32
const SECRET_BYTES = 32
export const SECRET_CHARACTERS_MAX = 1_024

const SHA256 = /^\$sha256\$([A-Za-z0-9+/]{16,64})\$([A-Za-z0-9+/]{43})$/

/** A new client secret: 256 random bits in base64url. */
export const generateSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

/** Hashes a secret that was chosen: a password, or a client secret that we did not generate. Throws TypeError if empty or too long. */
export async function hashSecret(secret: string): Promise<string> {
  assertSecret(secret)
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive(secret, { salt, cost: COST, bytes: HASH_BYTES })
  return `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${encode(salt)}$${encode(hash)}`
}

/** Hashes a secret of generateSecret. Throws TypeError if empty or too long. */
export function hashGeneratedSecret(secret: string): string {
  assertSecret(secret)
  const salt = randomBytes(SALT_BYTES)
  return `$sha256$${encode(salt)}$${encode(digest(secret, salt))}`
}

/** Verifies our hashes and imported ones (imported-hash.ts). False also for a hash of an unknown form. */
export async function verifySecret(secret: string, stored: string): Promise<boolean> {
  if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) return false
  const fast = SHA256.exec(stored)
  if (fast !== null) {
    const [, salt = '', hash = ''] = fast
    return timingSafeEqual(digest(secret, Buffer.from(salt, 'base64')), Buffer.from(hash, 'base64'))
  }
  const slow = readScrypt(stored)
  if (slow === null) return (await verifyImported(secret, stored)) ?? false
  const { salt, hash } = slow
  return timingSafeEqual(await derive(secret, { salt, cost: slow, bytes: hash.length }), hash)
}

/** True if a check against this hash is expensive, so that concurrent checks need a limit. */
export const isSlowHash = (stored: string): boolean => stored.startsWith('$scrypt$')

function derive(secret: string, options: { salt: Buffer; cost: ScryptCost; bytes: number }): Promise<Buffer> {
  const { ln, r, p } = options.cost
  const N = 2 ** ln
  // Node's default limit refuses a hash that needs exactly 32 MiB.
  const parameters = { N, r, p, maxmem: 128 * N * r + 128 * r * p + 1_048_576 }
  return new Promise((done, fail) => {
    scrypt(secret.normalize('NFC'), options.salt, options.bytes, parameters, (error, key) => {
      if (error === null) done(key)
      else fail(error)
    })
  })
}

const digest = (secret: string, salt: Buffer): Buffer => createHash('sha256').update(salt).update(secret).digest()
// Base64 without padding, as PHC demands.
const encode = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

function assertSecret(secret: string): void {
  if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) {
    throw new TypeError(`a secret has 1 to ${SECRET_CHARACTERS_MAX} characters`)
  }
}
