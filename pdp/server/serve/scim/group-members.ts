/** Members of a directory's groups: tuples `group:<id>#member@…` of the organization, on which roles and relations depend. */

import { CHANGES_MAX, parseRelationships } from '../../../engine/writes/relationships.ts'
import { createRestrictions } from '../../../engine/writes/restrictions.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Tuple, TupleKey } from '../../../shared/domain/tuple.ts'
import { GROUP, MEMBERS_MAX, USER } from './attributes.ts'
import { ScimError } from './errors.ts'
import { locationOf } from './resource.ts'
import type { ScimCall } from './route.ts'

/** How many groups of one user are shown. */
const GROUPS_MAX = 1_000
const MEMBER = 'member'
export const groupObject = (id: string): string => `group:${id}`
const subjectOf = (kind: 'User' | 'Group', id: string): string =>
  kind === 'User' ? `user:${id}` : `group:${id}#member`

export type Member = { readonly kind: 'User' | 'Group'; readonly id: string; readonly name: string }

/** Members that are users and groups of this directory. It neither sees nor removes members that others wrote into the group. */
export async function membersOf(call: ScimCall, group: string): Promise<readonly Member[]> {
  const filter = { object: groupObject(group), relation: MEMBER }
  const tuples = await call.at.store.tuples(call.organization, filter, { after: null, countMax: MEMBERS_MAX + 1 })
  const found = tuples.flatMap(({ subject }) => parseSubject(subject))
  const names = await namesOf(call, found)
  return found.flatMap(({ kind, id }) => {
    const name = names[kind].get(id)
    return name === undefined ? [] : [{ kind, id, name }]
  })
}

export const presentMember = (call: ScimCall, { kind, id, name }: Member): JsonObject => ({
  value: id,
  $ref: locationOf(call, kind === 'User' ? USER : GROUP, id),
  type: kind,
  display: name,
})

/** Throws ScimError `invalidValue` for a member that the directory did not bring. */
export async function writeMembers(
  call: ScimCall,
  group: string,
  { before, wanted }: { readonly before: readonly Member[]; readonly wanted: readonly JsonObject[] },
): Promise<boolean> {
  const ids = [...new Set(wanted.map(({ value }) => (typeof value === 'string' ? value : '')))]
  const names = await namesOf(
    call,
    ids.flatMap((id) => (['User', 'Group'] as const).map((kind) => ({ kind, id }))),
  )
  const unknown = ids.find((id) => id === group || (!names.User.has(id) && !names.Group.has(id)))
  if (unknown !== undefined)
    throw new ScimError(
      'invalidValue',
      `${JSON.stringify(unknown.slice(0, 80))} is neither a user nor another group here`,
    )
  const had = new Set(before.map(({ kind, id }) => subjectOf(kind, id)))
  const wants = new Set(ids.map((id) => subjectOf(names.User.has(id) ? 'User' : 'Group', id)))
  const tuple = (subject: string) => ({ object: groupObject(group), relation: MEMBER, subject })
  const added = [...wants.difference(had)].map(tuple)
  const removed = [...had.difference(wants)].map(tuple)
  await write(call, { write: added, delete: removed })
  return added.length + removed.length > 0
}

/** Removes a user who leaves from all groups of the organization. */
export async function leaveGroups(call: ScimCall, user: string): Promise<void> {
  await write(call, { write: [], delete: await tuplesOfUser(call, user) })
}

/** The value of the attribute `groups` of a user. */
export async function groupsOf(call: ScimCall, user: string): Promise<readonly JsonObject[]> {
  const ids = (await tuplesOfUser(call, user)).map(({ object }) => object.slice(groupObject('').length))
  const names = await call.at.provisioning.known({ organization: call.organization, kind: 'Group' }, ids)
  return [...names].map(([id, display]) => ({ value: id, $ref: locationOf(call, GROUP, id), display, type: 'direct' }))
}

export async function write(
  call: ScimCall,
  changes: {
    readonly write: readonly TupleKey[]
    readonly delete: readonly TupleKey[]
  },
): Promise<void> {
  const restriction = await createRestrictions()(call.at.store)
  for (const op of ['delete', 'write'] as const) {
    for (let from = 0; from < changes[op].length; from += CHANGES_MAX) {
      const part = changes[op]
        .slice(from, from + CHANGES_MAX)
        .map(({ object, relation, subject }) => ({ object, relation, subject }))
      const parsed = parseRelationships({ [op]: part }, restriction)
      await call.at.store.write(call.organization, parsed.changes, { context: call.context })
    }
  }
}

type Named = { readonly kind: 'User' | 'Group'; readonly id: string }

async function tuplesOfUser({ at, organization }: ScimCall, user: string): Promise<readonly Tuple[]> {
  const filter = { relation: MEMBER, subject: `user:${user}` }
  const tuples = await at.store.tuples(organization, filter, { after: null, countMax: GROUPS_MAX })
  return tuples.filter(({ object }) => object.startsWith(groupObject('')))
}

async function namesOf({ at, organization }: ScimCall, members: readonly Named[]) {
  const ids = (kind: 'User' | 'Group') => members.flatMap((member) => (member.kind === kind ? [member.id] : []))
  return {
    User: await at.provisioning.known({ organization, kind: 'User' }, ids('User')),
    Group: await at.provisioning.known({ organization, kind: 'Group' }, ids('Group')),
  }
}

function parseSubject(subject: string): readonly Named[] {
  if (subject.startsWith('user:')) return [{ kind: 'User', id: subject.slice('user:'.length) }]
  const [, id] = /^group:([^#]+)#member$/.exec(subject) ?? []
  return id === undefined ? [] : [{ kind: 'Group', id }]
}
