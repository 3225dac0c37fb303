/** The page of a person shows which clients act for them, and ends one. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { csrfIn, get, post, signedInTo } from './visitor.ts'

const PAGE = '/console/people?org=acme&user=anna'
const RELATIONSHIPS = '/v1/organizations/acme/relationships'
let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
  const condition = { name: 'scopes', context: { scopes: ['docs:read'] } }
  const link = { object: 'service:bot', relation: 'acts_for', subject: 'user:anna', condition }
  await world.manage('POST', RELATIONSHIPS, { write: [link] })
})
afterAll(() => world?.close())

test('a client that acts for a person is shown with its scopes, and ended by a form of the page alone', async () => {
  const browser = await signedInTo(world, 'root')
  const shown = await get(browser, PAGE)
  expect(shown.text).toMatch(/Clients that act for this person in [\s\S]*bot[\s\S]*docs:read/)
  expect((await post(browser, PAGE, { delegation: 'bot' })).status).toBe(403)
  expect((await post(browser, PAGE, { csrf: csrfIn(shown.text), delegation: 'bot' })).status).toBe(303)
  const after = await get(browser, `${PAGE}&done=delegation`)
  expect(after.text).toContain('The delegation was ended')
  expect(after.text).toContain('No client acts for this person here')
})

test('who may not write relationships ends none', async () => {
  await world.manage('POST', RELATIONSHIPS, { write: ['service:bot#acts_for@user:anna'] })
  const role = { app: 'portcullis', role: 'auditor', subject: 'user:bob' }
  await world.manage('POST', '/v1/organizations/acme/role-grants', role)
  const browser = await signedInTo(world, 'bob')
  const csrf = csrfIn((await get(browser, '/console')).text)
  expect((await post(browser, PAGE, { csrf, delegation: 'bot' })).status).toBe(403)
})
