/** Questions of management across all organizations, on PostgreSQL. No decision waits for them. */
import type { GrantFilter, HeldRole, JournaledGrant, ReportingQueries, TupleShape } from '../contract.ts'
import type { Queries } from '../directory.ts'
import type { Database } from './connection/database.ts'

const ROLE_SETS = `
  with holder as (
    select subject from unnest($1::text[], $2::text[]) q(app, role), lateral (
      select subject from role_grant where app = q.app and role = q.role
      union all select subject from role_grant where q.app is null and app is null and role = q.role offset 0) g
    group by subject)
  select distinct roles from holder h, lateral (
    select array_agg(distinct jsonb_build_object('app', app, 'role', role)) as roles from role_grant
    where subject = h.subject offset 0) held`

// The shape of a subject: 'user', 'user:*' or 'group#member'. Its id may hold colons but no '#'.
const SHAPES = `
  select type, relation, shape as subject, condition, count(*) as "tuplesCount",
    (array_agg(json_build_object('organization', organization_id, 'object', object, 'subject', subject)))[1] as example
  from (
    select organization_id, object, relation, subject, condition, split_part(object, ':', 1) as type,
      case when strpos(subject, '#') > 0 then split_part(subject, ':', 1) || '#' || split_part(subject, '#', 2)
        when right(subject, 2) = ':*' and strpos(subject, ':') = length(subject) - 1 then subject
        else split_part(subject, ':', 1) end as shape
    from stored_relationship where split_part(object, ':', 1) = any($1)) tuple
  group by type, relation, shape, condition order by type, relation, shape, condition nulls first`

/** One select for each app, since the index has the grants of one app in the order of the page, but not those of several. */
function grantsStatement(
  { log, id, apps, role, subject }: GrantFilter,
  { after, countMax }: Parameters<ReportingQueries['roleGrants']>[1],
): { readonly text: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [countMax, after?.log ?? '', after?.id ?? '']
  const equal = (column: string, value: string | undefined): readonly string[] =>
    value === undefined ? [] : [`${column} = $${values.push(value)}`]
  const conditions = [
    '(organization_id, grant_id) > ($2, $3)',
    ...equal('organization_id', log),
    ...equal('grant_id', id),
    ...equal('role', role),
    ...equal('subject', subject),
  ]
  const selects = (apps ?? [undefined]).map((app) => {
    const ofApp = app === null ? ['app is null'] : equal('app', app)
    return `(select organization_id as log, grant_id as id, app, role, subject from role_grant
      where ${[...conditions, ...ofApp].join(' and ')} order by organization_id, grant_id limit $1)`
  })
  return { text: `select * from (${selects.join(' union all ')}) found order by log, id limit $1`, values }
}

export function reportingQueries(database: Pick<Database, 'lengthy'>): ReportingQueries {
  const sql: Queries = {
    query: (text, values) => database.lengthy('begin read only', (connection) => connection.query(text, values)),
  }
  return {
    async roleGrants(filter, page) {
      if (filter.apps?.length === 0) return []
      const { text, values } = grantsStatement(filter, page)
      return sql.query<JournaledGrant>(text, values)
    },
    async roleSets(wanted) {
      const asked = [wanted.map(({ app }) => app), wanted.map(({ role }) => role)]
      return (await sql.query<{ roles: readonly HeldRole[] }>(ROLE_SETS, asked)).map(({ roles }) => roles)
    },
    async tupleShapes(types) {
      type Row = Omit<TupleShape, 'example'> & { example: { organization: string; object: string; subject: string } }
      return (await sql.query<Row>(SHAPES, [types])).map(({ example, ...shape }) => ({
        ...shape,
        example: {
          organization: example.organization,
          tuple: { object: example.object, relation: shape.relation, subject: example.subject },
        },
      }))
    },
  }
}
