/** Fresh databases for tests, on the one PostgreSQL that the run's global setup started. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A database with every migration applied; test databases are copies of it. */
export const TEMPLATE = 'portcullis_template'

export type TestDatabase = { readonly connectionString: string; drop(): Promise<void> }

/** An own, empty database. `migrated` false: without even our tables. `drop()` also cuts connections that were left open. */
export async function openTestDatabase(options: { readonly migrated?: boolean } = {}): Promise<TestDatabase> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  const template = options.migrated === false ? 'template0' : TEMPLATE
  await administer(server, `create database ${name} template ${template} strategy file_copy`)
  const url = new URL(server)
  url.pathname = `/${name}`
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
