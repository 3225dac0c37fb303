/** Databases that earlier versions left open in this one, and every kind of record in them is what it was. */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { openTestDatabase } from '../support/database.ts'
import { makeDataFolder } from '../support/programs/data-folder.ts'
import { credentials, differences, survey } from './survey.ts'
import { startPdp } from './versions.ts'

const DUMPS = join(import.meta.dirname, 'dumps')
/** Signing in, and a program that starts, on a machine that has more to do. */
const PROGRAMS = { timeout: 300_000 }

test.each(readdirSync(DUMPS))(
  '%s: people and services get in, and every answer is the same',
  PROGRAMS,
  async (name) => {
    const text = readFileSync(join(DUMPS, name), 'utf8')
    const said = JSON.parse(/^-- said: (.+)$/m.exec(text)?.[1] ?? '')
    const database = await openTestDatabase({ migrated: false })
    const client = new pg.Client({ connectionString: database.connectionString })
    await client.connect()
    await client.query(text)
    await client.end()
    const folder = makeDataFolder('portcullis-dump-')
    const pdp = await startPdp({ name: 'pdp', folder, databaseUrl: database.connectionString })
    try {
      expect(differences(said, await survey(pdp.origin))).toEqual([])
      expect(await credentials(pdp.origin, null)).toEqual([])
    } finally {
      pdp.part.signal('SIGKILL')
      await pdp.part.ended()
      await database.drop()
      rmSync(folder, { recursive: true })
    }
  },
)
