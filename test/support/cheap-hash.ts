/** Hashes of passwords that cost next to nothing to check: what they cost in earnest would be most of the identity tests' time. */
import { randomBytes, scryptSync } from 'node:crypto'

/** As hashSecret makes them, of the least cost that verifySecret takes. */
export function cheapHash(password: string): string {
  const salt = randomBytes(16)
  const hash = scryptSync(password.normalize('NFC'), salt, 32, { N: 2, r: 1, p: 1 })
  const encode = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')
  return `$scrypt$ln=1,r=1,p=1$${encode(salt)}$${encode(hash)}`
}
