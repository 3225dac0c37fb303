/** Brings a database's schema forward, once, whatever number of PDPs start at the same time. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Client } from 'pg'
import { PdpError } from '../../domain/errors.ts'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'

type Migration = { readonly name: string; readonly text: string; readonly digest: string }

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

/**
 * Applies every migration that the database lacks, each in a transaction of its own, under an advisory lock.
 * @returns the names of those applied.
 * Throws PdpError `conflict` when the database holds a migration that this version does not know, or another text of one.
 */
export async function migrate(client: Client): Promise<readonly string[]> {
  await client.query(`select pg_advisory_lock(${ADVISORY_LOCKS.migrations})`)
  try {
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
    return missing.map((m) => m.name)
  } finally {
    await client.query(`select pg_advisory_unlock(${ADVISORY_LOCKS.migrations})`)
  }
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
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}
