/** What management writes cost in statements, counted at the server: most are round trips under the locks of the write. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { calls, openStatementCounter, type StatementCounter } from '../../../support/statements.ts'
import { type Served, seedAcme, serve } from '../serve/harness.ts'

let served: Served
let counter: StatementCounter
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager({ client: 'directory', scopes: ['directory:write', 'roles:write'] })
  const url = new URL(inject('postgresUrl'))
  const [database] = await served.sql.query<{ name: string }>('select current_database() as name')
  url.pathname = `/${database?.name}`
  counter = await openStatementCounter(url.href)
})
afterAll(async () => {
  await counter.close()
  await served.close()
})

/** Events get their numbers and are sent beside the write, whenever their turn comes. */
const OF_EVENTS = /^\s*update revision set revision = revision\b|\bas newest\b|\bfrom outbox\b/

async function statementsOf(method: string, path: string, body: object): Promise<number> {
  let status = 0
  const counted = await counter.during(async () => {
    status = (await served.send(method, path, { token, body })).status
  })
  expect([200, 201]).toContain(status)
  return calls(counted.filter(({ text }) => !OF_EVENTS.test(text)))
}

// Without what the token itself costs, for which there is a stand-in here.
test('a member is written by few statements, whether there was one before or not', async () => {
  const path = '/v1/organizations/acme/members/ann'
  expect([200, 201]).toContain((await served.send('PUT', '/v1/users/ann', { token, body: {} })).status)
  for (const role of ['admin', 'member', 'owner', 'owner'])
    expect(await statementsOf('PUT', path, { role, status: 'active' })).toBeLessThan(19)
})

test('the tag of a written member is that of the stored one', async () => {
  const path = '/v1/organizations/acme/members/ann'
  const body = { role: 'viewer', status: 'active' }
  const written = await served.send('PUT', path, { token, body })
  const stored = await served.send('GET', path, { token })
  expect(written.headers.get('etag')).toBe(stored.headers.get('etag'))
})
