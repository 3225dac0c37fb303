/** The list of denials: what a tenant sees of it, and questions that it refuses. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatPageToken } from '../../../../../pdp/shared/domain/page-token.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager({ client: 'acme-admin', organization: 'acme' })
  for (const organization of ['acme', 'acme', 'globex'])
    await served.sql.query(
      `insert into denied_decision (denied_at, organization_id, subject, relation, resource, reason, route, request_id, decision_id)
       values (now(), $1, 'user:bob', 'viewer', 'doc:1', 'none', '', '', 'd-1')`,
      [organization],
    )
})
afterAll(() => served.close())
const list = (query: string) => served.send('GET', `/v1/organizations/acme/decisions?${query}`, { token })

test('a page goes on where the last one ended, within the organization', async () => {
  const first = await list('page_size=1')
  expect([first.status, first.body.items]).toMatchObject([
    200,
    [{ subject: 'user:bob', route: null, request_id: null }],
  ])
  const second = await list(`page_size=1&page_token=${first.body.next_page_token}`)
  expect([second.body.items.length, second.body.next_page_token]).toEqual([1, null])
})

const forged = formatPageToken(['decisions', 'acme', '{}'], { after: "1' or 1=1", revision: null })
test.each([
  'from=yesterday',
  'from=2026-12-31T23:59:60Z',
  'to=2026-02-31',
  'request=',
  'route=%00',
  'page_size=0',
  'page_token=x',
  `page_token=${encodeURIComponent(forged)}`,
  'nobody=1',
])('%s is a mistake of the request', async (query) => {
  expect((await list(query)).status).toBe(400)
})

test('another organization is not seen', async () => {
  expect((await served.send('GET', '/v1/organizations/globex/decisions', { token })).status).toBe(403)
})
