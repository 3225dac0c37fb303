/** Distinct names in key order out of PostgreSQL: one index probe per name, however many rows each has. */
import type { LogId } from '../../domain/log.ts'
import type { NameSource } from '../../domain/tuple.ts'
import type { Connection } from './connection.ts'

/** Goes from one name straight to the next greater one; the rows between, which repeat the name, are never read. */
const skipping = (table: string, column: string): string => `
  with recursive found(name) as (
    (select ${column} from ${table} where organization_id = $1 and ${column} > $2 and ${column} < $3 order by ${column} limit 1)
    union all
    select r.${column} from found f, lateral (
      select ${column} from ${table} where organization_id = $1 and ${column} > f.name and ${column} < $3 order by ${column} limit 1) r)
  select name from found limit $4`

/** For tests of the plans. */
export const NAMES = {
  objects: skipping('relationship', 'object'),
  subjects: skipping('relationship', 'subject'),
  grantees: skipping('role_grant', 'subject'),
  members: 'select user_id from membership where organization_id = $1 and user_id > $2 order by user_id limit $3',
} as const

export async function readNames(
  connection: Pick<Connection, 'prepared'>,
  request: {
    readonly log: LogId
    readonly source: NameSource
    readonly after: string | null
    readonly countMax: number
  },
): Promise<readonly string[]> {
  const { log, source, after, countMax } = request
  if (source.kind === 'members') {
    const rows = await connection.prepared('names-members', NAMES.members, [
      log,
      after?.slice('user:'.length) ?? '',
      countMax,
    ])
    return rows.map(([user]) => `user:${String(user)}`)
  }
  // `;` is the character after `:`, so that every name of the type lies between the two.
  const [low, high] = [`${source.type}:`, `${source.type};`]
  const start = after === null || after < low ? low : after
  const rows = await connection.prepared(`names-${source.kind}`, NAMES[source.kind], [log, start, high, countMax])
  return rows.map(([name]) => String(name))
}
