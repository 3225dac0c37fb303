/** A directory's users: each is an account here with a membership in the directory's organization. */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Provisioned } from '../../../engine/store/directory.ts'
import type { JsonObject, JsonValue } from '../../../shared/domain/json.ts'
import { requireConditions } from '../http/conditions.ts'
import { accountOf, changedAccount, holdingsOf, isShared, putAccount, shutOut } from './accounts.ts'
import { ENTERPRISE_SCHEMA, USER, USER_SCHEMA } from './attributes.ts'
import { readDocument } from './document.ts'
import { groupsOf, leaveGroups } from './group-members.ts'
import { type Listed, read, stored } from './listing.ts'
import {
  membershipAfter,
  membershipOf,
  membershipsOf,
  roleOf,
  TIER_DEFAULT,
  tierIn,
  writeMembership,
} from './memberships.ts'
import { patched } from './patch.ts'
import { metaOf, placeOf, written } from './resource.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

const ID_BYTES = 16

export const USERS: Listed = { type: USER, present, related: 'groups' }

export async function createUser(call: ScimCall): Promise<ScimOutcome> {
  const { at, organization, context } = call
  const { active = true, roles, ...document } = readDocument(call.body, USER)
  const id = `${organization}~${randomBytes(ID_BYTES).toString('base64url')}`
  const account = { id, ...accountOf(document), emailVerified: false }
  await at.directory.putUser(account, context)
  await at.provisioning.put(placeOf(call, USER), { id, ...keptOf(document, roles) })
  const status = active === true ? 'active' : 'suspended'
  await writeMembership(call, id, { role: tierIn(roles, null) ?? TIER_DEFAULT, status })
  if (status === 'suspended') await at.provisioning.setBlocked(id, true)
  return written('created', await read({ ...call, id }, USERS, false))
}

/** RFC 7644 section 3.5.1: `active` and `roles` stay as they are if the directory does not send them. */
export async function replaceUser(call: ScimCall): Promise<ScimOutcome> {
  const before = await readForWrite(call)
  const sent = readDocument(call.body, USER)
  const { roles } = before
  return update(call, before, { ...(roles !== undefined && { roles }), ...sent })
}

export async function patchUser(call: ScimCall): Promise<ScimOutcome> {
  const before = await readForWrite(call)
  const { active, ...base } = before
  return update(call, before, readDocument(patched(base, call.body, USER), USER))
}

/**
 * Shuts a person out although the rest of the PATCH or PUT was refused: an invalid attribute must not keep the person in. The
 * request's conditions are evaluated again.
 */
export async function deactivateAlone(call: ScimCall): Promise<void> {
  const before = await readForWrite(call)
  await update(call, before, { ...before, active: false })
}

/**
 * Deletes the account. A person who has something in another organization, or administers Portcullis, keeps it, and only the membership
 * here is suspended: without a membership, grants here would still count, as a guest's.
 */
export async function deleteUser(call: ScimCall): Promise<ScimOutcome> {
  const { at, id, context } = call
  await readForWrite(call)
  // Read before the user leaves the groups, through which the user may administer.
  const held = await holdingsOf(call, id)
  const shared = await isShared(call, id, held)
  await leaveGroups(call, id)
  if (!shared) await at.directory.deleteUser(id, context)
  else {
    const { role } = (await membershipOf(call, id)) ?? { role: TIER_DEFAULT }
    await writeMembership(call, id, { role, status: 'suspended' })
    await at.provisioning.remove(placeOf(call, USER), id)
    await shutOut(call, held)
  }
  return { status: 'empty' }
}

/** `after.active`: the request's value; undefined: none. */
async function update(call: ScimCall, before: JsonObject, after: JsonObject): Promise<ScimOutcome> {
  const { at, id } = call
  const { active: _wasActive, roles: hadRoles, ...documentBefore } = before
  const { active, roles, ...document } = after
  const held = await holdingsOf(call, id)
  const account = await changedAccount(call, { before: documentBefore, after: document }, held)
  const said = { active: typeof active === 'boolean' ? active : null, roles }
  const membership = membershipAfter(await membershipOf(call, id), said, held)
  // Roles as in our own answer keep the words of the directory.
  const words = isDeepStrictEqual(roles, hadRoles) ? (await stored(call, USERS)).document.roles : roles
  await at.provisioning.put(
    placeOf(call, USER),
    { id, ...keptOf(document, words) },
    membership !== null || account !== null,
  )
  if (membership !== null) await writeMembership(call, id, membership)
  if (account !== null) await putAccount(call, account)
  if (active === true) await at.provisioning.setBlocked(id, false)
  if (active === false) await shutOut(call, held)
  return written('ok', await read(call, USERS, false))
}

async function readForWrite(call: ScimCall): Promise<JsonObject> {
  const resource = await read(call, USERS, false)
  requireConditions(call.headers, String(Object(resource.meta).version))
  return resource
}

async function present(
  call: ScimCall,
  users: readonly Provisioned[],
  related: boolean,
): Promise<readonly JsonObject[]> {
  const memberships = await membershipsOf(call, users)
  const groups = related ? await Promise.all(users.map(({ id }) => groupsOf(call, id))) : []
  return users.map((user, i) => {
    const membership = memberships.get(user.id) ?? null
    const active = membership?.status === 'active'
    const hasExtension = user.document[ENTERPRISE_SCHEMA] !== undefined
    const own = groups[i] ?? []
    const { roles: _words, ...document } = user.document
    return {
      schemas: hasExtension ? [USER_SCHEMA, ENTERPRISE_SCHEMA] : [USER_SCHEMA],
      id: user.id,
      ...document,
      active,
      ...(membership === null ? {} : { roles: [roleOf(user, membership)] }),
      ...(own.length === 0 ? {} : { groups: own }),
      meta: metaOf(call, USER, user, membership),
    }
  })
}

/** The stored rest of the document, without account and membership. `roles`: the directory's words for the tier. */
function keptOf(document: JsonObject, roles: JsonValue | undefined) {
  const { schemas, id, meta, groups, active, roles: _shown, ...kept } = document
  const { userName, externalId } = kept
  return {
    name: String(userName),
    externalId: typeof externalId === 'string' ? externalId : null,
    document: roles === undefined ? kept : { ...kept, roles },
  }
}
