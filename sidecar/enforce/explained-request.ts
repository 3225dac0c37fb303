/** The request that `explain` and the tests of a route file describe, as a client would send it. */
import { type ClientRequest, syntheticRequest } from '../http/client-request.ts'

export type RequestHead = {
  readonly method: string
  /** Path, or URL with host. */
  readonly target: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | null
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)/i

/** Adds the fields that every client sends: Host, of `hosts` the first unless the target names one, and those of a JSON body. */
export function toClientRequest(
  { method, target, headers, body }: RequestHead,
  hosts: readonly string[],
): ClientRequest {
  const usual = [['Host', ABSOLUTE.exec(target)?.[1] ?? hosts[0]?.replace('*', 'any') ?? '']]
  if (body !== null)
    usual.push(['Content-Length', String(Buffer.byteLength(body))], ['Content-Type', 'application/json'])
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const missing = usual.filter(([name = '']) => !given.has(name.toLowerCase()))
  return syntheticRequest({ method, target, raw: [...missing, ...headers].flat() })
}
