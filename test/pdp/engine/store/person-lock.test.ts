/** Writes about people: beside each other, in turn for one person, and never beside who holds the whole directory. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { appendArrivals } from '../../../../pdp/engine/store/arrivals.ts'
import type { Transaction } from '../../../../pdp/engine/store/directory.ts'
import { type Lock, lockBeside, lockJournal, lockPerson } from '../../../../pdp/engine/store/journal-lock.ts'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId } from '../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { context } from '../../../support/tuples.ts'

let database: TestDatabase
let node: Awaited<ReturnType<typeof openPostgres>>
/** Another process. */
let beside: typeof node
const PEOPLE = ['ann', 'bob', 'cleo']

beforeEach(async () => {
  database = await openTestDatabase()
  node = await openPostgres({ connectionString: database.connectionString })
  beside = await openPostgres({ connectionString: database.connectionString })
  const directory = postgresDirectory(node.sql)
  for (const id of PEOPLE) await directory.putUser({ id, email: null, emailVerified: false, name: id }, context)
})
afterEach(async () => {
  await Promise.all([node.close(), beside.close()])
  await database.drop()
})

const note = (tx: Transaction, id: string) =>
  appendArrivals(tx, DIRECTORY, [{ kind: 'recovery_code', id, op: 'write' }], context)
const change = (id: string): Promise<void> =>
  node.sql.transaction(async (tx) => {
    await lockPerson(tx, id)
    await note(tx, id)
  })
const waiting = () =>
  node.sql.query("select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
/** The other one begins while the first is under way, and waits for it. */
async function inTurn(
  first: readonly Lock[] | ((tx: Transaction) => Promise<void>),
  second: () => Promise<unknown>,
): Promise<void> {
  let secondEnds: Promise<unknown> = Promise.resolve()
  let isDone = false
  const begin = async (): Promise<void> => {
    secondEnds = second().then(() => {
      isDone = true
    })
    await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
    expect(isDone).toBe(false)
  }
  if (typeof first !== 'function') await node.atomically({ logs: first }, begin)
  else
    await node.sql.transaction(async (tx) => {
      await first(tx)
      await begin()
    })
  await secondEnds
}
const noted = async (log: JournalId = DIRECTORY) =>
  node.sql.query<{ revision: number; id: string }>(
    `select revision, change ->> 'id' as id from change_log where organization_id = $1 and change ->> 'kind' = 'recovery_code'
     order by revision, seq`,
    [log],
  )

test('nobody waits for what another person changes', async () => {
  await node.sql.transaction(async (tx) => {
    await lockPerson(tx, 'ann')
    await note(tx, 'ann')
    await change('bob')
    expect((await noted()).map(({ id }) => id)).toEqual(['bob'])
  })
  expect((await noted()).map(({ id }) => id)).toEqual(['bob', 'ann'])
})

const put = (id: string, email: string | null = null) =>
  postgresDirectory(node.sql).putUser({ id, email, emailVerified: false, name: id }, context)

test('a client writes other people meanwhile', async () => {
  await node.sql.transaction(async (tx) => {
    await lockPerson(tx, 'ann')
    await put('bob')
    await put('dora')
  })
})

test.each<[string, Lock, Lock]>([
  ['different people', { person: 'ann' }, { person: 'bob' }],
  ['a person and the directory beside', { person: 'ann' }, { beside: DIRECTORY }],
  ['a person and one who is not there yet', { person: 'ann' }, { person: 'nobody' }],
  ['the environment beside, twice', { beside: ENVIRONMENT }, { beside: ENVIRONMENT }],
])('units of work go on together with the locks of %s', async (_, one, other) => {
  await node.atomically({ logs: [one] }, async () => {
    await beside.atomically({ logs: [other] }, async () => undefined)
    await node.atomically({ logs: [other] }, async () => undefined)
  })
})

test.each<[string, readonly Lock[], readonly Lock[]]>([
  ['one person', [{ person: 'ann' }], [{ person: 'bob' }, { person: 'ann' }]],
  ['one person who is not there yet', [{ person: 'nobody' }], [{ person: 'nobody' }]],
  ['the directory whole, then a person who is not there yet', [DIRECTORY], [{ person: 'nobody' }]],
  ['a person who is not there yet, then the directory whole', [{ person: 'nobody' }], [DIRECTORY]],
  ['the directory beside, then whole', [{ beside: DIRECTORY }], [DIRECTORY]],
  ['the directory whole, then beside', [DIRECTORY], [{ beside: DIRECTORY }]],
  ['a person, then the directory whole with the person', [{ person: 'ann' }], [{ person: 'ann' }, DIRECTORY]],
  ['the environment beside, then whole', [{ beside: ENVIRONMENT }], [{ beside: ENVIRONMENT }, ENVIRONMENT]],
  ['the environment whole, then beside', [ENVIRONMENT], [{ person: 'bob' }, { beside: ENVIRONMENT }]],
])('units of work of two processes wait for each other with the locks of %s', (_, one, other) =>
  inTurn(one, () => beside.atomically({ logs: other }, async () => undefined)),
)

const besideOf = (log: typeof DIRECTORY | typeof ENVIRONMENT) =>
  node.sql.transaction((tx) => (log === DIRECTORY ? lockPerson(tx, 'bob') : lockBeside(tx, log)))
test.each([DIRECTORY, ENVIRONMENT] as const)(
  'who needs the whole of %s is not overtaken by those who go on beside each other',
  async (log) => {
    const order: string[] = []
    const later: Promise<unknown>[] = []
    await node.sql.transaction(async (tx) => {
      await lockBeside(tx, log)
      later.push(beside.atomically({ logs: [log] }, async () => void order.push('whole')))
      await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
      later.push(besideOf(log).then(() => void order.push('beside')))
      await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(2)
    })
    await Promise.all(later)
    expect(order).toEqual(['whole', 'beside'])
  },
)

test('of two who take one address at once, one gets it, and the other is told', async () => {
  const outcomes = await Promise.allSettled(
    ['d1', 'd2', 'd3', 'd4'].map((id, n) => {
      const directory = postgresDirectory((n % 2 === 0 ? node : beside).sql)
      return directory.putUser(
        { id, email: `${n > 1 ? 'Same' : 'same'}@x.example`, emailVerified: false, name: id },
        context,
      )
    }),
  )
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected'])
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'conflict' })
})

