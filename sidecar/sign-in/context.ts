/** The parts of signing in that are shared, made from one route file, and where their pages are. */
import type { Attempts } from '../../pdp/shared/base/attempts.ts'
import type { AlgorithmName } from '../../pdp/shared/token/algorithms.ts'
import type { KeySource } from '../../pdp/shared/token/keys.ts'
import type { TokenVerifier } from '../../pdp/shared/token/verify.ts'
import type { SignInMemory } from './memory.ts'
import type { Theme } from './pages.ts'
import type { Provider } from './provider.ts'
import type { Refresher } from './refresh.ts'
import type { Sealing } from './sealing.ts'
import type { Sessions } from './session-store.ts'

/** The public address of this sidecar. */
export type Site = {
  readonly origin: string
  readonly hostname: string
  /** Path under which clients reach the sidecar, without a trailing slash. */
  readonly base: string
}
export type SignInContext = {
  readonly site: Site
  readonly theme: Theme
  readonly providers: ReadonlyMap<string, Provider>
  /** By issuer. */
  readonly issuers: ReadonlyMap<string, TrustedKeys>
  readonly sealing: Sealing
  readonly sessions: Sessions
  readonly refresher: Refresher
  readonly memory: SignInMemory
  /** Bounds what one client's address may begin. */
  readonly starts: Attempts
  readonly tokens: TokenVerifier
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly count: (step: SignInStep) => void
  readonly log: { info(line: object): void; warn(line: object): void }
}
/** How each step may end that is counted: fixed sets, for nobody may choose the labels of metrics. */
type Outcomes = {
  /** A browser was sent to the issuer, or could not be. */
  readonly sent: 'done' | 'issuer_unavailable' | 'too_many'
  /** It came back. `stranger`: begun in another browser, or finished before. */
  readonly returned:
    | 'done'
    | 'cancelled'
    | 'issuer_refused'
    | 'issuer_unavailable'
    | 'tokens_refused'
    | 'too_weak'
    | 'too_large'
    | 'late'
    | 'stranger'
    | 'foreign'
  readonly renewed: 'done' | 'ended_by_issuer' | 'failed'
  readonly signed_out: 'by_person' | 'by_issuer' | 'logout_token_refused' | 'tokens_not_revoked'
}
export type SignInStep = {
  [Step in keyof Outcomes]: {
    /** The issuer of the route file; empty: not known. */
    readonly issuer: string
    readonly step: Step
    readonly outcome: Outcomes[Step]
  }
}[keyof Outcomes]
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

export function siteOf(publicUrl: string): Site {
  const { origin, hostname, pathname } = new URL(publicUrl)
  return { origin, hostname: hostname.toLowerCase(), base: pathname.replace(/\/+$/, '') }
}

/** Absolute, so that no part of it can be read as another host. `path` begins with one slash. */
export const urlAt = ({ origin, base }: Site, path: string): string => `${origin}${base}${path}`

export const ownUrl = (site: Site, path: string, name = ''): string =>
  urlAt(site, `${OWN_PATHS}${path}${name === '' ? '' : `/${name}`}`)
