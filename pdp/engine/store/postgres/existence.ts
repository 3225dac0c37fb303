/** Whether people and clients exist: a backend asks about others all the time. */
import { isId } from '../../../shared/domain/names.ts'
import type { Directory, Sql } from '../directory.ts'
import { joinedRead } from '../joined-read.ts'

const EXISTING = `
  select 'user:' || user_id as name from user_account where user_id = any($1)
  union all select 'service:' || client_id from client where client_id = any($2)`

export function existence(sql: Pick<Sql, 'query'>): Directory['exists'] {
  const read = joinedRead(async (names) => {
    const ids = (type: 'user' | 'service'): readonly string[] =>
      names.filter((name) => name.startsWith(`${type}:`)).map((name) => name.slice(type.length + 1))
    const rows = await sql.query<{ name: string }>(EXISTING, [ids('user'), ids('service')])
    return new Map(rows.map(({ name }) => [name, true]))
  })
  // A text that is not an id names no one, so it does not take part in the shared statement.
  return async ({ type, id }) => isId(id) && (await read(`${type}:${id}`)) !== null
}