test('of two who create one person at once, the second finds the first', async () => {
  let found: unknown
  let second: Promise<unknown> = Promise.resolve()
  await node.atomically({ logs: [{ person: 'eve' }] }, async ({ sql }) => {
    await postgresDirectory(sql).putUser({ id: 'eve', email: null, emailVerified: false, name: 'first' }, context)
    second = beside.atomically({ logs: [{ person: 'eve' }] }, async (unit) => {
      const directory = postgresDirectory(unit.sql)
      found = await directory.user('eve')
      await directory.putUser({ id: 'eve', email: null, emailVerified: false, name: 'second' }, context)
    })
    await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
  })
  await second
  expect(found).toMatchObject({ name: 'first' })
})

test('of two who change one person that a third creates meanwhile, each keeps the change of the other', async () => {
  const extend = (process: typeof node, text: string) =>
    process.atomically({ logs: [{ person: 'eve' }] }, async ({ sql }) => {
      const directory = postgresDirectory(sql)
      const found = await directory.user('eve')
      const name = `${found?.name ?? 'nobody'} ${text}`
      await directory.putUser({ id: 'eve', email: null, emailVerified: false, name }, context)
    })
  let later: Promise<unknown> = Promise.resolve()
  await node.atomically({ logs: [{ person: 'eve' }] }, async ({ sql }) => {
    await postgresDirectory(sql).putUser({ id: 'eve', email: null, emailVerified: false, name: 'eve' }, context)
    const second = extend(beside, 'b')
    await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
    // Not in the queue of this process, so that it waits in the database.
    const third = beside.sql.transaction(async (tx) => {
      await lockPerson(tx, 'eve')
      await tx.query("update user_account set name = name || ' c' where user_id = 'eve'")
    })
    later = Promise.all([second, third])
    await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(2)
  })
  await later
  expect(await postgresDirectory(node.sql).user('eve')).toMatchObject({ name: 'eve b c' })
})

