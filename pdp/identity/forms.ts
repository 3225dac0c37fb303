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
  for await (const chunk of req) {
    const part = Buffer.from(chunk)
    bytes += part.length
    if (bytes > bytesMax) return null
    chunks.push(part)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}
