/** HTML forms that our own pages receive. */
import type { IncomingMessage } from 'node:http'
import { readAtMost } from '../../process/http-json.ts'

const FORM_BYTES_MAX = 8_192

/** The cookie is SameSite=Lax, so this only adds a second lock; a browser that sends no Origin is let through. */
export function isCrossSite(req: IncomingMessage, issuer: string): boolean {
  const { origin } = req.headers
  return origin !== undefined && origin !== new URL(issuer).origin
}

/** Null when it is too large. */
export async function readForm(req: IncomingMessage, bytesMax = FORM_BYTES_MAX): Promise<URLSearchParams | null> {
  // Left open, so that whoever sends too much is still told so; the rest is thrown away.
  const bytes = await readAtMost(req.iterator({ destroyOnReturn: false }), bytesMax)
  if (bytes !== null) return new URLSearchParams(bytes.toString('utf8'))
  req.resume()
  return null
}
