/** HTML forms that our own pages receive. */
import type { IncomingMessage } from 'node:http'
import { readAtMost } from '../../shared/base/http-json.ts'

const FORM_BYTES_MAX = 8_192

/** Protects in addition to the cookie's SameSite=Lax. A browser that sends no Origin field is accepted. */
export function isCrossSite(req: IncomingMessage, issuer: string): boolean {
  const { origin } = req.headers
  return origin !== undefined && origin !== new URL(issuer).origin
}

/** The fields of the form; null when it is too large. */
export async function readForm(req: IncomingMessage, bytesMax = FORM_BYTES_MAX): Promise<URLSearchParams | null> {
  // The connection stays open and surplus bytes are discarded, so that the sender of a too large form gets the answer.
  const bytes = await readAtMost(req.iterator({ destroyOnReturn: false }), bytesMax)
  if (bytes !== null) return new URLSearchParams(bytes.toString('utf8'))
  req.resume()
  return null
}
