/** Hashes of passwords that cost next to nothing to check: what they cost in earnest would be most of the identity tests' time. */
import { randomBytes, scryptSync } from 'node:crypto'

/** As hashSecret makes them, of the least cost that verifySecret takes. */
export const cheapHash = (password: string): string => hashOf(password, { ln: 1, r: 1 })

/** Some tens of milliseconds: enough for checks to wait in line. */
export const slowHash = (password: string): string => hashOf(password, { ln: 14, r: 8 })

function hashOf(password: string, { ln, r }: { readonly ln: number; readonly r: number }): string {
  const salt = randomBytes(16)
  const hash = scryptSync(password.normalize('NFC'), salt, 32, { N: 2 ** ln, r, p: 1 })
  const encode = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')
  return `$scrypt$ln=${ln},r=${r},p=1$${encode(salt)}$${encode(hash)}`
}
