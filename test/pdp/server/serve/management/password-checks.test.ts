/** Passwords that are put for people whose hashes another system made: few are checked at once, however many come. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, type Served, serve } from '../harness.ts'

const PASSWORD = 'pässword 1'
const BCRYPT = '$2b$04$fmFt4CKbJ1gUfLZWhqQwr.RFEJeRjmCMaQtbS/L7MrxVS8PaDfOvS'
const AT_ONCE = 8
/** The places of one client, two that are checked, and those who wait. */
const [PLACES, RUNNING, WAITING] = [64, 2, 64]

let served: Served
beforeAll(async () => {
  served = await serve()
})
afterAll(() => served.close())

async function imported(ids: readonly string[], passwordHash: string): Promise<void> {
  const people = ids.map((id) => ({ id, email: `${id}@x.test`, emailVerified: false, name: null, passwordHash }))
  expect(await served.directory.importUsers(people, { context: CONTEXT, dryRun: false })).toEqual([])
}
const put = (token: string, id: string) =>
  served.send('PUT', `/v1/users/${id}`, { token, body: { email: `${id}@x.test`, password: PASSWORD } })
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

test('two threads check at once, and every password is checked', async () => {
  const token = await served.manager()
  const ids = names('bcrypt', AT_ONCE)
  await imported(ids, BCRYPT)
  let [running, most, all] = [0, 0, 0]
  const count = (worker: { once(event: 'exit', listener: () => void): unknown }): void => {
    running += 1
    all += 1
    most = Math.max(most, running)
    worker.once('exit', () => {
      running -= 1
    })
  }
  process.on('worker', count)
  const answers = await Promise.all(ids.map((id) => put(token, id)))
  process.off('worker', count)
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
  expect([all, most]).toEqual([AT_ONCE, 2])
  for (const id of ids) expect((await served.directory.userByEmail(`${id}@x.test`))?.passwordHash).toBe(BCRYPT)
})

test('what is too much is refused, and the rest is answered', async () => {
  const [one, another] = [await served.manager({ client: 'one' }), await served.manager({ client: 'another' })]
  const ids = names('cheap', 5)
  await imported(ids, cheapHash(PASSWORD))
  const tokens = [...Array.from({ length: PLACES }, () => one), ...ids.map(() => another)]
  const tooMany = tokens.length - RUNNING - WAITING
  const statuses: number[] = []
  const refused = Promise.withResolvers<void>()
  const sends = await served.sql.transaction(async (tx) => {
    // Nobody is read meanwhile, so that those whose turn it is keep it.
    await tx.query('lock table user_account in access exclusive mode')
    const sent = tokens.map(async (token, i) => {
      const { status } = await put(token, ids[i % ids.length] ?? '')
      statuses.push(status)
      if (statuses.filter((one) => one === 429).length === tooMany) refused.resolve()
    })
    await refused.promise
    return { sent }
  })
  await Promise.all(sends.sent)
  expect(statuses.filter((status) => status === 429)).toHaveLength(tooMany)
  expect(statuses.filter((status) => status === 200)).toHaveLength(tokens.length - tooMany)
})
