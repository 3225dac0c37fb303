/** The statement that reads row sets and positions in one snapshot, with one index probe for each key, however large tables are. */
import { ENVIRONMENT, type JournalId, TOKENS } from '../../../shared/domain/journal.ts'
import { ISSUER_REVOCATION_KEPT_MS, REVOCATION_KEPT_MS } from '../../../shared/domain/revocation.ts'
import { CHAIN_SETS_MAX, NAMED_BY_MAX, type Reading, type RowKey, SET_ROWS_MAX } from '../contract.ts'
import type { Connection } from './connection/database.ts'
import { type Row, rowSetsOf } from './row-sets.ts'
import { given, type KnownPositions, VECTOR_LINES, type VectorQuestion } from './vector.ts'

const MILLISECONDS = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

// Every join is lateral with `offset 0`, which keeps the planner from hashing or scanning whole tables.
const CLOSURE = (start: string): string => `
  closure(o, subject, object, expires) as (
    select q.o collate "C", q.subject collate "C", r.object, r.expires_at from ${start} q(o, subject), lateral (
      select object, expires_at from relationship where organization_id = q.o and subject = q.subject
      and relation = 'member' and object >= 'group:' and object < 'group;' offset 0) r
    union select c.o, c.object || '#member', r.object, r.expires_at from closure c, lateral (
      select object, expires_at from relationship where organization_id = c.o and subject = c.object || '#member'
      and relation = 'member' and object >= 'group:' and object < 'group;' offset 0) r)`

/** Name and context of a tuple's condition, as JSON. */
const CONDITION = 'case when condition is not null then json_build_array(condition, context)::text end'

const USERSET = `(strpos(subject, '#') > 0 or right(subject, 2) = ':*')`

/** The subjects of each set that `asked` selects; of a set with more than SET_ROWS_MAX, only the usersets. */
const SETS_WITH = (asked: string): string => `
  asked(o, object, relation) as (${asked}),
  narrow(o, object, relation, subject, condition, expires_at) as materialized (select q.o, q.object, q.relation, r.* from asked q, lateral (
    select subject, ${CONDITION}, expires_at from stored_relationship where organization_id = q.o and object = q.object and relation = q.relation
    order by subject limit ${SET_ROWS_MAX + 1} offset 0) r),
  wide(o, object, relation) as (select o, object, relation from narrow group by o, object, relation having count(*) > ${SET_ROWS_MAX})`

const SETS_SELECT = `
  select 'set', o, object, relation, subject, condition, ${MILLISECONDS('expires_at')} from narrow
  union all select 'wide', q.o, q.object, q.relation, r.subject, r.condition, ${MILLISECONDS('r.expires_at')} from wide q, lateral (
    select subject, ${CONDITION} as condition, expires_at from stored_relationship where organization_id = q.o and object = q.object and relation = q.relation
    and ${USERSET} limit ${SET_ROWS_MAX + 1} offset 0) r
  union all select 'wide', o, object, relation, null, null, null from wide`

