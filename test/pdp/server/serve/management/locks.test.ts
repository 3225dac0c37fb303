/** Whoever may write something may still do so when it is written: the caller is judged under the locks of the write. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Served, seedAcme, serve } from '../harness.ts'
import { seedWrites, sendWrite, WRITES, type WriteCall } from './writes.ts'

const TREE_STANDS_STILL: readonly string[] = [
  'POST /v1/organizations/{org}/role-grants',
  'POST /v1/organizations/{org}/invitations',
  'POST /v1/organizations/{org}/members/{user}/sessions:revoke',
]

let served: Served
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  await seedWrites(served)
})
afterAll(() => served.close())

/** Of all logs, and how many events there are: readers number those at any time. */
const revisions = async () =>
  served.sql.query(`
    select organization_id, revision from revision where organization_id <> '#events'
    union all select 'events', (select count(*) from outbox) + (select count(*) from outbox_arrival) order by 1`)

/** Runs `meanwhile` when the request waits for the log, after all that it does before. */
async function whileWaiting(call: WriteCall, token: string, meanwhile: () => Promise<unknown>): Promise<Response> {
  let sent: Promise<Response> | undefined
  await served.sql.transaction(async (tx) => {
    await tx.query('select 1 from revision where organization_id = $1 for update', [call.log])
    sent = sendWrite(served, call, token)
    await expect
      .poll(
        async () =>
          (
            await served.sql.query(
              `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
            )
          ).length,
        { timeout: 20_000, interval: 5 },
      )
      .toBe(1)
    await meanwhile()
  })
  if (sent === undefined) throw new Error('the request was not sent')
  return sent
}

describe('a write', () => {
  test('is in the table below, each of them', async () => {
    const { body } = await served.send('GET', '/openapi.json')
    // The calls of OAuth have locks of their own. A poll reads, and takes note of what the receiver has.
    const own = [' /ssf/poll/']
    const reads = ['list-resources', 'list-subjects', '/compare', ' /oauth/', ' /access/v1/', ...own]
    const calls = Object.entries<object>(body.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const writes = calls.filter((call) => !call.startsWith('GET') && !reads.some((read) => call.includes(read)))
    expect(WRITES.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(writes.toSorted())
  })

  test.each(WRITES)('$method $path does not happen when the caller lost the scope while it waited', async (call) => {
    const client = `former-${WRITES.indexOf(call)}`
    const token = await served.manager({ client })
    const before = await revisions()
    const answer = await whileWaiting(call, token, () =>
      served.sql.query(`update client set metadata = metadata - 'scope' where client_id = $1`, [client]),
    )
    const text = await answer.text()
    // A stream has begun to be answered, or not.
    expect([answer.status, text]).toEqual([403, expect.stringContaining('scope_insufficient')])
    expect(await revisions()).toEqual(before)
  })

  test('does not happen when the token died while it waited', async () => {
    const [call] = WRITES
    if (call === undefined) throw new Error('there are no writes')
    const token = await served.manager({ client: 'revoked' })
    const before = await revisions()
    const answer = await whileWaiting(call, token, async () => served.setState(token, { active: false }))
    expect(answer.status).toBe(401)
    expect(await revisions()).toEqual(before)
  })

  // While a role is granted, also by an invitation, or a member's sessions end, the tree stands still.
  const within = WRITES.filter(
    ({ method, path, log }) =>
      log === 'acme' && path.startsWith('/v1/organizations/{org}/') && !TREE_STANDS_STILL.includes(`${method} ${path}`),
  )
  test.each(within)(
    '$method $path does not happen when the organization was moved away while it waited',
    async (call) => {
      const root = `root-${WRITES.indexOf(call)}`
      const put = (id: string, parent: string | null) =>
        served.sql.query(
          `insert into organization (organization_id, name, parent_id) values ($1, $1, $2)
         on conflict (organization_id) do update set parent_id = excluded.parent_id`,
          [id, parent],
        )
      const changed = () =>
        served.sql.query(
          `update revision set revision = revision + 1, write_id = write_id + 1 where organization_id = '#environment'`,
        )
      await put(root, null)
      await put('acme', root)
      await changed()
      await served.sql.query('insert into revision (organization_id, revision, write_id) values ($1, 0, 0)', [root])
      const token = await served.manager({ client: `${root}-admin`, organization: root })
      const answer = await whileWaiting(call, token, async () => {
        await put('acme', null)
        await changed()
      })
      expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('permission_denied')])
    },
  )
})
