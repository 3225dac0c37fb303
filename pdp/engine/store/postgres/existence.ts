/** Whether people and clients exist: a backend asks about others all the time. */
import { EXTERNAL, isId } from '../../../shared/domain/names.ts'
import type { Directory, Queries } from '../directory.ts'
import { joinedRead } from '../joined-read.ts'

// A person of a trusted issuer exists where the issuer may speak for anybody, as by a token.
const EXISTING = `
  select 'user:' || user_id as name from user_account where user_id = any($1)
  union all select 'service:' || client_id from client where client_id = any($2)
  union all select asked.organization || ' ' || asked.id from unnest($3::text[], $4::text[]) as asked (organization, id)
  where exists (
    select 1 from trusted_issuer t where t.document -> 'organizations' ? asked.organization
    and starts_with(asked.id, '${EXTERNAL}' || (t.document ->> 'subject_prefix'))
    and asked.id <> '${EXTERNAL}' || (t.document ->> 'subject_prefix'))`

export function existence(sql: Queries): Directory['exists'] {
  const read = joinedRead(async (names) => {
    const ids = (type: 'user' | 'service'): readonly string[] =>
      names.filter((name) => name.startsWith(`${type}:`)).map((name) => name.slice(type.length + 1))
    const external = names.filter((name) => name.includes(' ')).map((name) => name.split(' '))
    const values = [ids('user'), ids('service'), external.map(([org]) => org), external.map(([, id]) => id)]
    const rows = await sql.query<{ name: string }>(EXISTING, values)
    return new Map(rows.map(({ name }) => [name, true]))
  })
  // A text that is not an id names no one, so it does not take part in the shared statement.
  return async ({ type, id }, organization) => {
    if (!isId(id)) return false
    if (!id.startsWith(EXTERNAL)) return (await read(`${type}:${id}`)) !== null
    return type === 'user' && isId(organization) && (await read(`${organization} ${id}`)) !== null
  }
}
