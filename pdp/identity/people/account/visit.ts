/** A request for a page, and the person behind it. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Session } from 'oidc-provider'
import type { User } from '../../../engine/store/directory.ts'
import type { Frame } from '../../html/frame.ts'
import { BY_PASSWORD_AND_CODE } from '../sign-in/acr.ts'
import type { AccountParts } from './deps.ts'

/** As long as for what people change in the console. */
const FRESH_SECONDS = 900
const FORM_PURPOSE = 'form-signature'

export type AccountVisit = { readonly req: IncomingMessage; readonly res: ServerResponse; readonly frame: Frame }
export type Person = {
  readonly user: User
  readonly session: Session
  /** Seconds since the epoch at which they gave the password. */
  readonly signedInAt: number
  /** They have an authenticator. */
  readonly hasCode: boolean
  /** They may change things: they signed in a short time ago, with everything that they have. */
  readonly isFresh: boolean
  /** Must come back with each form. */
  readonly xsrf: string
}

/** Null when nobody is signed in, or no longer. */
export async function personOf(parts: AccountParts, { req, res }: AccountVisit): Promise<Person | null> {
  const provider = parts.provider()
  const session = await provider.Session.get(provider.createContext(req, res))
  const { accountId, acr } = session
  const signedInAt = session.authTime()
  if (accountId === undefined || signedInAt === undefined) return null
  if (!(await parts.isSignedIn(accountId, signedInAt))) return null
  const [user, hasCode] = await Promise.all([parts.directory.user(accountId), parts.secondFactor.has(accountId)])
  if (user === null) return null
  const isRecent = parts.clock() / 1_000 - signedInAt <= FRESH_SECONDS
  return {
    ...{ user, session, signedInAt, hasCode },
    isFresh: isRecent && (!hasCode || acr === BY_PASSWORD_AND_CODE.acr),
    xsrf: xsrfOf(parts, session),
  }
}

/** The token of the forms of a session. */
const xsrfOf = ({ masterKeys }: Pick<AccountParts, 'masterKeys'>, { uid }: Session): string =>
  signature(masterKeys.derive(FORM_PURPOSE)[0], uid)

/** Besides the cookie's SameSite=Lax: the form came from a page of ours, made for this session. */
export function isOwnForm({ masterKeys }: AccountParts, { session }: Person, form: URLSearchParams): boolean {
  const given = Buffer.from(form.get('xsrf') ?? '')
  return masterKeys.derive(FORM_PURPOSE).some((key) => {
    const expected = Buffer.from(signature(key, session.uid))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

const signature = (key: Buffer, uid: string): string =>
  createHmac('sha256', key).update(`account ${uid}`).digest('base64url')
