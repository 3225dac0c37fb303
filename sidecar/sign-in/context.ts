/** The shared parts of signing in, made from one route file, and the paths of its pages. */
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
  /** The path under which clients reach the sidecar, without a trailing slash. */
  readonly base: string
}
export type SignInContext = {
  readonly site: Site
  readonly theme: Theme
  readonly providers: ReadonlyMap<string, Provider>
  /** The trusted issuers by their `issuer` value. */
  readonly issuers: ReadonlyMap<
    string,
    {
      readonly keys: KeySource
      readonly algorithms: readonly AlgorithmName[]
      /** True for an issuer other than the PDP: its access tokens may name a subject differently from its ID tokens. */
      readonly isExternal: boolean
    }
  >
  readonly sealing: Sealing
  readonly sessions: Sessions
  readonly refresher: Refresher
  readonly memory: SignInMemory
  /** Bounds how many sign-ins one client address may begin. */
  readonly starts: Attempts
  readonly tokens: TokenVerifier
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly count: (step: SignInStep) => void
  readonly log: { info(line: object): void; warn(line: object): void }
}
/** The same context with a log that adds the request's id to each line. */
export const contextOfRequest = (context: SignInContext, requestId: string): SignInContext => ({
  ...context,
  log: {
    info: (line) => context.log.info({ ...line, request_id: requestId }),
    warn: (line) => context.log.warn({ ...line, request_id: requestId }),
  },
})

/** The outcomes of each step that are counted. The sets are fixed, since no client may choose the labels of metrics. */
type Outcomes = {
  /** A browser was sent to the issuer, or could not be sent. */
  readonly sent: 'done' | 'issuer_unavailable' | 'too_many'
  /** The browser came back. `stranger`: the sign-in was begun in another browser, or is finished. */
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
    /** The issuer of the route file; empty: unknown. */
    readonly issuer: string
    readonly step: Step
    readonly outcome: Outcomes[Step]
  }
}[keyof Outcomes]
/** The prefix of paths that the sidecar answers itself; no route can begin with it. */
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

/** The absolute URL: no browser can read a part of it as another host. `path` must begin with one slash. */
export const urlAt = ({ origin, base }: Site, path: string): string => `${origin}${base}${path}`

export const ownUrl = (site: Site, path: string, name = ''): string =>
  urlAt(site, `${OWN_PATHS}${path}${name === '' ? '' : `/${name}`}`)
