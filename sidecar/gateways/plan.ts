/** The plan of a gateway's configuration, from a route file and the gateway's own places. */
import type { HeaderNames } from '../http/fields.ts'

export type HostAndPort = { readonly host: string; readonly port: number }
/** How the gateway reaches the door, and how it proves who it is. Paths are those that the gateway sees. */
export type DoorAccess =
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'tls'
      readonly at: HostAndPort
      readonly ca: string
      /** Null: the gateway proves itself by the secret. */
      readonly client: { readonly cert: string; readonly key: string } | null
      readonly secretFile: string | null
    }
  | { readonly kind: 'plain'; readonly at: HostAndPort; readonly secretFile: string }

export type GatewayPlan = {
  readonly door: DoorAccess
  /** Where the gateway listens for clients. */
  readonly listen: HostAndPort
  readonly service: HostAndPort & { readonly tls: boolean; readonly http2: boolean }
  /** Served hosts, in lower case. */
  readonly hosts: readonly string[]
  /** Most bytes of a body that the door takes; null: it takes none. */
  readonly bodyBytesMax: number | null
  /** Some route keeps `%2F`. */
  readonly encodedSlash: boolean
  /** Some route forwards the token. */
  readonly forwardToken: boolean
  readonly headers: HeaderNames
}
/** One file of a configuration; `name` says what it is. */
export type ConfigFile = { readonly name: string; readonly text: string }

/** Fields with which a door answers besides the identity, on routes that forward the token. */
export const CREDENTIALS = ['authorization', 'dpop'] as const
/** Longest time for a decision, the door's own deadline included. */
export const DOOR_TIMEOUT_SECONDS = 2

/** `x-auth-subject` as `X-Auth-Subject`. */
export const written = (name: string): string =>
  name === 'dpop'
    ? 'DPoP'
    : name.replaceAll(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase())
