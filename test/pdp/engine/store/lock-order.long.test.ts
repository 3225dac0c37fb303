/** Writers that lock several journals and people take them in one order: PostgreSQL never has to undo one for a deadlock. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { goOnDeparting } from '../../../../pdp/engine/store/postgres/people/departures.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { effort } from '../../../support/effort.ts'
import { context, given, member } from '../../../support/tuples.ts'

const ROUNDS = effort({ short: 30, long: 150 })
const PEOPLE = ['ann', 'bob'] as const
const ORGANIZATIONS = ['acme', 'bolt', 'core'] as const

let database: TestDatabase
let one: Awaited<ReturnType<typeof openPostgres>>
/** Another process. */
let other: typeof one
beforeAll(async () => {
  database = await openTestDatabase()
  // A deadlock lasts longer than a transaction may, so that it is an error and no repetition.
  const url = new URL(database.connectionString)
  url.searchParams.set('options', '-c deadlock_timeout=30s')
  one = await openPostgres({ connectionString: url.href })
  other = await openPostgres({ connectionString: url.href })
  for (const id of PEOPLE) await putUser(one, id)
  for (const id of ORGANIZATIONS) await given(one.store, id)
  await createPdp({ store: one.store }).putManifest('memos', { roles: { clerk: { name: 'Clerk', permissions: [] } } })
})
afterAll(async () => {
  await Promise.all([one.close(), other.close()])
  await database.drop()
})

const putUser = ({ sql }: Pick<typeof one, 'sql'>, id: string) =>
  postgresDirectory(sql).putUser({ id, email: null, emailVerified: false, name: `${Math.random()}` }, context)
const at = <T>(list: readonly [T, ...T[]], n: number): T => list[n % list.length] ?? list[0]
const tier = (n: number) => (n % 2 === 0 ? 'admin' : 'viewer')

type Writer = (process: typeof one, n: number) => Promise<unknown>
const embedded: Writer = ({ store }, n) =>
  createPdp({ store }).putMember(at(ORGANIZATIONS, n), at(PEOPLE, n >> 1), { role: tier(n >> 2) })
const embeddedGrant: Writer = async ({ store }, n) => {
  const pdp = createPdp({ store })
  const grant = { app: 'memos', role: 'clerk', subject: `user:${at(PEOPLE, n)}` }
  const organization = at(ORGANIZATIONS, n >> 1)
  return n % 4 < 2 ? pdp.grantRole(organization, grant) : pdp.revokeRole(organization, grant)
}
const directoryOfCompany: Writer = (process, n) => {
  const [user, organization] = [at(PEOPLE, n), at(ORGANIZATIONS, n >> 1)]
  return process.atomically({ logs: [organization, { person: user }] }, async (unit) => {
    await putUser(unit, user)
    await unit.store.write(organization, [member(user, tier(n))], { context })
  })
}
const roleGrant: Writer = (process, n) => {
  const logs = [at(ORGANIZATIONS, n), { beside: ENVIRONMENT }, { person: at(PEOPLE, n >> 1) }] as const
  return process.atomically({ logs }, (unit) => putUser(unit, at(PEOPLE, n >> 1)))
}
const offboarding: Writer = (process, n) => {
  const user = at(PEOPLE, n)
  return process.atomically({ logs: [...ORGANIZATIONS, TOKENS, ENVIRONMENT, DIRECTORY] }, async (unit) => {
    for (const organization of ORGANIZATIONS)
      await unit.store.write(organization, [member(user, 'member')], { context })
    await putUser(unit, user)
  })
}
/** Has the whole directory and one organization, and then locks those of the person. */
const deletion: Writer = (process, n) =>
  process.atomically({ logs: [DIRECTORY, TOKENS, 'core'] }, async ({ sql }) => {
    const id = `gone-${process === one ? 1 : 2}-${n}`
    const directory = postgresDirectory(sql)
    await directory.putUser({ id, email: null, emailVerified: false, name: null }, context)
    await sql.query(
      `insert into membership (organization_id, user_id, role, status) select o, $1, 'member', 'active' from unnest($2::text[]) o`,
      [id, ORGANIZATIONS],
    )
    await directory.deleteUser(id, context)
  })
/** A piece of a deletion that another process began. */
const departure: Writer = ({ sql }, n) => {
  const user = `left-${n}`
  return sql
    .query(`insert into principal (id, kind) values ($1, 'user') on conflict do nothing`, [user])
    .then(() =>
      sql.query(
        `insert into membership (organization_id, user_id, role, status) select o, $1, 'member', 'active' from unnest($2::text[]) o
         on conflict do nothing`,
        [user, ORGANIZATIONS],
      ),
    )
    .then(() => sql.transaction((tx) => goOnDeparting(tx, { user, lookedTo: '', context })))
}

test.each<[string, Writer, Writer]>([
  ['an embedded member, and a directory that writes the person', embedded, directoryOfCompany],
  ['an embedded member, and one who takes all away', embedded, offboarding],
  ['an embedded role grant, and one of the management API', embeddedGrant, roleGrant],
  ['a directory that writes the person, and one who takes all away', directoryOfCompany, offboarding],
  ['a deletion, and pieces of earlier ones', deletion, departure],
  ['an embedded member, and a deletion', embedded, deletion],
])('%s', async (_, first, second) => {
  const play = async (process: typeof one, writer: Writer): Promise<void> => {
    for (let n = 0; n < ROUNDS; n++) await writer(process, n)
  }
  await expect(Promise.all([play(one, first), play(other, second)])).resolves.toHaveLength(2)
})
