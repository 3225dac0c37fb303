/** The statement that reads row sets and standings in one snapshot: one index probe per asked item, whatever the sizes. */
import {
  DEATH_KEPT_MS,
  type Death,
  type DeathCause,
  deathKey,
  ENVIRONMENT,
  type LogId,
  type Membership,
  type MembershipStatus,
  type Organization,
  type OrganizationRole,
  type Reading,
  type RoleGrant,
  type RowKey,
  type RowSet,
  SET_ROWS_MAX,
  type Standing,
  type StoredManifest,
  type SubjectRow,
  type Tier,
  TOKENS,
  type Vector,
} from './contracts.ts'
import { rowKeyName } from './row-keys.ts'

/** Usersets of one wide set that are read at most; the evaluator's own bound is reached long before. */
const WIDE_USERSETS_MAX = 10_001
const MILLISECONDS = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

// Every join is lateral with `offset 0`, which keeps the planner from hashing or scanning whole tables.
export const VECTOR = `
  select q.o, r.revision, r.write_id::text, r.entitlement_version, r.entitlement_write_id::text, ${MILLISECONDS('statement_timestamp()')}, current_setting('in_hot_standby')
  from unnest(string_to_array($1, ' ')) q(o),
    lateral (select revision, write_id, entitlement_version, entitlement_write_id from revision where organization_id = q.o offset 0) r`

const CLOSURE = (start: string): string => `
  closure(o, subject, object, expires) as (
    select q.o collate "C", q.subject collate "C", r.object, r.expires_at from ${start} q(o, subject), lateral (
      select object, expires_at from relationship where organization_id = q.o and subject = q.subject
      and relation = 'member' and object >= 'group:' and object < 'group;' offset 0) r
    union select c.o, c.object || '#member', r.object, r.expires_at from closure c, lateral (
      select object, expires_at from relationship where organization_id = c.o and subject = c.object || '#member'
      and relation = 'member' and object >= 'group:' and object < 'group;' offset 0) r)`

const USERSET = `(strpos(subject, '#') > 0 or right(subject, 2) = ':*')`

/** Columns: branch, log, then four texts and an expiry (milliseconds) whose meaning the branch gives. */
const BRANCHES = {
  set: {
    values: ['text[]', 'text[]', 'text[]'],
    with: ([o, object, relation]: string[]) => `
      asked(o, object, relation) as (select * from unnest(${o}, ${object}, ${relation})),
      narrow(o, object, relation, subject, expires_at) as materialized (select q.o, q.object, q.relation, r.subject, r.expires_at from asked q, lateral (
        select subject, expires_at from relationship where organization_id = q.o and object = q.object and relation = q.relation
        order by subject limit ${SET_ROWS_MAX + 1} offset 0) r),
      wide(o, object, relation) as (select o, object, relation from narrow group by o, object, relation having count(*) > ${SET_ROWS_MAX})`,
    select: () => `
      select 'set', o, object, relation, subject, null, ${MILLISECONDS('expires_at')} from narrow
      union all select 'wide', q.o, q.object, q.relation, r.subject, null, ${MILLISECONDS('r.expires_at')} from wide q, lateral (
        select subject, expires_at from relationship where organization_id = q.o and object = q.object and relation = q.relation
        and ${USERSET} limit ${WIDE_USERSETS_MAX} offset 0) r
      union all select 'wide', o, object, relation, null, null, null from wide`,
  },
  tuple: {
    values: ['text[]', 'text[]', 'text[]', 'text[]'],
    with: () => '',
    select: ([o, object, relation, subject]: string[]) => `
      select 'tuple', q.o, q.object, q.relation, r.subject, null, ${MILLISECONDS('r.expires_at')}
      from unnest(${o}, ${object}, ${relation}, ${subject}) q(o, object, relation, subject), lateral (
        select subject, expires_at from relationship where organization_id = q.o and object = q.object and relation = q.relation
        and subject = q.subject offset 0) r`,
  },
  groups: {
    values: ['text[]', 'text[]'],
    with: ([o, subject]: string[]) => CLOSURE(`unnest(${o}, ${subject})`),
    select: () => `select 'groups', o, subject, object, null, null, ${MILLISECONDS('expires')} from closure`,
  },
  grants: {
    values: ['text[]', 'text[]'],
    with: () => '',
    // Grants to the groups above come from the same snapshot; `groups` is always asked along with `grants`.
    select: ([o, subject]: string[]) => `
      select 'grants', q.o, q.subject, r.grant_id, r.app, r.role, null from unnest(${o}, ${subject}) q(o, subject), lateral (
        select grant_id, app, role from role_grant where organization_id = q.o and subject = q.subject offset 0) r
      union all select 'grants', g.o, g.object, r.grant_id, r.app, r.role, null from (select distinct o, object from closure) g, lateral (
        select grant_id, app, role from role_grant where organization_id = g.o and subject = g.object offset 0) r`,
  },
  membership: {
    values: ['text[]', 'text[]'],
    with: () => '',
    select: ([o, user]: string[]) => `
      select 'membership', q.o, q.u, r.role, r.status, null, null from unnest(${o}, ${user}) q(o, u), lateral (
        select role, status from membership where organization_id = q.o and user_id = q.u offset 0) r`,
  },
  organization: {
    values: ['text[]'],
    with: ([id]: string[]) => `
      lineage(id, name, parent) as (
        select r.* from unnest(${id}) q(id), lateral (select organization_id, name, parent_id from organization where organization_id = q.id offset 0) r
        union select r.* from lineage l, lateral (select organization_id, name, parent_id from organization where organization_id = l.parent offset 0) r)`,
    select: () => `select 'organization', '${ENVIRONMENT}', id, name, parent, null, null from lineage`,
  },
  manifests: {
    values: [],
    with: () => '',
    select: () =>
      `select 'manifests', '${ENVIRONMENT}', app, version::text, document::text, null, null from manifest where current`,
  },
  roles: {
    values: [],
    with: () => '',
    select: () =>
      `select 'roles', '${ENVIRONMENT}', key, name, array_to_json(permissions)::text, null, null from organization_role`,
  },
  deaths: {
    values: [],
    with: () => '',
    select: () => `
      select 'deaths', '${TOKENS}', change ->> 'by', change ->> 'id', null, null, ${MILLISECONDS('written_at')} from change_log
      where organization_id = '${TOKENS}' and written_at > statement_timestamp() - interval '${DEATH_KEPT_MS} milliseconds'
      and change ->> 'kind' = 'token'`,
  },
} as const
type Kind = keyof typeof BRANCHES
const KINDS = Object.keys(BRANCHES) as readonly Kind[]

