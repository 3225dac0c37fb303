/** Writes and lists tuples in PostgreSQL, and the names in them. Tuples with a condition are in a table of their own. */
import type { Change } from '../../../shared/domain/change.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { NameSource, Tuple } from '../../../shared/domain/tuple.ts'
import type { Queries } from '../directory.ts'
import type { Connection } from './connection/database.ts'

export type TupleChange = Extract<Change, { kind: 'tuple' }>

const TUPLE = `object || ' ' || relation || ' ' || subject as tuple`
const ASKED = 'asked as (select * from unnest($2::text[], $3::text[], $4::text[]) q(object, relation, subject))'
const taken = (table: string): string => `
  taken as (delete from ${table} t using asked q
    where t.organization_id = $1 and t.object = q.object and t.relation = q.relation and t.subject = q.subject
    returning t.object, t.relation, t.subject)`
const DELETE = `
  with ${ASKED}, ${taken('conditional_relationship')},
  deleted as (delete from relationship t using asked q
    where t.organization_id = $1 and t.object = q.object and t.relation = q.relation and t.subject = q.subject
    returning t.object, t.relation, t.subject)
  select ${TUPLE} from taken union all select ${TUPLE} from deleted`
const WRITE = `
  with ${ASKED}, ${taken('conditional_relationship')},
  written as (insert into relationship as t (organization_id, object, relation, subject, expires_at)
    select $1, q.object, q.relation, q.subject, to_timestamp(q.expires / 1000.0)
    from unnest($2::text[], $3::text[], $4::text[], $5::float8[]) q(object, relation, subject, expires)
    on conflict (organization_id, object, relation, subject) do update set expires_at = excluded.expires_at
    where t.expires_at is distinct from excluded.expires_at returning object, relation, subject)
  select ${TUPLE} from taken union all select ${TUPLE} from written`
const WRITE_CONDITIONAL = `
  with ${ASKED}, ${taken('relationship')},
  written as (insert into conditional_relationship as t (organization_id, object, relation, subject, expires_at, condition, context)
    select $1, q.object, q.relation, q.subject, to_timestamp(q.expires / 1000.0), q.condition, q.context
    from unnest($2::text[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::jsonb[])
      q(object, relation, subject, expires, condition, context)
    on conflict (organization_id, object, relation, subject) do update
      set expires_at = excluded.expires_at, condition = excluded.condition, context = excluded.context
    where (t.expires_at, t.condition, t.context) is distinct from (excluded.expires_at, excluded.condition, excluded.context)
    returning object, relation, subject)
  select ${TUPLE} from taken union all select ${TUPLE} from written`

/** Writes and deletes tuples. A tuple is in one of two tables, so each statement also removes it from the other one. */
export async function applyTuples(
  sql: Queries,
  log: JournalId,
  changes: readonly TupleChange[],
): Promise<readonly TupleChange[]> {
  const took = new Set<string>()
  const apply = async (tuples: readonly Tuple[], text: string, more: readonly unknown[]): Promise<void> => {
    if (tuples.length === 0) return
    const keys = (['object', 'relation', 'subject'] as const).map((field) => tuples.map((tuple) => tuple[field]))
    for (const row of await sql.query<{ tuple: string }>(text, [log, ...keys, ...more])) took.add(row.tuple)
  }
  const written = changes.filter(({ op }) => op === 'write').map(({ tuple }) => tuple)
  const plain = written.filter(({ condition }) => condition === undefined)
  const conditional = written.filter(({ condition }) => condition !== undefined)
  const deleted = changes.filter(({ op }) => op === 'delete').map(({ tuple }) => tuple)
  await apply(deleted, DELETE, [])
  await apply(plain, WRITE, [plain.map((t) => t.expiresAtMs)])
  await apply(conditional, WRITE_CONDITIONAL, [
    conditional.map((t) => t.expiresAtMs),
    conditional.map((t) => t.condition?.name),
    conditional.map((t) => JSON.stringify(t.condition?.context)),
  ])
  return changes.filter(({ tuple }) => took.has(`${tuple.object} ${tuple.relation} ${tuple.subject}`))
}

/** Implements `Store.tuples`. */
export async function readTuples(
  database: Queries,
  request: {
    organization: string
    filter: { object?: string; relation?: string; subject?: string }
    page: { after: Tuple | null; countMax: number }
  },
): Promise<readonly Tuple[]> {
  const { organization, filter, page } = request
  const { after } = page
  const rows = await database.query<Omit<Tuple, 'condition'> & { name: string | null; context: JsonObject | null }>(
    `select object, relation, subject, (extract(epoch from expires_at) * 1000)::float8 as "expiresAtMs", condition as name, context
     from stored_relationship where organization_id = $1 and ($2::text is null or object = $2) and ($3::text is null or relation = $3) and ($4::text is null or subject = $4)
     and (object, relation, subject) > ($5, $6, $7) order by object, relation, subject limit $8`,
    [
      organization,
      filter.object ?? null,
      filter.relation ?? null,
      filter.subject ?? null,
      after?.object ?? '',
      after?.relation ?? '',
      after?.subject ?? '',
      page.countMax,
    ],
  )
  return rows.map(({ name, context, ...tuple }) =>
    name === null ? tuple : { ...tuple, condition: { name, context: context ?? {} } },
  )
}

/** A statement that reads each name once: it goes from a name to the next greater one by index, past all rows that repeat it. */
const skipping = (table: string, column: string): string => `
  with recursive found(name) as (
    (select ${column} from ${table} where organization_id = $1 and ${column} > $2 and ${column} < $3 order by ${column} limit 1)
    union all
    select r.${column} from found f, lateral (
      select ${column} from ${table} where organization_id = $1 and ${column} > f.name and ${column} < $3 order by ${column} limit 1) r)
  select name from found limit $4`

/** The statements for names; exported so that tests can check their query plans. */
export const NAMES = {
  objects: skipping('stored_relationship', 'object'),
  subjects: skipping('stored_relationship', 'subject'),
  grantees: skipping('role_grant', 'subject'),
  members: 'select user_id from membership where organization_id = $1 and user_id > $2 order by user_id limit $3',
} as const

export async function readNames(
  connection: Pick<Connection, 'prepared'>,
  request: {
    readonly log: JournalId
    readonly source: NameSource
    readonly after: string | null
    readonly countMax: number
  },
): Promise<readonly string[]> {
  const { log, source, after, countMax } = request
  if (source.kind === 'members') {
    const start = after?.slice('user:'.length) ?? ''
    return connection.prepared('names-members', NAMES.members, [log, start, countMax], (rows) =>
      rows.map(([user]) => `user:${String(user)}`),
    )
  }
  // `;` is the character after `:`, so that every name of the type lies between the two.
  const [low, high] = [`${source.type}:`, `${source.type};`]
  const start = after === null || after < low ? low : after
  return connection.prepared(`names-${source.kind}`, NAMES[source.kind], [log, start, high, countMax], (rows) =>
    rows.map(([name]) => String(name)),
  )
}
