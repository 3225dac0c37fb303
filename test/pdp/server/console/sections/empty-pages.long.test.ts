/** Lists whose first candidates all turn out to have nothing: people whom nobody knows hold relationships before those who exist. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CANDIDATES_PER_PAGE_MAX } from '../../../../../pdp/engine/decision-point/list-pages.ts'
import { type OwnWorld, startOwnWorld } from '../../../../console/own-world.ts'
import { get, signedInTo } from '../visitor.ts'

const UNKNOWN = CANDIDATES_PER_PAGE_MAX
let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
  const write = Array.from({ length: UNKNOWN }, (_, i) => `group:early#member@user:a${i}`)
  for (let at = 0; at < UNKNOWN; at += 500)
    await world.manage('POST', '/v1/organizations/acme/relationships', { write: write.slice(at, at + 500) })
  await world.manage('POST', '/v1/organizations/acme/relationships', {
    write: ['group:early#member@user:bob', 'doc:early#viewer@group:early#member'],
  })
})
afterAll(() => world?.close())

test('who has access is shown on the first page that is read', async () => {
  const root = await signedInTo(world, 'root')
  const { text: list } = await get(root, '/console/who?org=acme&resource=doc%3Aearly&relation=viewer&type=user')
  expect(list).toContain('<bdi class="name">user:bob</bdi>')
  const { text: overview } = await get(root, '/console/who?org=acme&resource=doc%3Aearly')
  expect(overview).toContain('<bdi class="name">user:bob</bdi>')
  expect(overview).not.toContain('at least 0')
})
