/** What all parts of signing in share, made from one route file, and where their pages are. */
import type { AlgorithmName } from '../../pdp/token/algorithms.ts'
import type { KeySource } from '../../pdp/token/keys.ts'
import type { TokenVerifier } from '../../pdp/token/verify.ts'
import type { SignInMemory } from './memory.ts'
import type { Provider } from './provider.ts'
import type { Refresher } from './refresh.ts'
import type { Sealing } from './sealing.ts'
import type { Sessions } from './sessions.ts'

/** The public address of this sidecar. */
export type Place = {
  readonly origin: string
  readonly hostname: string
  /** Path under which clients reach the sidecar, without a trailing slash. */
  readonly base: string
}
export type SignInContext = {
  readonly place: Place
  readonly providers: ReadonlyMap<string, Provider>
  /** By issuer. */
  readonly issuers: ReadonlyMap<string, TrustedKeys>
  readonly sealing: Sealing
  readonly sessions: Sessions
  readonly refresher: Refresher
  readonly memory: SignInMemory
  readonly tokens: TokenVerifier
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: { info(line: object): void; warn(line: object): void }
}
export type TrustedKeys = {
  readonly keys: KeySource
  readonly algorithms: readonly AlgorithmName[]
  /** Not the PDP: its subjects may have other names in access tokens than in ID tokens. */
  readonly isExternal: boolean
}

/** No route can have these paths: the sidecar answers them itself. */
export const OWN_PATHS = '/.portcullis/'
export const PATHS = {
  signIn: 'sign-in',
  callback: 'callback',
  signOut: 'sign-out',
  signedOut: 'signed-out',
  backChannel: 'backchannel-logout',
} as const

export function placeOf(publicUrl: string): Place {
  const { origin, hostname, pathname } = new URL(publicUrl)
  return { origin, hostname: hostname.toLowerCase(), base: pathname.replace(/\/+$/, '') }
}

/** Absolute, so that no part of it can be read as another host. `path` begins with one slash. */
export const urlAt = ({ origin, base }: Place, path: string): string => `${origin}${base}${path}`

export const ownUrl = (place: Place, path: string, name = ''): string =>
  urlAt(place, `${OWN_PATHS}${path}${name === '' ? '' : `/${name}`}`)
