/** Rights that end while somebody looks at the console. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())

test('no event comes after its rights have ended', async () => {
  const grant = { app: 'portcullis', role: 'auditor', subject: 'user:bob' }
  const { id } = await world.manage('POST', '/v1/organizations/acme/role-grants', grant)
  const browser = await signedInTo(world, 'bob')
  const response = await browser.send('/console/decisions/tail?org=acme')
  await world.manage('DELETE', `/v1/organizations/acme/role-grants/${id}`)
  await world.ask({ requestId: 'after-the-rights', relation: 'viewer', resource: 'doc:after-the-rights' })
  expect(await response.text()).not.toContain('after-the-rights')
})
