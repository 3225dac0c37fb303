/** Writes to the memory store: checks preconditions, applies all changes or none, and adds the write to the journal. */
import { isDeepStrictEqual } from 'node:util'
import type { Change, Precondition, WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ENVIRONMENT, type JournalId, type JournalPosition } from '../../../shared/domain/journal.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { RoleGrant } from '../../../shared/domain/role.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import { claimsOf, leaversIn, requireNothingWithheld } from '../changes.ts'
import type { AppliedWrite, SubjectRow } from '../contract.ts'
import { emptyJournal, type JournalWrite, type MemoryJournal, type MemoryState, START } from './journal.ts'

type Write = {
  readonly log: JournalId
  readonly changes: readonly Change[]
  readonly preconditions: readonly Precondition[]
  readonly keepsSuspension?: boolean
  readonly context: WriteContext
  readonly nowMs: number
  readonly writeId: () => string
}
/** A map, or an index with the same methods. */
type Entries<V> = { get(key: string): V | undefined; set(key: string, value: V): unknown; delete(key: string): unknown }
/** A function that reverses a change; null: the change altered nothing. */
type Undo = (() => void) | null
const NOTHING_TO_UNDO = (): void => undefined

/** How many changes of each journal are kept; when there are more, the older half is dropped. */
const CHANGES_KEPT_MAX = 10_000
/** The most levels of the organization tree, its root included. */
const ORGANIZATION_DEPTH_MAX = 25

/** Throws the PdpErrors of `Store.write`; the state is then as it was before the call. */
export function applyToMemory(state: MemoryState, write: Write): AppliedWrite {
  const { log, changes } = write
  const position = state.positions.get(log)
  const content = state.logs.get(log)
  if (position === undefined || content === undefined)
    throw new PdpError('organization_unknown', `there is no organization ${log}`)
  assertPreconditions(content, write)
  if (write.keepsSuspension === true) assertNoAccessRestored(content, write)
  const undo: (() => void)[] = []
  const effective: Change[] = []
  try {
    for (const change of changes) {
      const back = applyChange(state, content, { write, change })
      if (back === null) continue
      undo.push(back)
      effective.push(change)
    }
  } catch (err) {
    for (const back of undo.reverse()) back()
    throw err
  }
  if (effective.length === 0) return { position, changed: false, appliedCount: 0 }
  return { position: raise(state, write, effective), changed: true, appliedCount: effective.length }
}

function raise(
  state: MemoryState,
  write: Pick<Write, 'log' | 'context' | 'nowMs' | 'writeId'>,
  changes: readonly Change[],
): JournalPosition {
  const { log, context, nowMs } = write
  const before = state.positions.get(log) ?? START
  const writeId = write.writeId()
  const raisesEntitlements = changes.some(
    (c) => c.kind === 'entitlement' || c.kind === 'entitlements' || c.kind === 'clear',
  )
  const position: JournalPosition = {
    revision: before.revision + 1,
    writeId,
    entitlementVersion: before.entitlementVersion + (raisesEntitlements ? 1 : 0),
    entitlementWriteId: raisesEntitlements ? writeId : before.entitlementWriteId,
  }
  state.positions.set(log, position)
  const writes = state.writes.get(log) ?? []
  const last = writes.at(-1)
  const changesBefore = last === undefined ? 0 : last.changesBefore + last.changes.length
  writes.push({ revision: position.revision, writeId, changes, changesBefore, ...context, atMs: nowMs })
  state.writes.set(log, kept(writes, changesBefore + changes.length))
  return position
}

/** The writes to keep. `changesCount`: how many changes the journal has had since it began. */
function kept(writes: JournalWrite[], changesCount: number): JournalWrite[] {
  const [first] = writes
  if (first === undefined || changesCount - first.changesBefore <= CHANGES_KEPT_MAX) return writes
  return writes.filter((write) => changesCount - write.changesBefore <= CHANGES_KEPT_MAX / 2)
}

function assertPreconditions(content: MemoryJournal, { preconditions, nowMs }: Write): void {
  for (const { tuple, exists } of preconditions) {
    const row = content.tuples.find(tuple)
    const found = row !== undefined && (row.expiresAtMs === null || row.expiresAtMs > nowMs)
    if (found !== exists) {
      const name = `${tuple.object}#${tuple.relation}@${tuple.subject}`
      throw new PdpError('precondition_failed', `${name} ${exists ? 'does not exist' : 'exists'}`)
    }
  }
}

function assertNoAccessRestored({ memberships, tuples, grants }: MemoryJournal, { changes, nowMs }: Write): void {
  for (const user of leaversIn(changes)) {
    if ((memberships.get(user)?.status ?? 'active') === 'active') continue
    const subject = `user:${user}`
    let relationships = false
    for (const { expiresAtMs } of tuples.namedBy(subject, null))
      relationships ||= expiresAtMs === null || expiresAtMs > nowMs
    requireNothingWithheld(user, { relationships, roles: grants.to(subject).length > 0 })
  }
}

