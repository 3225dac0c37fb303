/** Time-based one-time passwords (RFC 6238, RFC 4226) in the form of all authenticator apps: SHA-1, six digits, 30 s. */
import { createHmac, timingSafeEqual } from 'node:crypto'

const STEP_MS = 30_000
const DIGITS = 6
/** The length that RFC 4226 section 4 (R6) recommends: 160 bits. */
export const TOTP_SECRET_BYTES = 20
// RFC 6238 section 5.2: at most one time step of tolerance, for a wrong clock and for the time until the code arrives.
const STEPS_OFF = [0, -1, 1]
const CODE = /^\d{6}$/

/** The password for a counter (RFC 4226 section 5.3). */
export function oneTimePassword(secret: Buffer, counter: number, digits = DIGITS): string {
  const message = Buffer.alloc(8)
  message.writeBigUInt64BE(BigInt(counter))
  const digest = createHmac('sha1', secret).update(message).digest()
  const offset = (digest.at(-1) ?? 0) & 0x0f
  const truncated = digest.readUInt32BE(offset) & 0x7fffffff
  return String(truncated % 10 ** digits).padStart(digits, '0')
}

/** The time step that the code belongs to, or null; every step is compared, each in constant time. */
export function stepOf(
  code: string,
  { secret, nowMs }: { readonly secret: Buffer; readonly nowMs: number },
): number | null {
  const given = code.replace(/\s/g, '') // apps show the code in two groups
  if (!CODE.test(given)) return null
  const current = Math.floor(nowMs / STEP_MS)
  const matching = STEPS_OFF.map((off) => current + off).filter((step) => {
    return timingSafeEqual(Buffer.from(oneTimePassword(secret, step)), Buffer.from(given))
  })
  return matching[0] ?? null
}

/** The URI for an authenticator app, to be shown as QR code. */
export function otpauthUri(key: {
  readonly issuer: string
  readonly account: string
  readonly secret: Buffer
}): string {
  const { host } = new URL(key.issuer)
  // Percent-encoded spaces: not every app reads "+" as one.
  const query = [`secret=${base32(key.secret)}`, `issuer=${encodeURIComponent(host)}`]
  return `otpauth://totp/${encodeURIComponent(host)}:${encodeURIComponent(key.account)}?${query.join('&')}`
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The bytes in base32 without padding (RFC 4648 section 6). */
export function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((group) => BASE32[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')
}
