/** State of a sign-in at another provider: the browser keeps it in encrypted cookies of this host. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import { cookieOf, createSetCookie, hostCookie } from '../../oauth/own-cookies.ts'
import { mountOf, PATHS } from '../../oauth/paths.ts'
import type { SignedIn, Target } from '../sign-in/sign-in.ts'
import type { AuthorizationSecrets, UpstreamPerson } from './client.ts'

/** A browser's way to a provider and back. */
export type Way = Omit<AuthorizationSecrets, 'state'> & {
  readonly provider: string
  /** Issuer and client id as they were when the person left. */
  readonly issuer: string
  readonly clientId: string
  readonly fresh: boolean
  readonly target: Target
  /** The person and the session that connect the provider; null: a person signs in. */
  readonly connects: { readonly user: string; readonly session: string } | null
  /** The time of sealing in seconds since the epoch. */
  readonly at: number
}
/** A provider's person who has no linked account here. */
export type Stranger = {
  readonly provider: string
  readonly person: UpstreamPerson
  readonly target: Target
  readonly at: number
}
/** A person who signed in at the provider, but still lacks the second factor here. */
export type Halfway = {
  readonly accountId: string
  /** The time of the sign-in at the provider. */
  readonly ts: number
  readonly at: number
  readonly provider: string
  readonly target: Target
}

const PURPOSE = 'foreign-sign-in'
const WAY_SECONDS = 600
const HANDED_SECONDS = 60
const HALFWAY_SECONDS = 300

export function createSealed(deps: {
  readonly issuer: string
  readonly masterKeys: MasterKeys
  readonly clock: () => number
}) {
  const { issuer, masterKeys, clock } = deps
  const set = createSetCookie(issuer)
  const keys = () => masterKeys.derive(PURPOSE)
  const now = (): number => Math.floor(clock() / 1_000)
  const sealAs = (name: string, value: object): string => seal(keys(), name, JSON.stringify(value))
  const isLate = (at: number, seconds: number): boolean => Math.abs(now() - at) > seconds

  function opened<T>(name: string, sealed: string): T | null {
    try {
      return JSON.parse(open(keys(), name, sealed))
    } catch {
      return null
    }
  }
  /** A value in a cookie. `of` gives null in another browser, for another name, and after too long a time. */
  function kept<T extends { readonly at: number }>(what: string, seconds: number) {
    const cookie = hostCookie(issuer, what)
    return {
      keep: (res: ServerResponse, value: T, name = what): void =>
        set(res, `${cookie}=${sealAs(name, value)}`, { seconds }),
      of(req: IncomingMessage, name = what): T | null {
        const value = opened<T>(name, cookieOf(req, cookie))
        return value === null || isLate(value.at, seconds) ? null : value
      },
      drop: (res: ServerResponse): void => set(res, `${cookie}=`, { seconds: 0 }),
    }
  }
  const way = kept<Way>('away', WAY_SECONDS)
  // This cookie lacks the prefix `__Host-`, which does not allow the interaction's path.
  const handed = 'portcullis_signed_in'

  return {
    way: {
      ...way,
      keep: (res: ServerResponse, value: Way, state: string): void => way.keep(res, value, `way ${state}`),
      of: (req: IncomingMessage, state: string): Way | null => way.of(req, `way ${state}`),
    },
    stranger: kept<Stranger>('stranger', WAY_SECONDS),
    halfway: kept<Halfway>('halfway', HALFWAY_SECONDS),
    /** Seals the target for a form of the sign-in page. */
    sealTarget: (target: Target): string => sealAs('target', target),
    openTarget: (sealed: string): Target | null => opened<Target>('target', sealed),
    /** Gives the sign-in to the interaction's page, in a cookie for its path only. */
    handOver(res: ServerResponse, uid: string, signedIn: SignedIn): void {
      const path = `${mountOf(issuer)}${PATHS.interaction}/${uid}`
      const sealed = sealAs(`signed in for ${uid}`, { signedIn, at: now() })
      set(res, `${handed}=${sealed}`, { seconds: HANDED_SECONDS, path })
    },
    handedOver(req: IncomingMessage, uid: string): SignedIn | null {
      const found = opened<{ signedIn: SignedIn; at: number }>(`signed in for ${uid}`, cookieOf(req, handed))
      return found === null || isLate(found.at, HANDED_SECONDS) ? null : found.signedIn
    },
  }
}
