/** A real issuer of ours and a real sidecar: who is signed out there is signed out here. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signInVerdict } from '../../../pdp/shared/token/sign-in-refusal.ts'
import {
  API,
  CONTEXT,
  type World as IdentityWorld,
  openWorld as openIdentity,
  PASSWORD,
} from '../../pdp/identity/harness.ts'
import { type Browser, createBrowser } from '../../support/browser.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { answerPage } from '../../support/sign-in.ts'
import { locationOf, openWorld, type TestBrowser, type World } from './world.ts'

let identity: IdentityWorld
let world: World
beforeAll(async () => {
  identity = await openIdentity()
  world = await openWorld({
    ...{ issuerUrl: identity.issuer, resource: API },
    script: tuples(['ann viewer doc:1', 'eve viewer doc:1']),
  })
  await identity.putClient({
    id: 'web',
    metadata: {
      redirect_uris: [`${world.origin}/.portcullis/callback`],
      backchannel_logout_uri: `${world.origin}/.portcullis/backchannel-logout`,
      backchannel_logout_session_required: true,
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
      scope: 'openid offline_access',
    },
  })
})
afterAll(async () => {
  await world.close()
  await identity.close()
})
beforeEach(() => identity.sql.query('delete from attempt'))

type Person = { readonly here: TestBrowser; readonly there: Browser }
async function signedIn(name: string): Promise<Person> {
  const [here, there] = [world.browser(), createBrowser(identity.issuer)]
  const sent = locationOf(await here.visit('/docs/1'))
  const back = await there.follow(sent, (page) =>
    answerPage(page, { email: `${name}@x.example`, password: PASSWORD, chosenOrganization: 'acme' }),
  )
  expect(back.origin).toBe(world.origin)
  await here.visit(back.pathname + back.search)
  expect(await isSignedIn(here)).toBe(true)
  return { here, there }
}
const isSignedIn = async (here: TestBrowser): Promise<boolean> => (await here.visit('/docs/1')).status === 200
const uidsOf = async (user: string): Promise<readonly string[]> => {
  const rows = await identity.sql.query<{ uid: string }>(
    "select uid from oidc_record where kind = 'Session' and uid is not null and payload ->> 'accountId' = $1",
    [user],
  )
  return rows.map(({ uid }) => uid)
}

test('a person who signs out at the issuer is signed out here in that browser, and in no other', async () => {
  const [phone, desk] = [await signedIn('ann'), await signedIn('ann')]
  const form = { xsrf: await xsrfOf(phone.there), logout: 'yes' }
  expect((await phone.there.send('/oauth/logout/confirm', { form })).status).toBe(303)
  await expect.poll(() => isSignedIn(phone.here)).toBe(false)
  expect(await isSignedIn(desk.here)).toBe(true)
})

test('an administrator who ends one session, and then all of a person, ends them here', async () => {
  await identity.identity.sessions.revokeUser('ann', CONTEXT)
  const one = await signedIn('ann')
  const [first = ''] = await uidsOf('ann')
  const other = await signedIn('ann')
  const stranger = await signedIn('eve')
  expect(await identity.identity.sessions.revokeSession(first, CONTEXT)).toBe(true)
  await expect.poll(() => isSignedIn(one.here)).toBe(false)
  expect(await isSignedIn(other.here)).toBe(true)
  await identity.identity.sessions.revokeUser('ann', CONTEXT)
  await expect.poll(() => isSignedIn(other.here)).toBe(false)
  expect(await isSignedIn(stranger.here)).toBe(true)
  expect(world.log).toContainEqual(expect.objectContaining({ event: 'signed_out', by: 'issuer' }))
})

test('a person whose account is deleted is signed out here', async () => {
  const { here } = await signedIn('eve')
  expect(await identity.directory.deleteUser('eve', CONTEXT)).toBe(true)
  await expect.poll(() => isSignedIn(here)).toBe(false)
})

test('the issuer says whether it would begin a sign-in, and nobody is signed in by that', async () => {
  const [issuer, redirectUri] = [identity.issuer, `${world.origin}/.portcullis/callback`]
  const ask = async (more: object) =>
    (await signInVerdict({ ...{ issuer, clientId: 'web', redirectUri }, ...more })).kind
  expect(await ask({})).toBe('begins')
  expect(await ask({ clientId: 'wbe' })).toBe('refused')
  expect(await ask({ redirectUri: `${redirectUri}/own` })).toBe('refused')
  expect(await ask({ issuer: `${issuer}/` })).toBe('unknown')
  expect(await ask({ issuer: 'http://127.0.0.1:9' })).toBe('unknown')
})

const xsrfOf = async (there: Browser): Promise<string> =>
  /name="xsrf" value="([^"]+)"/.exec(await (await there.send('/oauth/logout')).text())?.[1] ?? ''
