/** Sessions of browsers on public routes that pass an identity, and on routes where guests may ask. */
import { afterAll, expect, test } from 'vitest'
import { firstValue } from '../../../sidecar/http/fields.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { MINUTE, movableWorlds, signedIn } from './steps.ts'
import { cookieLines, NAVIGATE } from './world.ts'

const worlds = movableWorlds()
afterAll(() => worlds.close())
const cookieOf = ({ jar }: { readonly jar: ReadonlyMap<string, string> }): string =>
  `Cookie: ${[...jar].map(([name, value]) => `${name}=${value}`).join('; ')}`
const ROUTES = `GET /docs/{id}: {check: "viewer doc:{id}", guests: true}
GET /feed: {public: with_identity}
POST /feed: {public: with_identity}`

test('a session names its owner until its token ends, and then nobody is sent anywhere and nothing is renewed', async () => {
  const world = await worlds.open({
    routes: `${ROUTES}\nGET /own: signed_in`,
    extra: 'guest_organization: acme',
    script: tuples(['alice viewer doc:1', '* viewer doc:open']),
  })
  const subject = () => firstValue(world.upstream.reached.at(-1)?.rawHeaders ?? [], 'x-auth-subject')
  const stranger = world.browser()
  expect([(await stranger.visit('/feed', NAVIGATE)).status, subject()]).toEqual([200, null])
  expect([(await stranger.visit('/docs/open', NAVIGATE)).status, subject()]).toEqual([200, null])
  const sent = await stranger.visit('/docs/1', NAVIGATE)
  expect([sent.status, field(sent, 'location')]).toEqual([302, expect.anything()])
  const person = await signedIn(world)
  expect([(await person.visit('/feed', NAVIGATE)).status, subject()]).toEqual([200, 'alice'])
  // A form of another site brings the session's cookie.
  const form = [...NAVIGATE, 'Sec-Fetch-Site: cross-site', 'Origin: https://evil.test']
  expect([
    (await person.visit('/feed', form)).status,
    (await world.send('POST /feed', [...form, cookieOf(person)])).status,
    subject(),
  ]).toEqual([200, 200, null])
  const renewals = (await world.steps())['0 renewed done'] ?? 0
  worlds.clock.aheadMs = 20 * MINUTE
  const later = await person.visit('/feed', NAVIGATE)
  expect([later.status, subject(), cookieLines(later)]).toEqual([200, null, []])
  expect((await world.steps())['0 renewed done'] ?? 0).toBe(renewals)
  expect(world.log).toContainEqual(
    expect.objectContaining({ route: 'GET /feed', detail: expect.stringContaining('without identity') }),
  )
})