test('two changes of one person come one after the other', () =>
  inTurn(
    (tx) => lockPerson(tx, 'ann'),
    () => change('ann'),
  ))

/** As a version before does it, which knows no advisory lock. */
const lockRow = async (tx: Transaction, log: JournalId): Promise<void> => {
  await tx.query('select 1 from revision where organization_id = $1 for update', [log])
}
const besideEnvironment = () => beside.atomically({ logs: [{ beside: ENVIRONMENT }] }, async () => undefined)
test.each<[string, JournalId, () => Promise<unknown>]>([
  ['a change of a person', DIRECTORY, () => change('ann')],
  [
    'one who needs the whole directory',
    DIRECTORY,
    () => beside.atomically({ logs: [DIRECTORY] }, async () => undefined),
  ],
  ['one beside others in the environment', ENVIRONMENT, besideEnvironment],
  [
    'one who needs the whole environment',
    ENVIRONMENT,
    () => beside.atomically({ logs: [ENVIRONMENT] }, async () => undefined),
  ],
])('%s waits for a version before that holds the whole, and it for them', async (_, log, second) => {
  await inTurn((tx) => lockRow(tx, log), second)
  await inTurn([log], () => beside.sql.transaction((tx) => lockRow(tx, log)))
  await inTurn([{ beside: log === DIRECTORY ? DIRECTORY : ENVIRONMENT }], () =>
    beside.sql.transaction((tx) => lockRow(tx, log)),
  )
})

test.each<[string, () => Promise<unknown>]>([
  ['the lock of the whole directory', () => node.sql.transaction((tx) => lockJournal(tx, DIRECTORY))],
  ['a unit of work', () => node.atomically({ logs: [DIRECTORY] }, async () => undefined)],
  ['a write about the person by a client', () => put('ann')],
  [
    'a write about a client',
    () => postgresDirectory(node.sql).putClient({ id: 'web', app: null, organization: null, metadata: {} }, context),
  ],
  ['the deletion of the person', () => postgresDirectory(node.sql).deleteUser('ann', context)],
])('%s waits for a change of a person', (_, second) => inTurn((tx) => lockPerson(tx, 'ann'), second))

test('a person who was deleted meanwhile has nothing to lock, and the change goes on to find nobody', async () => {
  await inTurn(
    async (tx) => {
      await lockJournal(tx, DIRECTORY)
      await tx.query("delete from user_account where user_id = 'ann'")
    },
    () =>
      node.sql.transaction(async (tx) => {
        await lockPerson(tx, 'ann')
        expect(await tx.query("select 1 from user_account where user_id = 'ann'")).toEqual([])
      }),
  )
})

test('changes of people and writes of clients at once deadlock nowhere, and the log has no gap', async () => {
  const directory = postgresDirectory(node.sql)
  const { undone: before } = await undoneCount()
  const left = Array.from({ length: 60 }, (_, n) => n).values()
  const callers = Array.from({ length: 6 }, async () => {
    for (const n of left) {
      const id = PEOPLE[n % 3] ?? ''
      if (n % 6 === 5) await directory.putUser({ id, email: null, emailVerified: false, name: `${n}` }, context)
      else await change(id)
    }
  })
  await Promise.all(callers)
  expect(await noted()).toHaveLength(50)
  const revisions = await node.sql.query<{ revision: number }>(
    'select distinct revision from change_log where organization_id = $1 order by 1',
    [DIRECTORY],
  )
  expect(revisions.map(({ revision }) => revision)).toEqual(revisions.map((_, n) => n + 1))
  const [newest] = await node.sql.query<{ revision: number }>(
    'select revision from revision where organization_id = $1',
    [DIRECTORY],
  )
  expect(newest?.revision).toBe(revisions.length)
  expect((await undoneCount()).undone).toBe(before)
})

async function undoneCount(): Promise<{ readonly undone: number }> {
  const [row] = await node.sql.query<{ undone: number }>(
    'select deadlocks as undone from pg_stat_database where datname = current_database()',
  )
  return row ?? { undone: 0 }
}
