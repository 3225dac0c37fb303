/** HTML forms that our own pages receive. */
import type { IncomingMessage } from 'node:http'

const FORM_BYTES_MAX = 8_192

/** The cookie is SameSite=Lax, so this only adds a second lock; a browser that sends no Origin is let through. */
export function isCrossSite(req: IncomingMessage, issuer: string): boolean {
  const { origin } = req.headers
  return origin !== undefined && origin !== new URL(issuer).origin
}

/** Null when it is too large. */
export async function readForm(req: IncomingMessage, bytesMax = FORM_BYTES_MAX): Promise<URLSearchParams | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Left open, so that whoever sends too much is still told so; the rest is thrown away.
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    const part = Buffer.from(chunk)
    bytes += part.length
    if (bytes > bytesMax) break
    chunks.push(part)
  }
  if (bytes > bytesMax) {
    req.resume()
    return null
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}