/** One branch of the statement for each kind of key, with the key’s fields as its parameters. Its columns: `Row` in row-sets.ts. */
const BRANCHES = {
  set: {
    fields: ['log', 'object', 'relation'],
    with: ([o, object, relation]: string[]) => SETS_WITH(`select * from unnest(${o}, ${object}, ${relation})`),
    select: () => SETS_SELECT,
  },
  // The limit also ends the recursion, because PostgreSQL makes its rows only as they are read.
  chain: {
    fields: ['log', 'object', 'relation'],
    with: ([o, object, relation]: string[]) => `
      chain(o, object, relation) as (
        select q.o collate "C", q.object collate "C", q.relation collate "C" from unnest(${o}, ${object}, ${relation}) q(o, object, relation)
        union select c.o, split_part(r.subject, '#', 1), c.relation from chain c, lateral (
          select subject from stored_relationship where organization_id = c.o and object = c.object and relation = c.relation
          order by subject limit ${SET_ROWS_MAX + 1} offset 0) r
        where split_part(r.subject, ':', 1) = split_part(c.object, ':', 1)
        and split_part(r.subject, '#', 2) in ('', c.relation) and right(r.subject, 2) <> ':*'),
      ${SETS_WITH(`select * from chain limit cardinality(${o}) + ${CHAIN_SETS_MAX}`)}`,
    select: () => `${SETS_SELECT} union all select 'whole', o, object, relation, null, null, null from asked`,
  },
  tuple: {
    fields: ['log', 'object', 'relation', 'subject'],
    with: () => '',
    select: ([o, object, relation, subject]: string[]) => `
      select 'tuple', q.o, q.object, q.relation, r.subject, r.condition, ${MILLISECONDS('r.expires_at')}
      from unnest(${o}, ${object}, ${relation}, ${subject}) q(o, object, relation, subject), lateral (
        select subject, ${CONDITION} as condition, expires_at from stored_relationship
        where organization_id = q.o and object = q.object and relation = q.relation and subject = q.subject offset 0) r`,
  },
  named: {
    fields: ['log', 'name', 'type', 'relation'],
    with: () => '',
    // Type and relation are '' when all are asked for; no type or relation has an empty name.
    select: ([o, name, type, relation]: string[]) => `
      select 'named', q.o, q.name, q.type, q.relation, r.set, ${MILLISECONDS('r.expires_at')}
      from unnest(${o}, ${name}, ${type}, ${relation}) q(o, name, type, relation), lateral (
        (select object || '#' || relation as set, expires_at from stored_relationship
        where q.type <> '' and organization_id = q.o and subject = q.name and relation = q.relation
        and object >= q.type || ':' and object < q.type || ';' limit ${NAMED_BY_MAX + 1})
        union all (select object || '#' || relation, expires_at from stored_relationship
        where q.type = '' and organization_id = q.o and subject = q.name limit ${NAMED_BY_MAX + 1}) offset 0) r`,
  },
  groups: {
    fields: ['log', 'subject'],
    with: ([o, subject]: string[]) => CLOSURE(`unnest(${o}, ${subject})`),
    select: () => `select 'groups', o, subject, object, null, null, ${MILLISECONDS('expires')} from closure`,
  },
  grants: {
    fields: ['log', 'subject'],
    with: () => '',
    // Grants to the groups above come from the same snapshot; `groups` is always asked along with `grants`.
    select: ([o, subject]: string[]) => `
      select 'grants', q.o, q.subject, r.grant_id, r.app, r.role, null from unnest(${o}, ${subject}) q(o, subject), lateral (
        select grant_id, app, role from role_grant where organization_id = q.o and subject = q.subject offset 0) r
      union all select 'grants', g.o, g.object, r.grant_id, r.app, r.role, null from (select distinct o, object from closure) g, lateral (
        select grant_id, app, role from role_grant where organization_id = g.o and subject = g.object offset 0) r`,
  },
  membership: {
    fields: ['log', 'user'],
    with: () => '',
    select: ([o, user]: string[]) => `
      select 'membership', q.o, q.u, r.role, r.status, null, null from unnest(${o}, ${user}) q(o, u), lateral (
        select role, status from membership where organization_id = q.o and user_id = q.u offset 0) r`,
  },
  organization: {
    fields: ['id'],
    with: ([id]: string[]) => `
      lineage(id, name, parent) as (
        select r.* from unnest(${id}) q(id), lateral (select organization_id, name, parent_id from organization where organization_id = q.id offset 0) r
        union select r.* from lineage l, lateral (select organization_id, name, parent_id from organization where organization_id = l.parent offset 0) r)`,
    select: () => `select 'organization', '${ENVIRONMENT}', id, name, parent, null, null from lineage`,
  },
  manifests: {
    fields: [],
    with: () => '',
    select: () =>
      `select 'manifests', '${ENVIRONMENT}', app, version::text, document::text, null, null from manifest where current`,
  },
  roles: {
    fields: [],
    with: () => '',
    select: () =>
      `select 'roles', '${ENVIRONMENT}', key, name, array_to_json(permissions)::text, null, null from organization_role`,
  },
  revocations: {
    fields: [],
    with: () => '',
    // Tokens of other issuers may live longer than ours, so their revocations are kept longer, with an index of their own.
    select: () => `
      select 'revocations', '${TOKENS}', change ->> 'by', change ->> 'id', change ->> 'issuedUntilMs', null, ${MILLISECONDS('written_at')} from change_log
      where organization_id = '${TOKENS}' and written_at > statement_timestamp() - interval '${REVOCATION_KEPT_MS} milliseconds'
      and change ->> 'kind' = 'token'
      union all select 'revocations', '${TOKENS}', change ->> 'by', change ->> 'id', change ->> 'issuedUntilMs', null, ${MILLISECONDS('written_at')} from change_log
      where organization_id = '${TOKENS}' and written_at > statement_timestamp() - interval '${ISSUER_REVOCATION_KEPT_MS} milliseconds'
      and change ->> 'kind' = 'token' and starts_with(change ->> 'by', 'foreign_')`,
  },
} as const
type Kind = keyof typeof BRANCHES
const KINDS = Object.keys(BRANCHES) as readonly Kind[]

