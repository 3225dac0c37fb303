/**
 * Hashes of passwords and client secrets, as PHC strings.
 *
 * What a person chose may be guessed, so it gets a memory-hard hash (scrypt). What we generated has 256 random bits and
 * cannot be guessed however fast the hash is, so a salted SHA-256 is as safe and 10,000 times cheaper per token request.
 */
import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

type ScryptCost = { readonly ln: number; readonly r: number; readonly p: number }
// 32 MiB and three passes: OWASP's equivalent of N = 2^17, r = 8, p = 1 for servers that cannot spend 128 MiB a sign-in.
const COST: ScryptCost = { ln: 15, r: 8, p: 3 }
// What a stored hash may ask of us; beyond it the hash is not ours.
const COST_MAX: ScryptCost = { ln: 18, r: 16, p: 16 }
const SALT_BYTES = 16
const HASH_BYTES = 32
const SECRET_BYTES = 32
export const SECRET_CHARACTERS_MAX = 1_024

const SCRYPT = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{16,64})\$([A-Za-z0-9+/]{43})$/
const SHA256 = /^\$sha256\$([A-Za-z0-9+/]{16,64})\$([A-Za-z0-9+/]{43})$/

/** A new client secret: 256 random bits in base64url. */
export const generateSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

/** For what a person chose: passwords, and client secrets from outside. Throws TypeError when empty or too long. */
export async function hashSecret(secret: string): Promise<string> {
  assertSecret(secret)
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive(secret, { salt, cost: COST })
  return `$scrypt$ln=${COST.ln},r=${COST.r},p=${COST.p}$${encode(salt)}$${encode(hash)}`
}

/** Only for what generateSecret returned. Throws TypeError when empty or too long. */
export function hashGeneratedSecret(secret: string): string {
  assertSecret(secret)
  const salt = randomBytes(SALT_BYTES)
  return `$sha256$${encode(salt)}$${encode(digest(secret, salt))}`
}

/** False for a hash of unknown form as well: what cannot be checked does not match. */
export async function verifySecret(secret: string, stored: string): Promise<boolean> {
  if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) return false
  const fast = SHA256.exec(stored)
  if (fast !== null) {
    const [, salt = '', hash = ''] = fast
    return timingSafeEqual(digest(secret, Buffer.from(salt, 'base64')), Buffer.from(hash, 'base64'))
  }
  const slow = SCRYPT.exec(stored)
  if (slow === null) return false
  const [, ln, r, p, salt = '', hash = ''] = slow
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) }
  if (cost.ln < 1 || cost.ln > COST_MAX.ln || cost.r < 1 || cost.r > COST_MAX.r) return false
  if (cost.p < 1 || cost.p > COST_MAX.p) return false
  return timingSafeEqual(await derive(secret, { salt: Buffer.from(salt, 'base64'), cost }), Buffer.from(hash, 'base64'))
}

/** True when checking against it costs memory and time, so that the number of concurrent checks needs a bound. */
export const isSlowHash = (stored: string): boolean => stored.startsWith('$scrypt$')

function derive(secret: string, options: { salt: Buffer; cost: ScryptCost }): Promise<Buffer> {
  const { ln, r, p } = options.cost
  const N = 2 ** ln
  // Node refuses by default what needs exactly its limit of 32 MiB.
  const parameters = { N, r, p, maxmem: 128 * N * r + 128 * r * p + 1_048_576 }
  return new Promise((done, fail) => {
    scrypt(secret.normalize('NFC'), options.salt, HASH_BYTES, parameters, (error, key) => {
      if (error === null) done(key)
      else fail(error)
    })
  })
}

const digest = (secret: string, salt: Buffer): Buffer => createHash('sha256').update(salt).update(secret).digest()
// PHC: base64 without padding.
const encode = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

function assertSecret(secret: string): void {
  if (secret.length === 0 || secret.length > SECRET_CHARACTERS_MAX) {
    throw new TypeError(`a secret has 1 to ${SECRET_CHARACTERS_MAX} characters`)
  }
}
