/**
 * Vitest global setup: one embedded PostgreSQL for the whole run, or the server of `PORTCULLIS_TEST_DATABASE_URL`, whose role makes
 * databases; and a template with all migrations applied.
 */
import { rm } from 'node:fs/promises'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { openPostgres } from '../../pdp/engine/store/postgres/postgres.ts'
import { makeKey, type NewKey } from '../../pdp/identity/issuer/keys/signing-keys.ts'
import { masterKeysOf } from '../../pdp/shared/base/encryption.ts'
import { TEMPLATE } from './database.ts'
import { MASTER_KEY } from './master-key.ts'
import { makeDataFolder, sweepDataFolders } from './programs/data-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser's connection to the run's PostgreSQL. */
    postgresUrl: string
    /** Whether databases are copies of the template. Another engine may lack that, and takes longer. */
    copiesTemplate: boolean
    /** An active and a next signing key, sealed by MASTER_KEY: two RSA keys take most of an identity service's start. */
    signingKeys: readonly NewKey[]
  }
}

const PREFIX = 'portcullis-test-'

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const sealingKeys = masterKeysOf(MASTER_KEY).derive('signing-key')
  project.provide('signingKeys', await Promise.all([makeKey(sealingKeys, 'active'), makeKey(sealingKeys, 'next')]))
  const given = process.env.PORTCULLIS_TEST_DATABASE_URL
  project.provide('copiesTemplate', given === undefined)
  if (given !== undefined) {
    project.provide('postgresUrl', given)
    return async () => undefined
  }
  await sweepDataFolders(PREFIX)
  const dataDirectory = makeDataFolder(PREFIX)
  // The tests' data dies with the run, so nothing waits for the disk.
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    synchronous_commit: 'off',
    max_connections: '300',
    shared_preload_libraries: 'pg_stat_statements', // for what tests count at the server
    // Else the statements of all other tests push out those that are counted.
    'pg_stat_statements.max': '100000',
  }
  const postgres = await startEmbeddedPostgres({ dataDirectory, settings })
  await createTemplate(postgres.connectionString)
  project.provide('postgresUrl', postgres.connectionString)
  return async () => {
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function createTemplate(connectionString: string): Promise<void> {
  const admin = new pg.Client({ connectionString })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  const url = new URL(connectionString)
  url.pathname = `/${TEMPLATE}`
  const migrated = await openPostgres({ connectionString: url.href })
  await migrated.close()
}
