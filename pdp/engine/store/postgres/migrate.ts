/** Migrates a database's schema, once, even when several PDPs start at the same time. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Client } from 'pg'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import { isDatabaseError } from './connection/errors.ts'

type Migration = { readonly name: string; readonly text: string; readonly digest: string }
/** SQLSTATE duplicate_table. */
const DUPLICATE_TABLE = '42P07'

function readMigrations(): readonly Migration[] {
  const directory = new URL('./migrations/', import.meta.url)
  return readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => {
      const text = readFileSync(new URL(name, directory), 'utf8')
      return { name, text, digest: createHash('sha256').update(text).digest('hex') }
    })
}

/** A name that PostgreSQL accepts without quotes. */
export const isSchemaName = (text: string): boolean => /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(text)

/** `schema`: the quoted name of the schema of the tables. */
export type Migrated = { readonly applied: readonly string[]; readonly schema: string }

/**
 * Applies every migration that the database lacks, each in a transaction of its own, under an advisory lock. `schema`: of the
 * tables, created if it does not exist; the first of the `search_path` when undefined.
 * Throws PdpError `conflict` when the database holds a migration that this version does not know, another text of one, or
 * tables of another application under our names.
 */
export async function migrate(client: Client, schema?: string): Promise<Migrated> {
  await client.query(`select pg_advisory_lock(${ADVISORY_LOCKS.migrations})`)
  try {
    if (schema !== undefined) await enterSchema(client, schema)
    await client.query(
      `create table if not exists schema_migration (name text primary key, digest text not null, applied_at timestamptz not null default now())`,
    )
    const applied = new Map(
      (await client.query<{ name: string; digest: string }>('select name, digest from schema_migration')).rows.map(
        (row) => [row.name, row.digest],
      ),
    )
    const known = readMigrations()
    refuseStrangers(applied, known)
    const missing = known.filter((m) => !applied.has(m.name))
    for (const migration of missing) await apply(client, migration)
    const found = await client.query<{ schema: string }>(
      `select quote_ident(nspname) as schema from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = 'schema_migration'::regclass`,
    )
    return { applied: missing.map((m) => m.name), schema: found.rows[0]?.schema ?? '' }
  } finally {
    await client.query(`select pg_advisory_unlock(${ADVISORY_LOCKS.migrations})`)
  }
}

/** Creates the schema if it does not exist. `create schema if not exists` would need the right to create one in any case. */
async function enterSchema(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [schema])
  if (rows.length === 0) await client.query(`create schema "${schema}"`)
  await client.query(`set search_path = "${schema}"`)
}

function refuseStrangers(applied: ReadonlyMap<string, string>, known: readonly Migration[]): void {
  const digests = new Map(known.map((m) => [m.name, m.digest]))
  for (const [name, digest] of applied) {
    if (!digests.has(name)) {
      throw new PdpError(
        'conflict',
        `the database was migrated by a newer Portcullis (it has ${name}): start that version`,
      )
    }
    if (digests.get(name) !== digest) {
      throw new PdpError('conflict', `migration ${name} differs from the one that the database was built with`)
    }
  }
}

async function apply(client: Client, migration: Migration): Promise<void> {
  await client.query('begin')
  try {
    await client.query(migration.text)
    await client.query('insert into schema_migration (name, digest) values ($1, $2)', [
      migration.name,
      migration.digest,
    ])
    await client.query('commit')
  } catch (err) {
    await client.query('rollback')
    if (isDatabaseError(err) && err.code === DUPLICATE_TABLE)
      throw new PdpError(
        'conflict',
        `the database has tables of somebody else under our names (${err.message}): give Portcullis a schema of its own`,
        { cause: err },
      )
    throw err
  }
}
