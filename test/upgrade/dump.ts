/** A small dump: the schema by the version's own migrations, and every row. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from './database.ts'
import { MASTER_KEY } from './versions.ts'

/** `said`: what the version answered, for those that open the dump. */
export async function dumpOf(database: Database, { root, said }: { root: string; said: object }): Promise<string> {
  const folders = ['pdp/engine/store/postgres/migrations', 'pdp/engine/store/migrations'].map((path) =>
    join(root, path),
  )
  const folder = folders.find((path) => existsSync(path)) ?? ''
  const applied = await database.query<{ name: string }>('select name from schema_migration order by name')
  const tables = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  )
  const lines: string[] = []
  for (const { name } of tables) {
    const rows = await database.query<{ row: string }>(
      `select quote_literal(to_jsonb(t)::text) as row from "${name}" t order by t::text`,
    )
    if (name !== 'schema_migration') lines.push(`delete from "${name}";`)
    for (const { row } of rows)
      lines.push(`insert into "${name}" select * from jsonb_populate_record(null::"${name}", ${row});`)
  }
  return [
    `-- master key: ${MASTER_KEY}`,
    `-- said: ${JSON.stringify(said)}`,
    'create table schema_migration (name text primary key, digest text not null, applied_at timestamptz not null default now());',
    ...applied.map(({ name }) => readFileSync(join(folder, name), 'utf8')),
    // Rows come in order of the tables' names, not of what refers to what.
    'set session_replication_role = replica;',
    ...lines,
    '',
  ].join('\n')
}
