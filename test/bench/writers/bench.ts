/**
 * People of 10,000 organizations who sign out, lose grants, change passwords and are written by clients at once: as entries arrive, beside writers who each
 * hold the log's row as they did before, and beside writers who leave no entry, which is all that the rest of their work allows.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sql, Transaction } from '../../../pdp/engine/store/directory.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { postgresDirectory } from '../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { createRevocations } from '../../../pdp/identity/issuer/tokens/revocation.ts'
import { createPasswords } from '../../../pdp/identity/people/passwords/new-password.ts'
import { PdpError } from '../../../pdp/shared/domain/errors.ts'
import { DIRECTORY, type JournalId } from '../../../pdp/shared/domain/journal.ts'
import { show } from '../suite/print.ts'
import { type Extent, type Group, measureInTurn, type Part, USUAL, type Way } from '../suite/rows.ts'

const ORGANIZATIONS = 10_000
const PIECE = 500
const CALLERS = 32
const TRIES_MAX = 10
const CONTEXT = { actor: 'bench', requestId: 'bench' }
const NOW = 'entries arrive, one transaction numbers all'
/** A commit that also waits for a standby, or a slower disk. */
const SLOW_COMMIT_US = 2_000

export async function bench(): Promise<void> {
  show([await measureWriters(USUAL)])
}

async function measureWriters(extent: Extent): Promise<Part> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const { connectionString } = postgres
  const opened = await openPostgres({ connectionString, poolCountMax: CALLERS })
  try {
    for (let from = 0; from < ORGANIZATIONS; from += PIECE) await opened.sql.query(PEOPLE, [from, PIECE])
    await opened.sql.query('analyze')
    const groups: Group[] = []
    for (const delayUs of [0, SLOW_COMMIT_US]) {
      await opened.sql.query(`alter system set commit_delay = ${delayUs}`)
      await opened.sql.query('alter system set commit_siblings = 0')
      await opened.sql.query('select pg_reload_conf()')
      for (const [unit, waysOf] of Object.entries(UNITS)) {
        const ways = Object.entries(SQLS).map(([name, over]): Way => {
          const call = waysOf(over(opened.sql))
          return { name, ours: name === NOW, unchecked: '', call: (i) => patiently(() => call(`${i % ORGANIZATIONS}`)) }
        })
        const rows = await measureInTurn(ways, { ...extent, callers: CALLERS })
        const commit = delayUs === 0 ? '' : `; a commit takes ${delayUs / 1_000} ms more`
        groups.push({ title: `${CALLERS} callers${commit}`, unit, reference: NOW, rows })
      }
    }
    return { name: 'writers', groups, missing: [] }
  } finally {
    await opened.close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

/** On a busy machine a connection may not open in time: then the call takes longer. */
async function patiently(call: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return void (await call())
    } catch (err) {
      if (tries === TRIES_MAX || !(err instanceof PdpError) || err.code !== 'store_unavailable') throw err
    }
  }
}

/** One in each organization, with a session and a grant. */
const PEOPLE = `
  with n as (select n::text as n from generate_series($1::int, $1::int + $2::int - 1) n),
  o as (insert into organization (organization_id, name) select 'o' || n, 'o' || n from n returning 1),
  p as (insert into principal (id, kind) select 'p' || n, 'user' from n returning 1),
  u as (insert into user_account (user_id, email, password_hash) select 'p' || n, n || '@x.example', 'h' from n returning 1),
  m as (insert into membership (organization_id, user_id, role, status) select 'o' || n, 'p' || n, 'member', 'active' from n returning 1),
  s as (insert into oidc_record (kind, id, uid, payload, expires_at)
    select 'Session', 's' || n, 'u' || n, jsonb_build_object('accountId', 'p' || n), now() + interval '1 day' from n returning 1),
  g as (insert into oidc_record (kind, id, payload, expires_at)
    select 'Grant', 'g' || n, '{}', now() + interval '1 day' from n returning 1)
  insert into grant_binding (grant_id, organization_id, user_id, client_id, session_uid)
  select 'g' || n, 'o' || n, 'p' || n, 'c', 'u' || n from n`

/** Each may be repeated for the same person, and writes the same again. */
const UNITS: { readonly [unit: string]: (sql: Sql) => (n: string) => Promise<unknown> } = {
  'sign-outs'(sql) {
    const revocations = createRevocations({ sql, appendEvents, clock: Date.now })
    return (n) => revocations.endSession({ uid: `u${n}`, user: `p${n}` }, CONTEXT)
  },
  revocations(sql) {
    const revocations = createRevocations({ sql, appendEvents, clock: Date.now })
    return (n) => revocations.endGrant(`g${n}`, CONTEXT)
  },
  // Without their hash, which takes longer than all else.
  passwords(sql) {
    const revocations = createRevocations({ sql, appendEvents, clock: Date.now })
    const unmailed = { find: () => Promise.resolve(null), take: () => Promise.resolve(null) }
    const passwords = createPasswords({ sql, tokens: unmailed, appendEvents, revocations })
    return async (n) => {
      const by = { ts: Date.now() / 1_000 + 60 }
      if (!(await passwords.change(`p${n}`, { formerHash: 'h', passwordHash: 'h', by }))) throw new Error(`p${n}`)
    }
  },
  'people written by clients'(sql) {
    const { putUser } = postgresDirectory(sql)
    return (n) => putUser({ id: `p${n}`, email: `${n}@x.example`, emailVerified: false, name: n }, CONTEXT)
  },
}

const SQLS: { readonly [name: string]: (sql: Sql) => Sql } = {
  [NOW]: (sql) => sql,
  'each holds the log, as before': (sql) => ({
    ...sql,
    transaction: (work) => sql.transaction((tx) => work(holding(tx))),
  }),
  'no entry, so that nothing is revoked': (sql) => ({
    ...sql,
    transaction: (work) => sql.transaction((tx) => work(without(tx))),
  }),
}

/** The entry is written under the lock of the row, which is held until the commit. */
function holding(tx: Transaction): Transaction {
  const held = new Set<JournalId>()
  let wanted: JournalId | null = null
  const hold = async (log: JournalId): Promise<void> => {
    if (!held.has(log)) await tx.query('select 1 from revision where organization_id = $1 for update', [log])
    held.add(log)
  }
  return {
    arrived: (log) => {
      wanted = log
    },
    async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
      if (isLockOfPerson(text)) await hold(DIRECTORY)
      if (wanted !== null) await hold(wanted)
      if (isLockOfPerson(text)) return []
      if (!isArrival(text)) return tx.query<Row>(text, values)
      const [log, changes, actor, requestId] = values as [JournalId, string[], string, string]
      await appendJournal(
        tx,
        log,
        changes.map((one) => JSON.parse(one)),
        { actor, requestId },
      )
      return []
    },
  }
}

const without = (tx: Transaction): Transaction => ({
  arrived: () => {},
  query: async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    isArrival(text) ? [] : tx.query<Row>(text, values),
})

const isArrival = (text: string): boolean => text.includes('insert into log_arrival')
const isLockOfPerson = (text: string): boolean => text.includes('for key share')
