/** Rights that end and values that change while somebody looks at the console. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../console/own-world.ts'
import { get, post, signedInTo } from './visitor.ts'

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

test('a button of an entitlement changes nothing that was set meanwhile', async () => {
  const path = '/v1/organizations/acme/entitlements/feature.seats'
  await world.manage('PUT', path, { value: { enabled: true, seats: 5 } })
  const root = await signedInTo(world, 'root')
  const page = '/console/organization?org=acme'
  const { text } = await get(root, page)
  const [form = ''] = Array.from(text.matchAll(/<form(?:(?!<\/form>).)*feature\.seats.*?<\/form>/gs), ([one]) => one)
  const fields = Array.from(form.matchAll(/name="([^"]+)" value="([^"]*)"/g), ([, key = '', value = '']) => [
    key,
    value.replaceAll('&quot;', '"'),
  ])
  await world.manage('PUT', path, { value: { enabled: true, seats: 9 }, enforcement: 'Claims' })
  expect((await post(root, page, Object.fromEntries(fields))).status).toBe(303)
  expect(await world.manage('GET', path)).toMatchObject({ value: { enabled: false, seats: 9 } })
})
