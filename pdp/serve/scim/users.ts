/** Users that a directory brings: each is an account of ours and a membership in the organization of the directory. */
import { randomBytes } from 'node:crypto'
import type { JsonObject, JsonValue } from '../../domain/json.ts'
import { type Membership, TIERS, type Tier } from '../../domain/membership.ts'
import { MANAGEMENT_APP } from '../../identity/oauth/management-app.ts'
import type { Provisioned, User } from '../../store/directory.ts'
import { requireConditions, tagOf } from '../http/conditions.ts'
import { EMAIL } from '../management/users/users.ts'
import { RequestProblem } from '../problems/status.ts'
import { ENTERPRISE_SCHEMA, GIVEN_TIERS, USER, USER_SCHEMA } from './attributes.ts'
import { readDocument } from './document.ts'
import { ScimError } from './errors.ts'
import { groupsOf, leaveGroups } from './group-members.ts'
import { type Listed, read } from './listing.ts'
import { locationOf } from './location.ts'
import { isObject } from './match.ts'
import { patched } from './patch.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

const ID_BYTES = 16
const TIER_DEFAULT: Tier = 'member'
const EMAIL_FORM = new RegExp(EMAIL.pattern)
const NAME_CHARACTERS_MAX = 256

export const USERS: Listed = { type: USER, present, related: 'groups' }

export async function createUser(call: ScimCall): Promise<ScimOutcome> {
  const { at, organization, context } = call
  const { active = true, roles, ...document } = readDocument(call.body, USER)
  const id = `${organization}~${randomBytes(ID_BYTES).toString('base64url')}`
  const account = { id, ...accountOf(document), emailVerified: false }
  await at.directory.putUser(account, context)
  await at.provisioning.put(ofUsers(call), { id, ...keptOf(document) })
  const status = active === true ? 'active' : 'suspended'
  await writeMembership(call, id, { role: tierIn(roles, null) ?? TIER_DEFAULT, status })
  if (status === 'suspended') await at.provisioning.setBlocked(id, true)
  const resource = await read({ ...call, id }, USERS, false)
  return { status: 'created', body: resource, ...addressOf(resource) }
}

/** RFC 7644 section 3.5.1. What the directory does not say about `active` and `roles` stays. */
export async function replaceUser(call: ScimCall): Promise<ScimOutcome> {
  const before = await readForWrite(call)
  const sent = readDocument(call.body, USER)
  return update(call, before, { ...pick(before, ['active', 'roles']), ...sent })
}

export async function patchUser(call: ScimCall): Promise<ScimOutcome> {
  const before = await readForWrite(call)
  return update(call, before, readDocument(patched(before, call.body, USER), USER))
}

/** Who is somewhere else as well, or administers Portcullis, loses what they have here; others lose their account. */
export async function deleteUser(call: ScimCall): Promise<ScimOutcome> {
  const { at, organization, id, context } = call
  await readForWrite(call)
  await leaveGroups(call, id)
  const { elsewhere } = await holdingsOf(call, id)
  if (!elsewhere) await at.directory.deleteUser(id, context)
  else {
    await at.store.write(organization, [{ kind: 'membership', user: id, membership: null }], { context })
    await at.provisioning.remove(ofUsers(call), id)
  }
  return { status: 'empty' }
}

async function update(call: ScimCall, before: JsonObject, after: JsonObject): Promise<ScimOutcome> {
  const { at, id } = call
  const { active: wasActive, roles: hadRoles, ...documentBefore } = before
  const { active = wasActive, roles, ...document } = after
  const account = await changedAccount(call, documentBefore, document)
  await at.provisioning.put(ofUsers(call), { id, ...keptOf(document) })
  const had = tierOf(hadRoles)
  const role = tierIn(roles, had) ?? TIER_DEFAULT
  if (active !== wasActive || role !== had)
    await writeMembership(call, id, { role, status: active === true ? 'active' : 'suspended' })
  await changeAccount(call, account, { active: active === true, wasActive: wasActive === true })
  const resource = await read(call, USERS, false)
  return { status: 'ok', body: resource, ...addressOf(resource) }
}

/** The account as it shall be; null: as it is. Throws RequestProblem for another address of who is not this directory's alone. */
async function changedAccount(call: ScimCall, before: JsonObject, after: JsonObject): Promise<User | null> {
  const [was, wanted] = [accountOf(before), accountOf(after)]
  if (was.email === wanted.email && was.name === wanted.name) return null
  const account = await accountIn(call)
  if (was.email === wanted.email) return { ...account, name: wanted.name }
  const { elsewhere, administers } = await holdingsOf(call, call.id)
  if (elsewhere || administers)
    throw new RequestProblem(
      'permission_denied',
      'the address of a user who belongs to another organization, or manages Portcullis, is changed by the operator only',
    )
  return { id: account.id, ...wanted, emailVerified: false }
}

/** Who may not act any more is signed out everywhere, unless another organization lets them in. It must be the last step. */
async function changeAccount(
  call: ScimCall,
  changed: User | null,
  { active, wasActive }: { readonly active: boolean; readonly wasActive: boolean },
): Promise<void> {
  const { at, id, context } = call
  if (active || !wasActive || (await holdingsOf(call, id)).elsewhere) {
    if (changed !== null) await at.directory.putUser(changed, context)
    if (active && !wasActive) await at.provisioning.setBlocked(id, false)
    return
  }
  const account = changed ?? (await accountIn(call))
  await at.directory.putUser(account, context, (sql) => at.sessions.endUser(sql, id, context))
  await at.provisioning.setBlocked(id, true)
}

