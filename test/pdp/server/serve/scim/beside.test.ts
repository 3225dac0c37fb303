/** Directories of companies, and clients that manage people, go on while somebody else's write is under way. */
import { describe, expect, test } from 'vitest'
import type { Transaction } from '../../../../../pdp/engine/store/directory.ts'
import { lockJournal, lockPerson } from '../../../../../pdp/engine/store/journal-lock.ts'
import { DIRECTORY } from '../../../../../pdp/shared/domain/journal.ts'
import type { Answer, Json } from '../harness.ts'
import { at, create, directory, group, name, openWorld, other, patch, send, served, user } from './world.ts'

openWorld()

const waiting = () =>
  served.sql.query("select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
/** Answers of requests that are sent, and answered, while the transaction is open. */
const during = (lock: (tx: Transaction) => Promise<void>, work: () => Promise<void>): Promise<void> =>
  served.sql.transaction(async (tx) => {
    await lock(tx)
    await work()
  })
async function waits(lock: (tx: Transaction) => Promise<void>, sent: () => Promise<Answer>): Promise<Answer> {
  let answer: Promise<Answer> | undefined
  await during(lock, async () => {
    answer = sent()
    await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
  })
  if (answer === undefined) throw new Error('nothing was sent')
  return answer
}
const renamed = (one: Json, text: string, as = directory) =>
  send('PATCH', at('Users', one.id), {
    as,
    body: { Operations: [{ op: 'replace', path: 'displayName', value: text }] },
  })
const foreign = (): Promise<Json> => create('Users', { userName: `other-${name}@x.test` }, other)

describe('while one person is written', () => {
  test('directories create, change, shut out and group other people', async () => {
    const [ann, bob, team] = [await user(), await create('Users', { userName: `bob-${name}@x.test` }), await group()]
    await during(
      (tx) => lockPerson(tx, ann.id),
      async () => {
        expect((await renamed(bob, 'Bob')).status).toBe(200)
        const made = await foreign()
        expect((await renamed(made, 'Cleo', other)).status).toBe(200)
        const members = { op: 'add', path: 'members', value: [{ value: bob.id }] }
        expect((await patch(at('Groups', team.id), members)).status).toBe(200)
        expect((await patch(at('Users', bob.id), { op: 'replace', path: 'active', value: false })).status).toBe(200)
      },
    )
  })

  test('the write of that person waits', async () => {
    const ann = await user()
    expect(
      (
        await waits(
          (tx) => lockPerson(tx, ann.id),
          () => renamed(ann, 'Anna'),
        )
      ).status,
    ).toBe(200)
  })

  test('clients write, block, sign out, add and give roles to other people', async () => {
    const token = await served.manager({ client: 'people-manager' })
    const ann = await user()
    const write = (method: string, path: string, body?: object) =>
      served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
    await during(
      (tx) => lockPerson(tx, ann.id),
      async () => {
        const statuses = [
          await write('PUT', '/v1/users/zoe', { name: 'Zoe' }),
          await write('PATCH', '/v1/users/zoe', { email: 'zoe@x.test' }),
          await write('POST', '/v1/users/zoe/totp'),
          await write('POST', '/v1/users/zoe/sessions:revoke'),
          await write('PUT', '/v1/organizations/acme/members/zoe', { role: 'member', status: 'active' }),
          await write('POST', '/v1/organizations/acme/role-grants', { role: 'auditor', subject: 'user:zoe' }),
          await write('POST', '/v1/users/zoe/block'),
          await write('POST', '/v1/users/zoe/unblock'),
        ].map(({ status }) => status)
        expect(statuses).toEqual([201, 200, 200, 200, 201, 200, 200, 200])
      },
    )
  })

  test.each<[string, (id: string) => [method: string, path: string, body?: object]]>([
    ['its block', (id) => ['POST', `/v1/users/${id}/block`]],
    ['its membership', (id) => ['PUT', `/v1/organizations/acme/members/${id}`, { role: 'admin', status: 'active' }]],
    ['its role', (id) => ['POST', '/v1/organizations/acme/role-grants', { role: 'auditor', subject: `user:${id}` }]],
    ['its end', (id) => ['DELETE', `/v1/users/${id}`]],
    ['the end of its sessions', (id) => ['POST', `/v1/users/${id}/sessions:revoke`]],
  ])('%s waits', async (_, callOf) => {
    const token = await served.manager({ client: 'one-manager' })
    const { id } = await user()
    const [method, path, body] = callOf(id)
    const answer = await waits(
      (tx) => lockPerson(tx, id),
      () => served.send(method, path, { token, ...(body === undefined ? {} : { body }) }),
    )
    expect(answer.status).toBeLessThan(300)
  })
})

test('a directory goes on while a call of another one waits for its own organization', async () => {
  const [ann, far] = [await user(), await foreign()]
  let late: Promise<Answer> | undefined
  await during(
    (tx) => lockJournal(tx, 'beta'),
    async () => {
      late = renamed(far, 'late', other)
      await expect.poll(waiting, { timeout: 20_000, interval: 5 }).toHaveLength(1)
      expect((await renamed(ann, 'Anna')).status).toBe(200)
    },
  )
  expect((await late)?.status).toBe(200)
})

test('nobody writes people while the whole directory is held, as a version before does', async () => {
  const ann = await user()
  expect(
    (
      await waits(
        (tx) => lockJournal(tx, DIRECTORY),
        () => renamed(ann, 'Anna'),
      )
    ).status,
  ).toBe(200)
})

test('of two directories that take one address at once, one is told that it is taken', async () => {
  const sent = [directory, other, directory, other].map((as, n) =>
    send('POST', '/Users', { as, body: { userName: `${n}-${name}`, emails: [{ value: `${name}@same.test` }] } }),
  )
  const statuses = (await Promise.all(sent)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([201, 409, 409, 409])
})
