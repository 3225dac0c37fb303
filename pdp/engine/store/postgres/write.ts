/** Applies changes to one journal inside a transaction that has locked the journal, and returns those that altered something. */
import type { Change, Precondition, WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import type { Manifest } from '../../../shared/domain/manifest.ts'
import type { RoleGrant } from '../../../shared/domain/role.ts'
import { claimsOf } from '../changes.ts'
import type { Queries } from '../directory.ts'
import { raiseRevision, storeEntries } from './journal.ts'
import { applyTuples, type TupleChange } from './tuples.ts'

/** The transaction, the journal and the author of a write. */
type WriteIn = { readonly sql: Queries; readonly log: JournalId; readonly context: WriteContext }

/** The most levels of the organization tree, its root included. */
export const ORGANIZATION_DEPTH_MAX = 25

/** Throws PdpError `precondition_failed`, which names the first precondition that does not hold. */
export async function assertPreconditions(
  sql: Queries,
  log: JournalId,
  preconditions: readonly Precondition[],
): Promise<void> {
  for (const { tuple, exists } of preconditions) {
    const found = await some(
      sql,
      `select 1 from stored_relationship where organization_id = $1 and object = $2 and relation = $3 and subject = $4
       and (expires_at is null or expires_at > clock_timestamp())`,
      [log, tuple.object, tuple.relation, tuple.subject],
    )
    if (found !== exists) {
      const name = `${tuple.object}#${tuple.relation}@${tuple.subject}`
      throw new PdpError('precondition_failed', `${name} ${exists ? 'does not exist' : 'exists'}`)
    }
  }
}

/** @returns the changes that altered something, in order. */
export async function applyChanges(scope: WriteIn, changes: readonly Change[]): Promise<readonly Change[]> {
  const tuples = changes.filter((c): c is TupleChange => c.kind === 'tuple')
  const effective = new Set<Change>(await applyTuples(scope.sql, scope.log, tuples))
  for (const change of changes) {
    if (change.kind !== 'tuple' && (await applyOther(scope, change))) effective.add(change)
  }
  return changes.filter((c) => effective.has(c))
}

function applyOther(scope: WriteIn, change: Change): Promise<boolean> {
  switch (change.kind) {
    case 'membership':
      return applyMembership(scope, change)
    case 'role_grant':
      return change.op === 'write' ? writeGrant(scope, change.grant) : deleteGrant(scope, change.grant)
    case 'entitlement':
      return applyEntitlement(scope, change)
    case 'entitlements':
      return Promise.resolve(true)
    case 'organization':
      return change.organization === null
        ? deleteOrganization(scope, change.id)
        : writeOrganization(scope, change.organization)
    case 'manifest':
      return writeManifest(scope, change.manifest)
    case 'role':
      return applyRole(scope, change)
    default:
      throw new TypeError(`a ${change.kind} change cannot be applied here`)
  }
}

/** Whether the statement returned a row. */
async function some(sql: Queries, text: string, values: readonly unknown[]): Promise<boolean> {
  return (await sql.query(text, values)).length > 0
}

async function applyMembership(
  { sql, log }: WriteIn,
  { user, membership }: Extract<Change, { kind: 'membership' }>,
): Promise<boolean> {
  if (membership === null) {
    return some(sql, 'delete from membership where organization_id = $1 and user_id = $2 returning 1', [log, user])
  }
  return some(
    sql,
    `insert into membership as t (organization_id, user_id, role, status) values ($1, $2, $3, $4)
       on conflict (organization_id, user_id) do update
         set role = excluded.role, status = excluded.status
       where (t.role, t.status) is distinct from (excluded.role, excluded.status) returning 1`,
    [log, user, membership.role, membership.status],
  )
}

async function writeGrant(scope: WriteIn, grant: RoleGrant): Promise<boolean> {
  if (await holdsGrant(scope, grant)) return false
  const { sql, log } = scope
  return some(
    sql,
    `insert into role_grant (organization_id, grant_id, app, role, subject) values ($1, $2, $3, $4, $5)
       on conflict (organization_id, subject, app, role) do nothing returning 1`,
    [log, grant.id, grant.app, grant.role, grant.subject],
  )
}

async function deleteGrant(scope: WriteIn, grant: RoleGrant): Promise<boolean> {
  if (!(await holdsGrant(scope, grant))) return false
  const { sql, log } = scope
  await sql.query('delete from role_grant where organization_id = $1 and grant_id = $2', [log, grant.id])
  return true
}

/** Whether the grant exists. Throws when its id has another content: caches rely on the subject that the entry names. */
async function holdsGrant({ sql, log }: WriteIn, grant: RoleGrant): Promise<boolean> {
  const [same] = await sql.query<{ app: string | null; role: string; subject: string }>(
    'select app, role, subject from role_grant where organization_id = $1 and grant_id = $2',
    [log, grant.id],
  )
  if (same === undefined) return false
  if (same.app === grant.app && same.role === grant.role && same.subject === grant.subject) return true
  throw new PdpError('conflict', `role grant ${grant.id} exists with another app, role or subject`)
}

async function applyEntitlement(
  { sql, log }: WriteIn,
  { key, entitlement }: Extract<Change, { kind: 'entitlement' }>,
): Promise<boolean> {
  if (entitlement === null) {
    return some(sql, 'delete from entitlement where organization_id = $1 and key = $2 returning 1', [log, key])
  }
  // A write of an equal value counts as a change: every write of an entitlement raises the organization's version.
  return some(
    sql,
    `insert into entitlement (organization_id, key, value, enforcement) values ($1, $2, $3::jsonb, $4)
       on conflict (organization_id, key) do update set value = excluded.value, enforcement = excluded.enforcement
       returning 1`,
    [log, key, JSON.stringify(entitlement.value), entitlement.enforcement],
  )
}

/** Writes an organization. The environment's lock is held, so the tree does not change while it is checked. */
async function writeOrganization(
  { sql }: WriteIn,
  organization: { id: string; name: string; parent: string | null },
): Promise<boolean> {
  const { id, name, parent } = organization
  if (parent !== null) await assertTree(sql, id, parent)
  const changed = await sql.query<{ created: boolean }>(
    `with former as (select 1 from organization where organization_id = $1)
     insert into organization as t (organization_id, name, parent_id) values ($1, $2, $3)
     on conflict (organization_id) do update set name = excluded.name, parent_id = excluded.parent_id
     where (t.name, t.parent_id) is distinct from (excluded.name, excluded.parent_id)
     returning not exists (select from former) as created`,
    [id, name, parent],
  )
  const [row] = changed
  if (row?.created === true) {
    const fresh = await some(
      sql,
      'insert into revision (organization_id, revision, write_id) values ($1, 0, 0) on conflict do nothing returning 1',
      [id],
    )
    if (!fresh) throw new PdpError('conflict', `organization ${id} was deleted; its id cannot be used again`)
  }
  return row !== undefined
}

async function assertTree(sql: Queries, id: string, parent: string): Promise<void> {
  const above = await sql.query<{ id: string; depth: number }>(
    `with recursive up(id, parent, depth) as (
       select organization_id, parent_id, 1 from organization where organization_id = $1
       union all select o.organization_id, o.parent_id, up.depth + 1 from organization o, up
         where o.organization_id = up.parent and up.depth <= ${ORGANIZATION_DEPTH_MAX})
     select id, depth from up`,
    [parent],
  )
  if (above.length === 0)
    throw new PdpError('organization_unknown', `there is no organization ${parent} to be the parent`)
  if (id === parent || above.some((row) => row.id === id))
    throw new PdpError('conflict', `${id} would become its own ancestor`)
  const [below] = await sql.query<{ depth: number }>(
    `with recursive down(id, depth) as (
       select $1::text collate "C", 1
       union all select o.organization_id, down.depth + 1 from organization o, down
         where o.parent_id = down.id and down.depth <= ${ORGANIZATION_DEPTH_MAX})
     select max(depth) as depth from down`,
    [id],
  )
  if (above.length + (below?.depth ?? 1) > ORGANIZATION_DEPTH_MAX) {
    throw new PdpError('conflict', `the organization tree would be deeper than ${ORGANIZATION_DEPTH_MAX}`)
  }
}

async function deleteOrganization({ sql, context }: WriteIn, id: string): Promise<boolean> {
  if (!(await some(sql, 'select 1 from organization where organization_id = $1', [id]))) return false
  const { after: position } = await raiseRevision(sql, id, { entitlements: true })
  const holders: readonly [string, string][] = [
    ['organization', 'parent_id'],
    ['client', 'organization_id'],
  ]
  for (const [table, column] of holders) {
    if (await some(sql, `select 1 from ${table} where ${column} = $1 limit 1`, [id])) {
      throw new PdpError(
        'conflict',
        `organization ${id} still has ${table === 'client' ? 'clients' : 'child organizations'}`,
      )
    }
  }
  // A user whom a directory has blocked cannot be let in by anybody else. '\x7f' comes right after '~'; an organization's id may have one.
  await sql.query(
    `update user_account set signed_out_at = clock_timestamp() where user_id >= $1 || '~' and user_id < $1 || E'\\x7f'
     and strpos(substr(user_id, length($1) + 2), '~') = 0 and signed_out_at = 'infinity'`,
    [id],
  )
  for (const table of [
    'relationship',
    'conditional_relationship',
    'membership',
    'role_grant',
    'provisioned',
    'entitlement',
    'organization',
  ]) {
    await sql.query(`delete from ${table} where organization_id = $1`, [id])
  }
  await storeEntries(sql, { log: id, position, changes: [{ kind: 'clear' }], context })
  await sql.query('update revision set closed = true where organization_id = $1', [id])
  return true
}

async function writeManifest({ sql, log }: WriteIn, manifest: Manifest): Promise<boolean> {
  if (log !== ENVIRONMENT) throw new TypeError('manifests are the environment’s')
  const document = JSON.stringify(manifest)
  const [current] = await sql.query<{ version: number; same: boolean }>(
    'select version, document = $2::jsonb as same from manifest where app = $1 and current',
    [manifest.app, document],
  )
  if (current?.same === true) return false
  await sql.query('update manifest set current = false where app = $1 and current', [manifest.app])
  await sql.query('insert into manifest (app, version, document, current) values ($1, $2, $3::jsonb, true)', [
    manifest.app,
    (current?.version ?? 0) + 1,
    document,
  ])
  for (const claim of claimsOf(manifest)) await claimName(sql, { ...claim, app: manifest.app })
  return true
}

/** Reserves an audience or a type for the app that declares it first. */
async function claimName(sql: Queries, claim: { kind: 'audience' | 'type'; name: string; app: string }): Promise<void> {
  await sql.query('insert into manifest_claim (kind, name, app) values ($1, $2, $3) on conflict do nothing', [
    claim.kind,
    claim.name,
    claim.app,
  ])
  const [owner] = await sql.query<{ app: string }>('select app from manifest_claim where kind = $1 and name = $2', [
    claim.kind,
    claim.name,
  ])
  if (owner?.app !== claim.app)
    throw new PdpError('conflict', `${claim.kind} ${claim.name} belongs to app ${owner?.app ?? '?'}`)
}

async function applyRole({ sql }: WriteIn, { key, role }: Extract<Change, { kind: 'role' }>): Promise<boolean> {
  if (role === null) return some(sql, 'delete from organization_role where key = $1 returning 1', [key])
  return some(
    sql,
    `insert into organization_role as t (key, name, permissions) values ($1, $2, $3)
       on conflict (key) do update set name = excluded.name, permissions = excluded.permissions
       where (t.name, t.permissions) is distinct from (excluded.name, excluded.permissions) returning 1`,
    [key, role.name, role.permissions],
  )
}
