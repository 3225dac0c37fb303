/** Makes what a database holds older, and counts it. */
import type { Database } from '../../upgrade/database.ts'

/** Younger things are in use. A token lives 15 minutes. */
const YOUNG = `interval '30 seconds'`
const AGE = [
  `update oidc_record set expires_at = now() - interval '2 hours'
   where expires_at between now() - interval '1 hour' and now() + interval '15 minutes' - ${YOUNG}`,
  `update grant_binding set created_at = created_at - interval '2 hours' where created_at < now() - ${YOUNG}`,
  `update attempt set ends_at = now() - interval '2 hours' where ends_at > now() - interval '1 hour'`,
  `update mailed_token set expires_at = now() - interval '2 hours'`,
  `update outbox set created_at = created_at - interval '31 days' where created_at < now() - ${YOUNG}`,
  `update change_log set written_at = written_at - interval '2 days' where written_at < now() - ${YOUNG}`,
]

export async function age(database: Database): Promise<void> {
  for (const statement of AGE) await database.query(statement)
}

/** Every table with its rows. */
export async function rowsOf(database: Database): Promise<{ readonly [name: string]: number }> {
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  )
  const counts = tables.map(({ name }) => `(select count(*)::int from "${name}") as "${name}, rows"`)
  const [row] = await database.query<{ [name: string]: number }>(`select ${counts.join(', ')}`)
  return row ?? {}
}
