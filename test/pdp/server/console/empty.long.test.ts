/** A world without organizations, as it is after the first start: every screen says what to do, and none fails. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import { SCREENS } from '../../../console/screens.ts'
import { get, signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
  await world.manage('DELETE', '/v1/clients/failing')
  for (const id of ['acme~eu', 'acme', 'globex']) await world.manage('DELETE', `/v1/organizations/${id}`)
})
afterAll(() => world?.close())

/** Without the preview of a change, which is about an organization. */
const PATHS = [...new Set(Object.values(SCREENS).map((path) => path.split('?', 1)[0] ?? ''))].filter(
  (path) => path !== '/console/change',
)

test('every screen is there for who may look everywhere', async () => {
  const root = await signedInTo(world, 'root')
  for (const path of PATHS) {
    const { status, text } = await get(root, path)
    expect({ path, status }).toEqual({ path, status: 200 })
    expect(text).toMatch(/<h1>/)
  }
  for (const path of ['ask', 'who', 'what', 'relationships', 'organization', 'invitations'])
    expect((await get(root, `/console/${path}`)).text).toContain('portcullis org put acme')
})

test('nobody else is shown more than before', async () => {
  const bob = await signedInTo(world, 'bob')
  for (const path of PATHS.filter((one) => one !== '/console' && !one.startsWith('/console/help')))
    expect({ path, status: (await get(bob, path)).status }).toEqual({ path, status: 403 })
})

test.each(Object.values(SCREENS))('an organization that is gone, at %s, is no fault', async (path) => {
  const before = world.logged.length
  await get(await signedInTo(world, 'root'), path)
  expect(world.logged.slice(before).filter((line) => line.includes('"request_failed"'))).toEqual([])
})
