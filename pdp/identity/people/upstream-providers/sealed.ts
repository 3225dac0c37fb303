/** State of a sign-in at another provider: the browser keeps it in encrypted cookies of this host. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
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
  /** Seconds since the epoch. */
  readonly at: number
}
/** A person of a provider with whom no account here is connected. */
export type Stranger = {
  readonly provider: string
  readonly person: UpstreamPerson
  readonly target: Target
  readonly at: number
}
/** A person who signed in at the provider and whose second factor here is missing. */
export type Halfway = {
  readonly accountId: string
  /** When the person signed in at the provider. */
  readonly ts: number
  readonly at: number
  readonly provider: string
  readonly target: Target
}

const PURPOSE = 'foreign-sign-in'
const WAY_SECONDS = 600
const HANDED_SECONDS = 60
const HALFWAY_SECONDS = 300

export type Sealed = {
  keepWay(res: ServerResponse, state: string, way: Way): void
  /** Null in another browser, for another state, and after too long a time. */
  wayOf(req: IncomingMessage, state: string): Way | null
  dropWay(res: ServerResponse): void
  keepStranger(res: ServerResponse, stranger: Stranger): void
  strangerOf(req: IncomingMessage): Stranger | null
  dropStranger(res: ServerResponse): void
  keepHalfway(res: ServerResponse, halfway: Halfway): void
  halfwayOf(req: IncomingMessage): Halfway | null
  dropHalfway(res: ServerResponse): void
  /** Seals the target for a form of the sign-in page. */
  sealTarget(target: Target): string
  openTarget(sealed: string): Target | null
  /** Hands the sign-in to the page of the interaction, by a cookie that no other path gets. */
  handOver(res: ServerResponse, uid: string, signedIn: SignedIn): void
  handedOver(req: IncomingMessage, uid: string): SignedIn | null
}

export function createSealed(deps: {
  readonly issuer: string
  readonly masterKeys: MasterKeys
  readonly clock: () => number
}): Sealed {
  const { issuer, masterKeys, clock } = deps
  const isSecure = issuer.startsWith('https:')
  const nameOf = (what: string): string => (isSecure ? `__Host-portcullis-${what}` : `portcullis_${what}`)
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
  function set(res: ServerResponse, pair: string, { seconds, path = '/' }: { seconds: number; path?: string }): void {
    const secure = isSecure ? '; Secure' : ''
    res.appendHeader('set-cookie', `${pair}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`)
  }
  // The prefix `__Host-` would not allow to bind it to the interaction's path.
  const handed = 'portcullis_signed_in'

  return {
    keepWay: (res, state, way) =>
      set(res, `${nameOf('away')}=${sealAs(`way ${state}`, way)}`, { seconds: WAY_SECONDS }),
    wayOf(req, state) {
      const way = opened<Way>(`way ${state}`, cookieOf(req, nameOf('away')))
      return way === null || isLate(way.at, WAY_SECONDS) ? null : way
    },
    dropWay: (res) => set(res, `${nameOf('away')}=`, { seconds: 0 }),
    keepStranger: (res, stranger) =>
      set(res, `${nameOf('stranger')}=${sealAs('stranger', stranger)}`, { seconds: WAY_SECONDS }),
    strangerOf(req) {
      const stranger = opened<Stranger>('stranger', cookieOf(req, nameOf('stranger')))
      return stranger === null || isLate(stranger.at, WAY_SECONDS) ? null : stranger
    },
    dropStranger: (res) => set(res, `${nameOf('stranger')}=`, { seconds: 0 }),
    keepHalfway: (res, halfway) =>
      set(res, `${nameOf('halfway')}=${sealAs('halfway', halfway)}`, { seconds: HALFWAY_SECONDS }),
    halfwayOf(req) {
      const halfway = opened<Halfway>('halfway', cookieOf(req, nameOf('halfway')))
      return halfway === null || isLate(halfway.at, HALFWAY_SECONDS) ? null : halfway
    },
    dropHalfway: (res) => set(res, `${nameOf('halfway')}=`, { seconds: 0 }),
    sealTarget: (target) => sealAs('target', target),
    openTarget: (sealed) => opened<Target>('target', sealed),
    handOver(res, uid, signedIn) {
      const path = `${mountOf(issuer)}${PATHS.interaction}/${uid}`
      set(res, `${handed}=${sealAs(`signed in for ${uid}`, { signedIn, at: now() })}`, {
        seconds: HANDED_SECONDS,
        path,
      })
    },
    handedOver(req, uid) {
      const found = opened<{ signedIn: SignedIn; at: number }>(`signed in for ${uid}`, cookieOf(req, handed))
      return found === null || isLate(found.at, HANDED_SECONDS) ? null : found.signedIn
    },
  }
}

function cookieOf({ headers }: IncomingMessage, name: string): string {
  for (const pair of (headers.cookie ?? '').split(/; */)) {
    if (pair.startsWith(`${name}=`)) return pair.slice(name.length + 1)
  }
  return ''
}
