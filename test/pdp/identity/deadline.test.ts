/** The identity service answers within its deadline also when the database does not. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, SECRET, type World } from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ deadlineMs: 300 })
})
afterAll(() => world.close())

/** While somebody holds the table of clients, which every request for a token reads. */
async function whileFrozen(run: () => Promise<void>): Promise<void> {
  await world.sql.transaction(async (at) => {
    await at.query('lock table client in access exclusive mode')
    await run()
  })
}

test.each([
  ['the token endpoint', '/oauth/token', { grant_type: 'client_credentials' }],
  ['introspection', '/oauth/introspect', { token: 'x' }],
  ['revocation', '/oauth/revoke', { token: 'x' }],
])('%s says temporarily_unavailable, and when to try again', async (_name, path, form) => {
  const headers = { authorization: `Basic ${btoa(`machine:${SECRET}`)}` }
  await whileFrozen(async () => {
    const answer = await fetch(`${world.issuer}${path}`, { method: 'POST', headers, body: new URLSearchParams(form) })
    const said = await answer.json()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(said).toEqual({
      error: 'temporarily_unavailable',
      error_description: 'the database of this server does not answer; try again later',
    })
  })
})

test('a page says so in words', async () => {
  await whileFrozen(async () => {
    const answer = await fetch(`${world.issuer}/oauth/authorize?client_id=nobody&response_type=code`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([503, expect.stringContaining('text/html')])
  })
})
