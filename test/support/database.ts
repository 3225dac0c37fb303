/** Fresh databases for tests, on the one PostgreSQL that the run's global setup started. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { Sql } from '../../pdp/engine/store/directory.ts'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'

/** A database with every migration applied; test databases are copies of it. */
export const TEMPLATE = 'portcullis_template'

export type TestDatabase = { readonly connectionString: string; drop(): Promise<void> }

/** An own, empty database. `migrated` false: without even our tables. `drop()` also cuts connections that were left open. */
export async function openTestDatabase(options: { readonly migrated?: boolean } = {}): Promise<TestDatabase> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  const template = options.migrated === false ? 'template0' : TEMPLATE
  const isCopy = inject('copiesTemplate')
  await administer(server, `create database ${name}${isCopy ? ` template ${template} strategy file_copy` : ''}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  if (!isCopy && options.migrated !== false) await (await openPostgres({ connectionString: url.href })).close()
  return {
    connectionString: url.href,
    drop: () => administer(server, `drop database ${name} with (force)`),
  }
}

async function administer(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/**
 * Makes PostgreSQL undo the next transaction that does `change` (`insert on change_log`), at its commit, as it does to one of two
 * that wait for each other. Returns how many have come to their commit since.
 */
export async function undoOnce(sql: Pick<Sql, 'query'>, change: string): Promise<() => Promise<number>> {
  await sql.query('create sequence undo_commits')
  await sql.query(`
    create function undo_first() returns trigger language plpgsql as $$ begin
      if nextval('undo_commits') = 1 then raise exception 'undone' using errcode = '40001'; end if; return null; end $$`)
  await sql.query(`
    create constraint trigger undo_first after ${change} deferrable initially deferred
    for each row execute function undo_first()`)
  return async () => {
    const [row] = await sql.query<{ count: number }>('select last_value::int as count from undo_commits')
    return row?.count ?? 0
  }
}
