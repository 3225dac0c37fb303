/** The plan of a gateway's configuration, made from a route file and the addresses of the gateway. */
import type { HeaderNames } from '../http/fields.ts'

export type HostAndPort = { readonly host: string; readonly port: number }
/** How the gateway reaches the door and authenticates itself. Paths of files are those on the gateway's machine. */
export type DoorAccess =
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'tls'
      readonly at: HostAndPort
      readonly ca: string
      /** The client certificate; null: the gateway authenticates itself by the secret. */
      readonly client: { readonly cert: string; readonly key: string } | null
      readonly secretFile: string | null
    }
  | { readonly kind: 'plain'; readonly at: HostAndPort; readonly secretFile: string }

export type GatewayPlan = {
  readonly door: DoorAccess
  /** The address at which the gateway listens for clients. */
  readonly listen: HostAndPort
  readonly service: HostAndPort & { readonly tls: boolean; readonly http2: boolean }
  /** Served hosts, in lower case. */
  readonly hosts: readonly string[]
  /** The largest body, in bytes, that the door accepts; null: the door accepts no bodies. */
  readonly bodyBytesMax: number | null
  /** True if some route keeps `%2F`. */
  readonly encodedSlash: boolean
  /** True if some route forwards the token. */
  readonly forwardToken: boolean
  readonly headers: HeaderNames
}
export type ConfigFile = { readonly name: string; readonly text: string }

/** Fields that a door sends, besides identity, on routes that forward the token. */
export const CREDENTIALS = ['authorization', 'dpop'] as const
/** The gateway's longest wait for a decision; the door's own deadline is shorter. */
export const DOOR_TIMEOUT_SECONDS = 2

/** The usual spelling of a field name: `X-Auth-Subject` for `x-auth-subject`. */
export const written = (name: string): string =>
  name === 'dpop'
    ? 'DPoP'
    : name.replaceAll(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase())