async function accountIn({ at, id }: ScimCall): Promise<User> {
  const account = await at.directory.user(id)
  if (account === null) throw new RequestProblem('not_found', `there is no user ${JSON.stringify(id.slice(0, 80))}`)
  return account
}

async function holdingsOf({ at, organization }: ScimCall, id: string) {
  const within = await at.moves.below(organization)
  const { elsewhere, administers } = await at.provisioning.holdings(id, within)
  if (administers) return { elsewhere, administers }
  const subject = { type: 'user', id } as const
  const { permissions } = await at.pdp.held({ organization, subject, app: MANAGEMENT_APP })
  return { elsewhere, administers: permissions.length > 0 }
}

async function readForWrite(call: ScimCall): Promise<JsonObject> {
  const resource = await read(call, USERS, false)
  requireConditions(call.headers, String(Object(resource.meta).version))
  return resource
}

async function writeMembership({ at, organization, context }: ScimCall, user: string, membership: Membership) {
  await at.store.write(organization, [{ kind: 'membership', user, membership }], { context })
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
    return {
      schemas: hasExtension ? [USER_SCHEMA, ENTERPRISE_SCHEMA] : [USER_SCHEMA],
      id: user.id,
      ...user.document,
      active,
      ...(membership === null ? {} : { roles: [{ value: membership.role, primary: true }] }),
      ...(own.length === 0 ? {} : { groups: own }),
      meta: {
        resourceType: USER.name,
        created: new Date(user.createdAtMs).toISOString(),
        lastModified: new Date(user.changedAtMs).toISOString(),
        location: locationOf(call, USER, user.id),
        version: tagOf([user.id, user.version, membership]),
      },
    }
  })
}

async function membershipsOf(
  { at, organization }: ScimCall,
  users: readonly Provisioned[],
): Promise<ReadonlyMap<string, Membership>> {
  const keys = users.map(({ id }) => ({ log: organization, kind: 'membership', user: id }) as const)
  if (keys.length === 0) return new Map()
  const { rows } = await at.store.rows([organization], keys)
  return new Map(
    rows.flatMap((row) =>
      'membership' in row && row.membership !== null ? [[row.key.user, row.membership] as const] : [],
    ),
  )
}

/** What is stored beside the account and the membership. */
function keptOf(document: JsonObject) {
  const { schemas, id, meta, groups, active, roles, ...kept } = document
  const { userName, externalId } = kept
  return {
    name: String(userName),
    externalId: typeof externalId === 'string' ? externalId : null,
    document: kept,
  }
}

/** The address is the primary one, else the first, else a user name that is one. Throws ScimError `invalidValue`. */
function accountOf(document: JsonObject): Pick<User, 'email' | 'name'> {
  const emails = (Array.isArray(document.emails) ? document.emails : []).filter(isObject)
  const chosen = emails.find(({ primary }) => primary === true) ?? emails[0]
  const named = EMAIL_FORM.test(String(document.userName)) ? document.userName : null
  const email = chosen?.value ?? named
  if (email !== null && (typeof email !== 'string' || !EMAIL_FORM.test(email) || email.length > EMAIL.maxLength))
    throw new ScimError('invalidValue', 'the e-mail address is not one')
  return { email, name: nameIn(document) }
}

function nameIn({ displayName, name }: JsonObject): string | null {
  const { formatted, givenName, familyName } = isObject(name) ? name : ({} as JsonObject)
  const parts = [givenName, familyName].filter((part) => typeof part === 'string')
  const found = [displayName, formatted, parts.join(' ')].find((text) => typeof text === 'string' && text.trim() !== '')
  return typeof found === 'string' ? found.trim().slice(0, NAME_CHARACTERS_MAX) : null
}

/**
 * The tier that the roles say; null: they say none. Beside the former tier, what is new counts: Entra ID adds a role, and does not take the
 * former one away. Throws ScimError `invalidValue`.
 */
function tierIn(roles: JsonValue | undefined, had: Tier | null): Tier | null {
  const values = (Array.isArray(roles) ? roles : []).filter(isObject)
  if (values.length === 0) return null
  const others = values.filter(({ value }) => String(value).toLowerCase() !== had)
  if (others.length === 0) return had
  const chosen = others.length === 1 ? others[0] : others.find(({ primary }) => primary === true)
  if (chosen === undefined) throw new ScimError('invalidValue', 'roles has several values, of which none is primary')
  const tier = GIVEN_TIERS.find((known) => known === String(chosen.value).toLowerCase())
  if (tier === undefined)
    throw new ScimError('invalidValue', `a directory gives one of the roles ${GIVEN_TIERS.join(', ')}`)
  return tier
}

const tierOf = (roles: JsonValue | undefined): Tier | null =>
  TIERS.find((tier) => Array.isArray(roles) && isObject(roles[0]) && roles[0].value === tier) ?? null

function pick(from: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])))
}

const ofUsers = ({ organization }: ScimCall) => ({ organization, kind: USER.name })

function addressOf(resource: JsonObject): { readonly tag: string; readonly location: string } {
  const { version, location } = Object(resource.meta)
  return { tag: String(version), location: String(location) }
}
