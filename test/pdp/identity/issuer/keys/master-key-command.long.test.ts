/** `portcullis-pdp rotate-master-key` as an operator runs it: killed, repeated, refused. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { openMasterKeys } from '../../../../../pdp/identity/issuer/keys/master-keys.ts'
import { loadSigningKeys } from '../../../../../pdp/identity/issuer/keys/signing-keys.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { makeDataFolder } from '../../../../support/programs/data-folder.ts'
import { PROGRAM_ENV } from '../../../../support/programs/environment.ts'
import { endOf } from '../../../../support/programs/run.ts'
import { MASTER_KEY } from '../../harness.ts'
import {
  connectionString,
  ends,
  fill,
  given,
  identityWith,
  LASTING,
  NEXT,
  readable,
  sql,
  THIRD,
  useSealedWorld,
} from './sealed-world.ts'

useSealedWorld()

const MAIN = new URL('../../../../../pdp/main.ts', import.meta.url).pathname

describe('the command', () => {
  const base64 = (key: Buffer): string => key.toString('base64')
  const start = (environment: NodeJS.ProcessEnv, args: readonly string[] = []): ChildProcess => {
    const env = { ...PROGRAM_ENV, DATABASE_URL: connectionString, ...environment }
    return spawn(process.execPath, [MAIN, 'rotate-master-key', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const BOTH = { PORTCULLIS_MASTER_KEY: base64(MASTER_KEY), PORTCULLIS_NEXT_MASTER_KEY: base64(NEXT) }

  /** Statements that wait for a lock. */
  async function waiting(): Promise<number> {
    const rows = await sql.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    return rows.length
  }

  test('is killed again and again in the middle, loses nothing, and completes', async () => {
    const sessions = 2_600
    await fill(await identityWith(masterKeysOf(MASTER_KEY)), sessions)
    const blocker = new pg.Client({ connectionString })
    await blocker.connect()
    ends.push(() => blocker.end())
    for (const [kills, row] of [600, 1_200, 2_100].entries()) {
      await blocker.query('begin')
      // FOR UPDATE beside OFFSET would lock the rows that are skipped too.
      const one = 'select id from oidc_record order by kind, id offset $1 limit 1'
      await blocker.query(`select 1 from oidc_record where id = (${one}) for update`, [row])
      const child = start(BOTH)
      const end = endOf(child)
      await expect.poll(waiting, { timeout: 30_000 }).toBe(1)
      child.kill('SIGKILL')
      expect((await end).status).toBe(null)
      const [changed] = await readable(NEXT)
      expect(changed).toBeGreaterThanOrEqual(500 * (kills + 1))
      expect(await readable(MASTER_KEY, NEXT)).toEqual([LASTING + sessions, 0])
      await expect(openMasterKeys(sql, { current: NEXT, next: null })).rejects.toThrow('run portcullis-pdp rotate')
      await expect(openMasterKeys(sql, given(null))).rejects.toThrow('PORTCULLIS_MASTER_KEY')
      await expect(identityWith(await openMasterKeys(sql, given()))).resolves.toBeDefined()
      await blocker.query('rollback')
      await expect.poll(waiting, { timeout: 30_000 }).toBe(0)
    }
    const last = await endOf(start(BOTH))
    expect(last.status).toBe(0)
    expect(last.out).toContain('Make the next key PORTCULLIS_MASTER_KEY')
    expect(await readable(NEXT)).toEqual([LASTING + sessions, 0])
  })

  test('with the embedded PostgreSQL is refused while the PDP runs, and works at once after a kill', async () => {
    const directory = makeDataFolder('portcullis-rotation-')
    const listen = { PORTCULLIS_HTTP_LISTEN: '127.0.0.1:0', PORTCULLIS_GRPC_LISTEN: '127.0.0.1:0' }
    const own = {
      ...PROGRAM_ENV,
      PORTCULLIS_DATA_DIR: directory,
      ...listen,
      PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
    }
    const command = (name: string): ChildProcess =>
      spawn(process.execPath, [MAIN, name], { env: own, stdio: ['ignore', 'pipe', 'pipe'] })
    const files = (): boolean[] => ['master-key', 'next-master-key'].map((name) => existsSync(join(directory, name)))
    try {
      const pdp = command('serve')
      const ended = endOf(pdp)
      await new Promise<void>((resolve) =>
        pdp.stdout?.on('data', (chunk) => String(chunk).includes('"listening"') && resolve()),
      )
      const refused = await endOf(command('rotate-master-key'))
      expect([refused.status, refused.err]).toEqual([1, expect.stringMatching(/in use by another.*Stop that one/)])
      expect(files()).toEqual([true, false])
      pdp.kill('SIGKILL')
      await ended
      const former = readFileSync(join(directory, 'master-key'), 'utf8')
      expect(await endOf(command('rotate-master-key'))).toMatchObject({ status: 0 })
      expect(files()).toEqual([true, false])
      expect(readFileSync(join(directory, 'master-key'), 'utf8')).not.toBe(former)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('says what it did as JSON', async () => {
    await fill(await identityWith(masterKeysOf(MASTER_KEY)))
    const { status, out } = await endOf(start(BOTH, ['--dry-run', '--json']))
    expect([status, JSON.parse(out)]).toMatchObject([0, { dryRun: true, complete: false, unreadable: [] }])
    expect(out).not.toContain(base64(NEXT))
  })

  test.each([
    [{ PORTCULLIS_MASTER_KEY: base64(MASTER_KEY) }, /^PORTCULLIS_NEXT_MASTER_KEY is not set\. Make a key/],
    [{ ...BOTH, PORTCULLIS_NEXT_MASTER_KEY: base64(MASTER_KEY) }, /^PORTCULLIS_NEXT_MASTER_KEY is the same/],
    [{ ...BOTH, PORTCULLIS_NEXT_MASTER_KEY: 'short' }, /^PORTCULLIS_NEXT_MASTER_KEY must be 32 bytes in base64/],
    [{ ...BOTH, PORTCULLIS_MASTER_KEY: base64(THIRD) }, /PORTCULLIS_MASTER_KEY is not the key/],
  ])('refuses the settings %#, and changes nothing', async (environment, message) => {
    await openMasterKeys(sql, given(null))
    const { status, out, err } = await endOf(start(environment))
    expect([status === 0, out, err]).toEqual([false, '', expect.stringMatching(message)])
    expect(await readable(MASTER_KEY)).toEqual([2, 0])
  })

  test('makes the successor of a generated key, and puts it in its place', async () => {
    const directory = makeDataFolder('master-key-')
    ends.push(async () => rmSync(directory, { recursive: true }))
    await sql.query('delete from signing_key')
    const settings = { PORTCULLIS_DATA_DIR: directory }
    const before = await endOf(start(settings, ['--dry-run']))
    expect([before.status, existsSync(join(directory, 'next-master-key'))]).toEqual([0, false])
    const former = readFileSync(join(directory, 'master-key'), 'utf8')
    await loadSigningKeys({ sql, masterKeys: masterKeysOf(Buffer.from(former, 'base64url')) })
    const { status, out } = await endOf(start(settings))
    expect([status, out]).toEqual([0, expect.stringContaining('signing keys                2 changed')])
    const key = Buffer.from(readFileSync(join(directory, 'master-key'), 'utf8'), 'base64url')
    expect([await readable(key), existsSync(join(directory, 'next-master-key'))]).toEqual([[2, 0], false])
  })
})
