/** A sign-in from its start to its callback. A cookie binds it to the browser, and the sealed state binds it to the page that began it. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { OWN_COOKIES, ownCookie } from '../http/cookies.ts'
import type { StepUp } from '../routes/step-up.ts'
import type { Sealing } from './sealing.ts'
import { digestOf, parseJson } from './session.ts'
import type { OwnCookies } from './session-store.ts'

export type Start = {
  readonly provider: string
  /** The path and query on this origin to which the person returns. */
  readonly back: string
  readonly stepUp: StepUp | null
  /** True: the issuer must ask for the account, even if it has a session. */
  readonly asksWho?: true
}
export type Returned =
  | {
      readonly kind: 'ours'
      readonly start: Start
      readonly nonce: string
      readonly verifier: string
      readonly cookie: string
    }
  /** `foreign`: the state was not sealed here. `stranger`: the sign-in was begun in another browser, or is finished. */
  | { readonly kind: 'foreign' | 'stranger' | 'late'; readonly start: Start | null }

/** True: the browser has begun sign-ins that may still be finished. */
export const hasStarts = (own: OwnCookies): boolean => own.keys().some((name) => name.startsWith(STATE_COOKIE))

const STATE_COOKIE = `${OWN_COOKIES}state-`
export const START_SECONDS = 600
const SECRET_BYTES = 32
const ID_BYTES = 9
/** How many sign-ins of one browser may be open at the same time, as in several tabs. */
const STARTS_MAX = 4
const BACK_CHARS_MAX = 2_048

type Sealed = Start & { readonly id: string; readonly bound: string; readonly atMs: number }

/** Derives each secret value from the cookie, so that a stolen state is useless in another browser. */
const derived = (secret: string, what: 'state' | 'nonce' | 'verifier'): string => digestOf(`sign-in ${what} ${secret}`)

/** The path to which the person returns. If it is too long for an address, its query goes, or it becomes the start page. */
export function shortened(back: string): string {
  if (back.length <= BACK_CHARS_MAX) return back
  const [path = '/'] = back.split('?', 1)
  return path.length <= BACK_CHARS_MAX ? path : '/'
}

/** The values for the authorization request. Only `state` leaves this process and the browser's cookie as it is. */
export function begin(start: Start, own: OwnCookies, deps: { sealing: Sealing; clock: () => number }) {
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  const atMs = deps.clock()
  // Ids begin with the time, so that they sort by age.
  const id = `${Math.floor(atMs).toString(36)}-${randomBytes(ID_BYTES).toString('base64url')}`
  const sealed: Sealed = { ...start, back: shortened(start.back), id, bound: derived(secret, 'state'), atMs }
  const earlier = [...own.keys()].filter((name) => name.startsWith(STATE_COOKIE)).sort()
  return {
    state: deps.sealing.seal('state', JSON.stringify(sealed)),
    nonce: derived(secret, 'nonce'),
    verifier: derived(secret, 'verifier'),
    /** Values for Set-Cookie. */
    cookies: [
      ownCookie(STATE_COOKIE + id, secret, START_SECONDS),
      ...earlier.slice(0, Math.max(0, earlier.length - STARTS_MAX + 1)).map((name) => ownCookie(name, '', 0)),
    ],
  }
}

/** RFC 9700 sections 4.5.3 and 4.7.1: only the browser that began a sign-in can finish it. */
export function finish(state: string, own: OwnCookies, deps: { sealing: Sealing; clock: () => number }): Returned {
  const text = deps.sealing.open('state', state)
  const sealed = text === null ? null : parse(text)
  if (sealed === null) return { kind: 'foreign', start: null }
  const { id, bound, atMs, ...start } = sealed
  const cookie = STATE_COOKIE + id
  const secret = own.get(cookie)
  if (deps.clock() - atMs > START_SECONDS * 1_000) return { kind: 'late', start }
  if (secret === undefined || !isEqual(derived(secret, 'state'), bound)) return { kind: 'stranger', start }
  return { kind: 'ours', start, nonce: derived(secret, 'nonce'), verifier: derived(secret, 'verifier'), cookie }
}

const isEqual = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** Null for another form: the text was sealed by this program, but perhaps by another version of it. */
function parse(text: string): Sealed | null {
  const read = parseJson(text)
  if (typeof read !== 'object' || read === null) return null
  const { id, bound, atMs, provider, back } = read as Partial<Sealed>
  const texts = [id, bound, provider, back]
  return texts.every((value) => typeof value === 'string') && typeof atMs === 'number' && 'stepUp' in read
    ? (read as Sealed)
    : null
}
