/** The account of a user whom a directory has created, and the limits of what the directory may change. */

import type { Holdings, User } from '../../../engine/store/directory.ts'
import { MANAGEMENT_APP } from '../../../identity/oauth/management-app.ts'
import { isAddress } from '../../../identity/people/invitations/mail-address.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import { RequestProblem } from '../http/status.ts'
import { ScimError } from './errors.ts'
import type { ScimCall } from './route.ts'

const NAME_CHARACTERS_MAX = 256

type Changed = { readonly user: User; readonly readdressed: boolean }

/** The changed account; null: no change. Throws RequestProblem for a new address if others than this directory need the account. */
export async function changedAccount(
  call: ScimCall,
  { before, after }: { readonly before: JsonObject; readonly after: JsonObject },
  held: Holdings,
): Promise<Changed | null> {
  // The stored document is not validated: newer rules must not keep a person of an older one from being shut out.
  const [was, { email: given, name }] = [readAccount(before), readAccount(after)]
  if (was.email === given && was.name === name) return null
  const account = await accountIn(call)
  if (was.email === given) return { user: { ...account, name }, readdressed: false }
  const wanted = accountOf(after)
  // If the directory sends no address, the account keeps its own. The operator may have set the new address already.
  if (wanted.email === null || account.email === wanted.email) return { user: { ...account, name }, readdressed: false }
  if (await isShared(call, call.id, held))
    throw new RequestProblem(
      'permission_denied',
      'the address of a user who has something in another organization, or manages Portcullis, is changed by the operator only',
    )
  return { user: { id: account.id, ...wanted, emailVerified: false }, readdressed: true }
}

/** A new address is unverified and may be another person's. So the password and all other ways to sign in end, and all sessions. */
export async function putAccount({ at, context }: ScimCall, { user, readdressed }: Changed): Promise<void> {
  if (!readdressed) return at.directory.putUser(user, context)
  await at.provisioning.dropProofs(user.id, context)
  await at.directory.putUser({ ...user, passwordHash: null }, context, (sql) =>
    at.sessions.endUser(sql, user.id, context),
  )
}

/** Ends all sessions and blocks sign-ins, unless another organization has the person as an active member. Can be repeated. */
export async function shutOut(
  { at, id, context }: ScimCall,
  { activeElsewhere, blocked }: Pick<Holdings, 'activeElsewhere' | 'blocked'>,
): Promise<void> {
  if (activeElsewhere || blocked) return
  const account = await at.directory.user(id)
  if (account === null) return
  await at.directory.putUser(account, context, (sql) => at.sessions.endUser(sql, id, context))
  await at.provisioning.setBlocked(id, true)
}

async function accountIn({ at, id }: ScimCall): Promise<User> {
  const account = await at.directory.user(id)
  if (account === null) throw new RequestProblem('not_found', `there is no user ${JSON.stringify(id.slice(0, 80))}`)
  return account
}

export async function holdingsOf({ at, organization }: ScimCall, id: string): Promise<Holdings> {
  return at.provisioning.holdings(id, await at.moves.below(organization))
}

/** True if others than this directory need the account: deleting the user must not delete it, and its address stays. */
export async function isShared(call: ScimCall, id: string, held: Holdings): Promise<boolean> {
  if (held.elsewhere || (await administers(call, id, held))) return true
  return call.at.provisioning.isRelatedOutside(id, await call.at.moves.below(call.organization))
}

/** True if the user has a role, alone or through a group, that manages Portcullis. */
async function administers({ at, organization }: ScimCall, id: string, held: Holdings): Promise<boolean> {
  if (held.administers) return true
  const { permissions } = await at.pdp.held({ organization, subject: { type: 'user', id }, app: MANAGEMENT_APP })
  return permissions.length > 0
}

/** The account in a document. Throws ScimError `invalidValue` for an invalid address. */
export function accountOf(document: JsonObject): Pick<User, 'email' | 'name'> {
  const { email, name } = readAccount(document)
  if (email !== null && (typeof email !== 'string' || !isAddress(email)))
    throw new ScimError('invalidValue', 'the e-mail address is not valid')
  return { email, name }
}

/** The address is the primary one, else the first, else a user name in the form of one. Directories send '' for a missing one. */
function readAccount(document: JsonObject): { readonly email: unknown; readonly name: string | null } {
  const isGiven = ({ value }: JsonObject): boolean => typeof value !== 'string' || value.trim() !== ''
  const emails = (Array.isArray(document.emails) ? document.emails : []).filter(isJsonObject).filter(isGiven)
  const chosen = emails.find(({ primary }) => primary === true) ?? emails[0]
  const named = isAddress(String(document.userName)) ? document.userName : null
  return { email: chosen?.value ?? named, name: nameIn(document) }
}

function nameIn({ displayName, name }: JsonObject): string | null {
  const { formatted, givenName, familyName } = isJsonObject(name) ? name : ({} as JsonObject)
  const parts = [givenName, familyName].filter((part) => typeof part === 'string')
  const found = [displayName, formatted, parts.join(' ')].find((text) => typeof text === 'string' && text.trim() !== '')
  return typeof found === 'string'
    ? found
        .trim()
        .replace(/\p{Cc}+/gu, ' ')
        .slice(0, NAME_CHARACTERS_MAX)
    : null
}