/** Throws PdpError `store_unavailable`. */
export async function readRows(
  connection: Pick<Connection, 'prepared'>,
  positions: KnownPositions,
  { logs, keys }: { readonly logs: readonly JournalId[]; readonly keys: readonly RowKey[] },
): Promise<Reading> {
  const question = positions.ask(logs)
  const { name, text, values } = rowsStatement(question.values, keys)
  return connection.prepared(name, text, values, (rows, told) => {
    const lines: string[] = []
    const others: Row[] = []
    for (const row of rows as readonly Row[]) {
      if (row[0] === 'vector') lines.push(row[1])
      else others.push(row)
    }
    return { vector: question.read(lines, told), rows: rowSetsOf(keys, others) }
  })
}

/** `vector`: the parameters of `VECTOR_LINES`. Has only the branches that the keys need, since each makes it slower to start. */
export function rowsStatement(
  vector: VectorQuestion['values'],
  keys: readonly RowKey[],
): { readonly name: string; readonly text: string; readonly values: readonly unknown[] } {
  const asked = new Map<Kind, RowKey[]>()
  const setKind = keys.some((key) => key.kind === 'set' && key.chain === true) ? 'chain' : 'set'
  for (const key of keys) append(asked, key.kind === 'set' ? setKind : key.kind, key)
  // The grants of a subject need the groups above it.
  for (const key of asked.get('grants') ?? []) {
    if (key.kind === 'grants') append(asked, 'groups', { log: key.log, kind: 'groups', subject: key.subject })
  }
  const values: unknown[] = [...vector]
  const withs: string[] = []
  const selects: string[] = [
    `select 'vector', line, null, null, null, null, null::float8 from (${VECTOR_LINES}) v(line)`,
  ]
  for (const kind of KINDS) {
    const ofKind = asked.get(kind)
    if (ofKind === undefined) continue
    const branch = BRANCHES[kind]
    const names = branch.fields.map((field) => given(values.push(columnOf(field, ofKind)), 'text[]'))
    const clause = branch.with(names)
    if (clause !== '') withs.push(clause)
    selects.push(branch.select(names))
  }
  const text = `${withs.length > 0 ? `with recursive ${withs.join(', ')}` : ''} ${selects.join(' union all ')}`
  // Kinds are shortened, since PostgreSQL cuts the name of a statement after 63 bytes.
  const kinds = KINDS.filter((kind) => asked.has(kind)).map((kind) => kind.slice(0, 3))
  return { name: `rows ${kinds.join(' ')}`, text, values }
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

function columnOf(field: string, keys: readonly RowKey[]): readonly string[] {
  return keys.map((key) => {
    const members: Record<string, unknown> = key.kind === 'named' ? { ...key, ...key.where } : key
    return String(members[field] ?? '')
  })
}