function applyChange(
  state: MemoryState,
  content: MemoryJournal,
  { write, change }: { write: Write; change: Change },
): Undo {
  switch (change.kind) {
    case 'tuple': {
      const { tuple } = change
      const before = content.tuples.find(tuple)
      if (change.op === 'delete' ? before === undefined : isSameRow(before, tuple)) return null
      if (change.op === 'delete') content.tuples.remove(tuple)
      else content.tuples.put(tuple)
      const { object, relation } = tuple
      return () =>
        before === undefined ? content.tuples.remove(tuple) : content.tuples.put({ object, relation, ...before })
    }
    case 'membership':
      return putIn(content.memberships, change.user, change.membership)
    case 'role_grant':
      return applyGrant(content, change)
    case 'entitlement':
      // A write of an equal value counts as a change: every write of an entitlement raises the organization's version.
      return putIn(content.entitlements, change.key, change.entitlement) ?? (change.entitlement && NOTHING_TO_UNDO)
    case 'entitlements':
      return NOTHING_TO_UNDO
    case 'organization':
      return change.organization === null
        ? deleteOrganization(state, write, change.id)
        : writeOrganization(state, content, change.organization)
    case 'manifest':
      return applyManifest(state, content, change)
    case 'role':
      return putIn(content.roles, change.key, change.role)
    default:
      throw new TypeError(`a ${change.kind} change cannot be applied here`)
  }
}

const isSameRow = (row: SubjectRow | undefined, { expiresAtMs, condition }: Tuple): boolean =>
  row?.expiresAtMs === expiresAtMs && isDeepStrictEqual(row.condition, condition)

function putIn<V>(map: Entries<V>, key: string, value: V | null): Undo {
  const before = map.get(key)
  if (isDeepStrictEqual(before ?? null, value)) return null
  if (value === null) map.delete(key)
  else map.set(key, value)
  return () => {
    if (before === undefined) map.delete(key)
    else map.set(key, before)
  }
}

function applyGrant({ grants }: MemoryJournal, { op, grant }: Extract<Change, { kind: 'role_grant' }>): Undo {
  const same = grants.get(grant.id)
  const alike = (g: RoleGrant): boolean => g.app === grant.app && g.role === grant.role && g.subject === grant.subject
  if (same !== undefined && !alike(same))
    throw new PdpError('conflict', `role grant ${grant.id} exists with another app, role or subject`)
  if (op === 'delete') return same === undefined ? null : putIn(grants, grant.id, null)
  return grants.to(grant.subject).some(alike) ? null : putIn(grants, grant.id, grant)
}

function writeOrganization(state: MemoryState, { organizations }: MemoryJournal, organization: Organization): Undo {
  const { id, parent } = organization
  const fresh = !organizations.has(id)
  if (fresh && state.positions.has(id))
    throw new PdpError('conflict', `organization ${id} was deleted; its id cannot be used again`)
  if (parent !== null) assertTree(organizations, id, parent)
  const undo = putIn(organizations, id, organization)
  if (!fresh) return undo
  state.positions.set(id, START)
  state.logs.set(id, emptyJournal())
  return () => {
    undo?.()
    state.positions.delete(id)
    state.logs.delete(id)
  }
}

function assertTree(organizations: ReadonlyMap<string, Organization>, id: string, parent: string): void {
  if (!organizations.has(parent))
    throw new PdpError('organization_unknown', `there is no organization ${parent} to be the parent`)
  let depth = 0
  for (let at: string | null = parent; at !== null; at = organizations.get(at)?.parent ?? null) {
    if (at === id) throw new PdpError('conflict', `${id} would become its own ancestor`)
    depth++
  }
  if (depth + height(organizations, id) > ORGANIZATION_DEPTH_MAX) {
    throw new PdpError('conflict', `the organization tree would be deeper than ${ORGANIZATION_DEPTH_MAX}`)
  }
}

function height(organizations: ReadonlyMap<string, Organization>, id: string): number {
  const children = [...organizations.values()].filter((o) => o.parent === id)
  return 1 + Math.max(0, ...children.map((child) => height(organizations, child.id)))
}

function deleteOrganization(state: MemoryState, write: Write, id: string): Undo {
  const environment = state.logs.get(ENVIRONMENT)
  const content = state.logs.get(id)
  const position = state.positions.get(id)
  const before = environment?.organizations.get(id)
  if (environment === undefined || content === undefined || position === undefined || before === undefined) return null
  if ([...environment.organizations.values()].some((o) => o.parent === id)) {
    throw new PdpError('conflict', `organization ${id} still has child organizations`)
  }
  environment.organizations.delete(id)
  state.logs.delete(id)
  raise(state, { ...write, log: id }, [{ kind: 'clear' }])
  return () => {
    environment.organizations.set(id, before)
    state.logs.set(id, content)
    state.positions.set(id, position)
    state.writes.get(id)?.pop()
  }
}

function applyManifest(
  state: MemoryState,
  { manifests }: MemoryJournal,
  { manifest }: Extract<Change, { kind: 'manifest' }>,
): Undo {
  const current = manifests.get(manifest.app)
  const version = current?.version ?? 0
  if (isDeepStrictEqual(current, { ...manifest, version })) return null
  const claims = claimsOf(manifest)
  for (const { kind, name } of claims) {
    const owner = state.claims.get(`${kind} ${name}`) ?? manifest.app
    if (owner !== manifest.app) throw new PdpError('conflict', `${kind} ${name} belongs to app ${owner}`)
  }
  const claimed = claims.map(({ kind, name }) => `${kind} ${name}`).filter((claim) => !state.claims.has(claim))
  for (const claim of claimed) state.claims.set(claim, manifest.app)
  const undo = putIn(manifests, manifest.app, { ...manifest, version: version + 1 })
  return () => {
    undo?.()
    for (const claim of claimed) state.claims.delete(claim)
  }
}
