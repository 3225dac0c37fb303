/** What management asks across all organizations, on PostgreSQL: full scans, for which no decision waits. */
import type { HeldRole, LoggedGrant, ReportingQueries, TupleShape } from '../contract.ts'
import type { Sql } from '../directory.ts'
import type { Database } from './connection/database.ts'

const GRANTS = `
  select organization_id as log, grant_id as id, app, role, subject from role_grant
  where (organization_id, grant_id) > ($1, $2)
    and ($3::text is null or organization_id = $3) and ($4::text is null or grant_id = $4)
    and ($5::text[] is null or app = any($5) or (app is null and $6)) and ($7::text is null or role = $7)
    and ($8::text is null or subject = $8)
  order by organization_id, grant_id limit $9`

const ROLE_SETS = `
  select distinct roles from (
    select array_agg(distinct jsonb_build_object('app', app, 'role', role)) as roles from role_grant
    where app = $1 or app is null group by subject) held`

// 'user', 'user:*' or 'group#member' of a subject, whose id may hold colons but no '#'.
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

export function reportingQueries(database: Pick<Database, 'lengthy'>): ReportingQueries {
  const sql: Pick<Sql, 'query'> = {
    query: (text, values) => database.lengthy('begin read only', (connection) => connection.query(text, values)),
  }
  return {
    async roleGrants(filter, { after, countMax }) {
      const { log = null, id = null, apps = null, role = null, subject = null } = filter
      const named = apps?.filter((app) => app !== null) ?? null
      return sql.query<LoggedGrant>(GRANTS, [
        after?.log ?? '',
        after?.id ?? '',
        log,
        id,
        named,
        apps?.includes(null) ?? false,
        role,
        subject,
        countMax,
      ])
    },
    async roleSets(app) {
      return (await sql.query<{ roles: readonly HeldRole[] }>(ROLE_SETS, [app])).map(({ roles }) => roles)
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
