/** A request for a page, and the person who sent it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Session } from 'oidc-provider'
import type { User } from '../../../engine/store/directory.ts'
import type { Frame } from '../../html/frame.ts'
import { BY_PASSWORD_AND_CODE } from '../sign-in/acr.ts'
import { formToken, hasFormToken } from '../sign-in/form-token.ts'
import type { AccountParts } from './deps.ts'

/** How long a sign-in counts as recent: as long as for changes in the console. */
const FRESH_SECONDS = 900

export type AccountVisit = { readonly req: IncomingMessage; readonly res: ServerResponse; readonly frame: Frame }
export type Person = {
  readonly user: User
  readonly session: Session
  /** The time of the person's password in seconds since the epoch. */
  readonly signedInAt: number
  /** The person has an authenticator app. */
  readonly hasCode: boolean
  /** The person may change things: the sign-in is recent, and used all factors that the person has. */
  readonly isFresh: boolean
  /** A token that must come back with each form. */
  readonly xsrf: string
}

/** A form, and the person who sent it. */
export type Change = { readonly person: Person; readonly form: URLSearchParams }

/** The signed-in person; null: the sign-in is missing or has ended. */
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
    user,
    session,
    signedInAt,
    hasCode,
    isFresh: isRecent && (!hasCode || acr === BY_PASSWORD_AND_CODE.acr),
    xsrf: formToken(parts.masterKeys, formsOf(session)),
  }
}

/** True for a form of ours that was made for this session. */
export const isOwnForm = ({ masterKeys }: AccountParts, { session }: Person, form: URLSearchParams): boolean =>
  hasFormToken(form, masterKeys, formsOf(session))

const formsOf = ({ uid }: Session): string => `account ${uid}`
