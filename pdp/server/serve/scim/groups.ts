/** Groups of an organization that a directory creates; roles and relationships may name them. */
import { randomBytes } from 'node:crypto'
import type { Provisioned } from '../../../engine/store/directory.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { requireConditions } from '../http/conditions.ts'
import { GROUP, GROUP_SCHEMA } from './attributes.ts'
import { readDocument } from './document.ts'
import { groupObject, type Member, membersOf, presentMember, write, writeMembers } from './group-members.ts'
import { type Listed, read, stored } from './listing.ts'
import { patched } from './patch.ts'
import { metaOf, placeOf, written } from './resource.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

const ID_BYTES = 16
const GRANTS_MAX = 1_000

export const GROUPS: Listed = { type: GROUP, present, related: 'members' }

/** A random id, so that no role can have been granted to the group before. */
export async function createGroup(call: ScimCall): Promise<ScimOutcome> {
  const { members, ...document } = readDocument(call.body, GROUP)
  const id = `dir-${randomBytes(ID_BYTES).toString('base64url')}`
  await call.at.provisioning.put(placeOf(call, GROUP), { id, ...keptOf(document) })
  await writeMembers(call, id, { before: [], wanted: objectsIn(members) })
  return written('created', await read({ ...call, id }, GROUPS, true))
}

export async function replaceGroup(call: ScimCall): Promise<ScimOutcome> {
  const { before } = await readForWrite(call)
  return update(call, before, readDocument(call.body, GROUP))
}

export async function patchGroup(call: ScimCall): Promise<ScimOutcome> {
  const { before, resource } = await readForWrite(call)
  return update(call, before, readDocument(patched(resource, call.body, GROUP), GROUP))
}

/** Deletes the group with its members and granted roles. */
export async function deleteGroup(call: ScimCall): Promise<ScimOutcome> {
  const { at, organization, id, context } = call
  const { before } = await readForWrite(call)
  await writeMembers(call, id, { before, wanted: [] })
  const asMember = await at.store.tuples(
    organization,
    { relation: 'member', subject: `${groupObject(id)}#member` },
    { after: null, countMax: GRANTS_MAX },
  )
  await write(call, { write: [], delete: asMember })
  const grants = await at.store.roleGrants(
    { log: organization, subject: groupObject(id) },
    { after: null, countMax: GRANTS_MAX },
  )
  const changes = grants.map(({ log, ...grant }) => ({ kind: 'role_grant', op: 'delete', grant }) as const)
  if (changes.length > 0) await at.store.write(organization, changes, { context })
  await at.provisioning.remove(placeOf(call, GROUP), id)
  return { status: 'empty' }
}

async function update(call: ScimCall, before: readonly Member[], after: JsonObject): Promise<ScimOutcome> {
  const { members, ...document } = after
  const isChanged = await writeMembers(call, call.id, { before, wanted: objectsIn(members) })
  await call.at.provisioning.put(placeOf(call, GROUP), { id: call.id, ...keptOf(document) }, isChanged)
  return written('ok', await read(call, GROUPS, true))
}

async function readForWrite(call: ScimCall) {
  const group = await stored(call, GROUPS)
  const before = await membersOf(call, call.id)
  const resource = presentGroup(call, group, before)
  requireConditions(call.headers, String(Object(resource.meta).version))
  return { before, resource }
}

async function present(
  call: ScimCall,
  groups: readonly Provisioned[],
  related: boolean,
): Promise<readonly JsonObject[]> {
  const members = related ? await Promise.all(groups.map(({ id }) => membersOf(call, id))) : []
  return groups.map((group, i) => presentGroup(call, group, members[i] ?? []))
}

function presentGroup(call: ScimCall, group: Provisioned, members: readonly Member[]): JsonObject {
  return {
    schemas: [GROUP_SCHEMA],
    id: group.id,
    ...group.document,
    ...(members.length === 0 ? {} : { members: members.map((member) => presentMember(call, member)) }),
    // Every change of members through SCIM raises the version.
    meta: metaOf(call, GROUP, group),
  }
}

function keptOf(document: JsonObject) {
  const { schemas, id, meta, members, ...kept } = document
  const { displayName, externalId } = kept
  return {
    name: String(displayName),
    externalId: typeof externalId === 'string' ? externalId : null,
    document: kept,
  }
}

const objectsIn = (members: JsonValue | undefined): readonly JsonObject[] =>
  Array.isArray(members) ? members.filter(isJsonObject) : []