type Statement = { readonly name: string; readonly text: string; readonly values: readonly unknown[] }

/** Only the branches that are asked for: each adds to the time it takes to start the statement. */
export function rowsStatement(logs: readonly LogId[], keys: readonly RowKey[]): Statement {
  const asked = new Map<Kind, RowKey[]>()
  for (const key of keys) append(asked, key.kind, key)
  // The grants of a subject need the groups above it.
  for (const key of asked.get('grants') ?? []) {
    if (key.kind === 'grants') append(asked, 'groups', { log: key.log, kind: 'groups', subject: key.subject })
  }
  const values: unknown[] = [logs.join(' ')]
  const withs: string[] = []
  const selects: string[] = [
    `select 'vector', o, revision::text, write_id, entitlement_version::text || ' ' || entitlement_write_id, hot, clock
     from (${VECTOR}) v(o, revision, write_id, entitlement_version, entitlement_write_id, clock, hot)`,
  ]
  for (const kind of KINDS) {
    const ofKind = asked.get(kind)
    if (ofKind === undefined) continue
    const branch = BRANCHES[kind]
    const columns = columnsOf(kind, ofKind)
    const names = branch.values.map((type, i) => `$${values.push(columns[i])}::${type}`)
    const clause = branch.with(names)
    if (clause !== '') withs.push(clause)
    selects.push(branch.select(names))
  }
  const text = `${withs.length > 0 ? `with recursive ${withs.join(', ')}` : ''} ${selects.join(' union all ')}`
  // PostgreSQL keeps 63 bytes of a name.
  const kinds = KINDS.filter((kind) => asked.has(kind)).map((kind) => kind.slice(0, 3))
  return { name: `rows ${kinds.join(' ')}`, text, values }
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

function columnsOf(kind: Kind, keys: readonly RowKey[]): readonly (readonly string[])[] {
  const fields: Record<Kind, readonly string[]> = {
    set: ['log', 'object', 'relation'],
    tuple: ['log', 'object', 'relation', 'subject'],
    groups: ['log', 'subject'],
    grants: ['log', 'subject'],
    membership: ['log', 'user'],
    organization: ['id'],
    manifests: [],
    roles: [],
    deaths: [],
  }
  return fields[kind].map((field) => keys.map((key) => (key as unknown as Record<string, string>)[field] ?? ''))
}

type Cell = string | number | null
/** branch, log, a, b, c, d, milliseconds */
type Row = readonly [string, string, string, string, string, string, number | null]

/** Turns the statement's answer into row sets: one for each key asked, empty when nothing was found, and what came along. */
export function parseRows(
  keys: readonly RowKey[],
  answer: readonly (readonly unknown[])[],
): Reading & { standby: boolean } {
  const vector = new Map<LogId, Standing>()
  let clockMs = 0
  let standby = false
  const found = new RowCollector()
  for (const key of keys) found.expect(key)
  for (const cells of answer as readonly (readonly Cell[])[]) {
    const row = cells as unknown as Row
    if (row[0] === 'vector') {
      const [entitlementVersion, entitlementWriteId = ''] = row[4].split(' ')
      vector.set(row[1], {
        revision: Number(row[2]),
        writeId: row[3],
        entitlementVersion: Number(entitlementVersion),
        entitlementWriteId,
      })
      clockMs = row[6] ?? 0
      standby = row[5] === 'on'
    } else found.add(row)
  }
  return { vector: { clockMs, logs: vector }, rows: found.rowSets(), standby }
}

type VectorRow = readonly [string, number, string, number, string, number, string]

export function parseVector(answer: readonly (readonly unknown[])[]): Vector & { standby: boolean } {
  const logs = new Map<LogId, Standing>()
  let clockMs = 0
  let standby = false
  for (const cells of answer) {
    const [log, revision, writeId, entitlementVersion, entitlementWriteId, clock, hot] = cells as VectorRow
    logs.set(log, { revision, writeId, entitlementVersion, entitlementWriteId })
    clockMs = clock
    standby = hot === 'on'
  }
  return { clockMs, logs, standby }
}

/** Gathers rows under their keys. */
class RowCollector {
  readonly #sets = new Map<string, Gathered>()

  expect(key: RowKey): void {
    this.#at(key)
    if (key.kind === 'grants') this.#at({ log: key.log, kind: 'groups', subject: key.subject })
  }

  #at(key: RowKey): Gathered {
    const name = rowKeyName(key)
    let set = this.#sets.get(name)
    if (set === undefined) {
      set = { key, rows: [], complete: true }
      this.#sets.set(name, set)
    }
    return set
  }

  add([branch, log, a, b, c, d, expiresAtMs]: Row): void {
    switch (branch) {
      case 'set': {
        const set = this.#at({ log, kind: 'set', object: a, relation: b })
        if (set.complete) set.rows.push({ subject: c, expiresAtMs })
        break
      }
      case 'wide': {
        // The set's own rows were cut off: they are dropped, whichever came first.
        const set = this.#at({ log, kind: 'set', object: a, relation: b })
        if (set.complete) {
          set.complete = false
          set.rows = []
        }
        if (c !== null) set.rows.push({ subject: c, expiresAtMs })
        break
      }
      case 'tuple':
        this.#at({ log, kind: 'tuple', object: a, relation: b, subject: c }).rows.push({ subject: c, expiresAtMs })
        break
      case 'groups':
        this.#at({ log, kind: 'groups', subject: a }).rows.push({ subject: `${b}#member`, expiresAtMs })
        this.#at({ log, kind: 'groups', subject: `${b}#member` }) // every reached group was expanded: empty means none
        break
      case 'grants': {
        // A group's grants come twice when they were asked for, and came along with those of one of its members.
        const grants = this.#at({ log, kind: 'grants', subject: a }).rows as RoleGrant[]
        if (!grants.some((grant) => grant.id === b)) grants.push({ id: b, app: c, role: d, subject: a })
        break
      }
      case 'membership':
        this.#at({ log, kind: 'membership', user: a }).rows.push({ role: b as Tier, status: c as MembershipStatus })
        break
      case 'organization':
        this.#at({ log, kind: 'organization', id: a }).rows.push({ id: a, name: b, parent: c })
        break
      case 'manifests':
        this.#at({ log, kind: 'manifests' }).rows.push({ ...JSON.parse(c), version: Number(b) })
        break
      case 'deaths':
        this.#at({ log, kind: 'deaths' }).rows.push({ key: deathKey(a as DeathCause, b), atMs: expiresAtMs })
        break
      case 'roles':
        this.#at({ log, kind: 'roles' }).rows.push({ key: a, name: b, permissions: JSON.parse(c) })
        break
      default:
        throw new TypeError(`unknown branch ${branch}`)
    }
  }

  rowSets(): readonly RowSet[] {
    this.#completeGrants()
    return [...this.#sets.values()].map(rowSetOf)
  }

  /** Where grants were asked, those of every group above the subject were read too: none found means none. */
  #completeGrants(): void {
    const sets = [...this.#sets.values()]
    for (const { key } of sets) {
      if (key.kind !== 'grants') continue
      const todo = [key.subject]
      const seen = new Set(todo)
      for (let subject = todo.pop(); subject !== undefined; subject = todo.pop()) {
        const above = this.#sets.get(rowKeyName({ log: key.log, kind: 'groups', subject }))?.rows as
          | SubjectRow[]
          | undefined
        for (const { subject: userset } of above ?? []) {
          if (seen.has(userset)) continue
          seen.add(userset)
          todo.push(userset)
          this.#at({ log: key.log, kind: 'grants', subject: userset.slice(0, userset.indexOf('#')) })
        }
      }
    }
  }
}

type Gathered = { readonly key: RowKey; rows: unknown[]; complete: boolean }

function rowSetOf({ key, rows, complete }: Gathered): RowSet {
  switch (key.kind) {
    case 'set':
      return { key, subjects: rows as SubjectRow[], complete }
    case 'tuple':
      return { key, row: (rows[0] as SubjectRow | undefined) ?? null }
    case 'groups':
      return { key, groups: rows as SubjectRow[] }
    case 'membership':
      return { key, membership: (rows[0] as Membership | undefined) ?? null }
    case 'grants':
      return { key, grants: rows as RoleGrant[] }
    case 'organization':
      return { key, organization: (rows[0] as Organization | undefined) ?? null }
    case 'manifests':
      return { key, manifests: rows as StoredManifest[] }
    case 'roles':
      return { key, roles: rows as OrganizationRole[] }
    case 'deaths':
      return { key, deaths: rows as Death[] }
  }
}
