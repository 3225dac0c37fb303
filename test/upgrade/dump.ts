/** A small dump: the schema by the version's own migrations, and every row. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from './database.ts'
import { MASTER_KEY } from './versions.ts'

/** `said`: what the version answered, for those that open the dump. */
export async function dumpOf(database: Database, { root, said }: { root: string; said: object }): Promise<string> {
  const tables = await tablesOf(database)
  const lines: string[] = []
  for (const name of tables) {
    const rows = await database.query<{ row: string }>(
      `select quote_literal(to_jsonb(t)::text) as row from "${name}" t order by t::text`,
    )
    if (name !== 'schema_migration') lines.push(`delete from "${name}";`)
    for (const { row } of rows)
      lines.push(
        `insert into "${name}" overriding system value select * from jsonb_populate_record(null::"${name}", ${row});`,
      )
  }
  return [
    `-- master key: ${MASTER_KEY}`,
    `-- said: ${JSON.stringify(said)}`,
    ...(await definitions(database, root)),
    // Rows come in order of the tables' names, not of what refers to what.
    'set session_replication_role = replica;',
    ...lines,
    '',
  ].join('\n')
}

/** The tables without their rows, for a server that gets these by replication. */
export async function schemaOf(database: Database, root: string): Promise<string> {
  const tables = await tablesOf(database)
  return [...(await definitions(database, root)), `truncate ${tables.map((name) => `"${name}"`).join(', ')}`].join('\n')
}

async function definitions(database: Database, root: string): Promise<readonly string[]> {
  const folders = ['pdp/engine/store/postgres/migrations', 'pdp/engine/store/migrations'].map((path) =>
    join(root, path),
  )
  const folder = folders.find((path) => existsSync(path)) ?? ''
  const applied = await database.query<{ name: string }>('select name from schema_migration order by name')
  return [
    'create table schema_migration (name text primary key, digest text not null, applied_at timestamptz not null default now());',
    ...applied.map(({ name }) => readFileSync(join(folder, name), 'utf8')),
  ]
}

async function tablesOf(database: Database): Promise<readonly string[]> {
  const rows = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  )
  return rows.map(({ name }) => name)
}
