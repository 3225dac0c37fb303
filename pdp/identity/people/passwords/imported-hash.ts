/** Password hashes of other systems: their cost is bounded at the import, and they are checked until the person's first sign-in here. */
import { argon2, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { Worker } from 'node:worker_threads'

/** The most memory for one check of any algorithm. Up to four run at once: two for sign-ins, two for new passwords. */
const MEMORY_BYTES_MAX = 128 * 1024 * 1024
const BCRYPT_COST = { min: 4, max: 14 }
const ARGON2_PASSES_MAX = 10
/** The most KiB of memory times passes: about a second. */
const ARGON2_WORK_MAX = 1_048_576
const PARALLELISM_MAX = 16
const PBKDF2_ROUNDS_MAX = 2_000_000
const DIGEST_BYTES: { readonly [digest: string]: number } = { sha1: 20, sha256: 32, sha512: 64 }
/** The highest cost: with r = 2 it takes the most memory, and RFC 7914 allows r = 1 only up to 15. */
const SCRYPT_LN_MAX = 19
const SCRYPT_R_MAX = 16
const SCRYPT_WORK_MAX = 2 ** 22
const HASH_BYTES = { min: 16, max: 64 }
const SALT_BYTES = { min: 4, max: 64 }
/** bcrypt uses only this much of a password, and stops at a zero byte. */
const BCRYPT_PASSWORD_BYTES_MAX = 72

/** The thread's program, next to this file: both are sources, or both are built. */
const BCRYPT_THREAD = new URL(
  `./bcrypt-thread${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`,
  import.meta.url,
)

type Argon2 = Digest & {
  readonly kind: 'argon2d' | 'argon2i' | 'argon2id'
  readonly version: number
  readonly memoryKib: number
  readonly passes: number
  readonly parallelism: number
}
type Pbkdf2 = Digest & { readonly kind: 'pbkdf2'; readonly digest: string; readonly rounds: number }
type Scrypt = Digest & { readonly kind: 'scrypt'; readonly ln: number; readonly r: number; readonly p: number }
type Digest = { readonly salt: Buffer; readonly hash: Buffer }
type ImportedHash = { readonly kind: 'bcrypt'; readonly cost: number } | Argon2 | Pbkdf2 | Scrypt

const BASE64 = '[A-Za-z0-9+/]{1,128}'
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
const ARGON2 = new RegExp(
  `^\\$(argon2(?:id|i|d))\\$v=(\\d{1,3})\\$m=(\\d{1,8}),t=(\\d{1,4}),p=(\\d{1,4})\\$(${BASE64})\\$(${BASE64})$`,
)
const PBKDF2 = new RegExp(`^\\$pbkdf2-(sha(?:1|256|512))\\$i=(\\d{1,8})(?:,l=\\d{1,3})?\\$(${BASE64})\\$(${BASE64})$`)
const SCRYPT = new RegExp(`^\\$scrypt\\$ln=(\\d{1,2}),r=(\\d{1,3}),p=(\\d{1,3})\\$(${BASE64})\\$(${BASE64})$`)
// passlib: no digest means SHA-1, the rounds have no name, and `.` is used for `+`.
const PASSLIB = /^\$pbkdf2(?:-(sha256|sha512))?\$(\d{1,8})\$([A-Za-z0-9./]{1,128})\$([A-Za-z0-9./]{1,128})$/
// Matches Django's form: the salt is text, and the algorithm comes first.
const DJANGO = /^pbkdf2_(sha1|sha256)\$(\d{1,8})\$([^$\s]{1,64})\$([A-Za-z0-9+/=]{1,88})$/
const DJANGO_PREFIX = /^(?:bcrypt\$|argon2(?=\$?argon2))/

/** The hash in the spelling for storing, or its issue. */
export function readImportedHash(text: string): { readonly hash: string } | { readonly issue: string } {
  const hash = canonical(text)
  const parsed = parse(hash)
  if (parsed === null)
    return {
      issue: 'is not a hash of bcrypt ($2b$), Argon2 ($argon2id$v=19$), PBKDF2 ($pbkdf2-sha256$) or scrypt ($scrypt$)',
    }
  const issue = boundIssue(parsed)
  return issue === null ? { hash } : { issue }
}

/** Null: it is not the hash of another system, or its cost is beyond the bounds. Rejects when the check itself fails. */
export async function verifyImported(secret: string, stored: string): Promise<boolean | null> {
  const parsed = parse(stored)
  if (parsed === null || parsed.kind === 'scrypt' || boundIssue(parsed) !== null) return null
  if (parsed.kind === 'bcrypt') {
    // If the other system accepted a zero byte at all, it ended the password there.
    return secret.includes('\0') ? false : verifyBcrypt(secret, stored)
  }
  const found = parsed.kind === 'pbkdf2' ? await derivePbkdf2(secret, parsed) : await deriveArgon2(secret, parsed)
  return timingSafeEqual(found, parsed.hash)
}

/** Parses scrypt for imports and for our own hashes: all that an import accepts can be verified. Null: no such hash, or too expensive. */
export function readScrypt(stored: string): Scrypt | null {
  const parsed = parse(stored)
  return parsed?.kind === 'scrypt' && boundIssue(parsed) === null ? parsed : null
}

/** Runs a check in its own thread. The caller limits how many run at once. */
function verifyBcrypt(secret: string, stored: string): Promise<boolean> {
  return new Promise((done, fail) => {
    const worker = new Worker(BCRYPT_THREAD, { execArgv: [], workerData: { secret, stored } })
    let answer: boolean | null = null
    worker.once('message', (matches) => {
      answer = matches === true
    })
    worker.once('error', fail)
    // Resolves only when the thread has ended, because the caller counts threads.
    worker.once('exit', () => {
      if (answer === null) fail(new Error('the thread ended without an answer'))
      else done(answer)
    })
  })
}

/** True if bcrypt uses the whole secret. If it ignores the end, a hash of ours could refuse what the imported one accepts. */
export const isWholeSecret = (secret: string, stored: string): boolean =>
  !BCRYPT.test(stored) || Buffer.byteLength(secret) <= BCRYPT_PASSWORD_BYTES_MAX

/** The parts of a hash that determine how long its check takes. */
export function costOf(stored: string): string {
  if (BCRYPT.test(stored)) return stored.slice(0, 7)
  const at = stored.lastIndexOf('$')
  return `${stored.slice(0, stored.lastIndexOf('$', at - 1))} ${stored.length - at - 1}`
}

/** A decoy: checking it takes as long as a real hash of this cost, and no secret matches it. */
export function hashOfCost(cost: string): string {
  if (cost.startsWith('$2')) return `${cost}${'.'.repeat(22)}${randomText(31)}`
  const [parameters = '', length = '43'] = cost.split(' ')
  return `${parameters}$${randomText(22)}$${randomText(Number(length))}`
}

/** Removes zeros before numbers. The base64 of these hashes has no "=" inside. */
const canonical = (given: string): string => spelledAsPhc(given).replaceAll(/(?<==)0+(?=\d)/g, '')

function spelledAsPhc(given: string): string {
  const text = given.replace(DJANGO_PREFIX, '').replace(/^(?=argon2)/, '$')
  const passlib = PASSLIB.exec(text)
  if (passlib !== null) {
    const [, digest = 'sha1', rounds = '', salt = '', hash = ''] = passlib
    return `$pbkdf2-${digest}$i=${rounds}$${salt.replaceAll('.', '+')}$${hash.replaceAll('.', '+')}`
  }
  const django = DJANGO.exec(text)
  if (django === null) return text
  const [, digest = '', rounds = '', salt = '', hash = ''] = django
  return `$pbkdf2-${digest}$i=${rounds}$${unpadded(Buffer.from(salt).toString('base64'))}$${unpadded(hash)}`
}

function parse(text: string): ImportedHash | null {
  const bcrypt = BCRYPT.exec(text)
  if (bcrypt !== null) return { kind: 'bcrypt', cost: Number(bcrypt[1]) }
  const argon = ARGON2.exec(text)
  if (argon !== null) {
    const [, kind = '', version, memoryKib, passes, parallelism, salt, hash] = argon
    const numbers = { version: Number(version), memoryKib: Number(memoryKib), passes: Number(passes) }
    if (kind !== 'argon2d' && kind !== 'argon2i' && kind !== 'argon2id') return null
    return { kind, ...numbers, parallelism: Number(parallelism), ...digestOf(salt, hash) }
  }
  const derived = PBKDF2.exec(text)
  if (derived !== null) {
    const [, digest = '', rounds, salt, hash] = derived
    return { kind: 'pbkdf2', digest, rounds: Number(rounds), ...digestOf(salt, hash) }
  }
  const scrypt = SCRYPT.exec(text)
  if (scrypt === null) return null
  const [, ln, r, p, salt, hash] = scrypt
  return { kind: 'scrypt', ln: Number(ln), r: Number(r), p: Number(p), ...digestOf(salt, hash) }
}

const digestOf = (salt = '', hash = ''): Digest => ({
  salt: Buffer.from(salt, 'base64'),
  hash: Buffer.from(hash, 'base64'),
})

/** The reason why a check would be too expensive, or pointless. */
function boundIssue(parsed: ImportedHash): string | null {
  if (parsed.kind === 'bcrypt') return outside('its cost', parsed.cost, BCRYPT_COST)
  const lengths =
    outside('the length of its hash', parsed.hash.length, HASH_BYTES) ??
    outside('the length of its salt', parsed.salt.length, SALT_BYTES)
  if (lengths !== null) return lengths
  if (parsed.kind === 'pbkdf2') return pbkdf2Issue(parsed)
  if (parsed.kind === 'scrypt') return scryptIssue(parsed)
  const { version, memoryKib, passes, parallelism } = parsed
  // RFC 9106 section 3.1: the only version that anything makes today, and at least 8 KiB for each lane.
  if (version !== 19) return 'has not version 19 of Argon2'
  return (
    outside('its parallelism', parallelism, { min: 1, max: PARALLELISM_MAX }) ??
    outside('its memory in KiB', memoryKib, { min: 8 * parallelism, max: MEMORY_BYTES_MAX / 1_024 }) ??
    outside('its number of passes', passes, { min: 1, max: ARGON2_PASSES_MAX }) ??
    outside('its memory times its passes', memoryKib * passes, { min: 1, max: ARGON2_WORK_MAX }) ??
    outside('the length of its salt', parsed.salt.length, { min: 8, max: SALT_BYTES.max })
  )
}

/** RFC 8018 section 5.2: each block of the digest's length takes all rounds. */
function pbkdf2Issue({ digest, rounds, hash }: Pbkdf2): string | null {
  const blocks = Math.ceil(hash.length / (DIGEST_BYTES[digest] ?? 1))
  return (
    outside('its number of rounds', rounds, { min: 1, max: PBKDF2_ROUNDS_MAX }) ??
    outside('its rounds times the blocks of its hash', rounds * blocks, { min: 1, max: PBKDF2_ROUNDS_MAX })
  )
}

function scryptIssue({ ln, r, p }: Scrypt): string | null {
  const blocks = 2 ** ln * r
  return (
    outside('its r', r, { min: 1, max: SCRYPT_R_MAX }) ??
    // N must be below 2^(128 * r / 8) (RFC 7914 section 2), and no library computes more.
    outside('its ln', ln, { min: 1, max: Math.min(SCRYPT_LN_MAX, 16 * r - 1) }) ??
    outside('its p', p, { min: 1, max: PARALLELISM_MAX }) ??
    outside('its memory in bytes', 128 * blocks, { min: 1, max: MEMORY_BYTES_MAX }) ??
    outside('its work', blocks * p, { min: 1, max: SCRYPT_WORK_MAX })
  )
}

const outside = (what: string, value: number, { min, max }: { readonly min: number; readonly max: number }) =>
  value >= min && value <= max ? null : `${what} is ${value}; it may be ${min} to ${max}`

function derivePbkdf2(secret: string, { digest, rounds, salt, hash }: Pbkdf2): Promise<Buffer> {
  return new Promise((done, fail) => {
    pbkdf2(secret, salt, rounds, hash.length, digest, (error, key) => (error === null ? done(key) : fail(error)))
  })
}

function deriveArgon2(secret: string, parsed: Argon2): Promise<Buffer> {
  const { kind, memoryKib: memory, passes, parallelism, salt: nonce, hash } = parsed
  const parameters = { message: secret, nonce, memory, passes, parallelism, tagLength: hash.length }
  return new Promise((done, fail) => {
    argon2(kind, parameters, (error, key) => (error === null ? done(key) : fail(error)))
  })
}

/** Uses an alphabet that both kinds of base64 share; the last character has no bits that a decoder drops. */
const randomText = (length: number): string =>
  `${randomBytes(length)
    .toString('hex')
    .slice(0, length - 1)
    .replaceAll(/[0-9]/g, 'B')}A`

const unpadded = (base64: string): string => base64.replace(/=+$/, '')
