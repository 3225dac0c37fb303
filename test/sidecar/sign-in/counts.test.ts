/** What an operator reads about sign-ins: each step with its issuer and its end, once, and nothing that a client can choose. */
import { afterAll, expect, test } from 'vitest'
import type { Behaviour } from './scripted-issuer.ts'
import { callbackOf, MINUTE, movableWorlds, notify, signedIn, signOut, statusOf } from './steps.ts'
import { locationOf } from './world.ts'

const worlds = movableWorlds()
afterAll(worlds.close)

test('a sign-in, renewals of its tokens by many requests at once, and signing out count once each', async () => {
  const own = await worlds.open()
  const browser = await signedIn(own)
  expect(await own.steps()).toEqual({ '0 sent done': 1, '0 returned done': 1 })
  worlds.clock.aheadMs += 6 * MINUTE
  await Promise.all(Array.from({ length: 5 }, () => statusOf(browser)))
  expect(await own.steps()).toMatchObject({ '0 renewed done': 1 })
  await signOut(browser, own)
  await signOut(browser, own)
  expect(await own.steps()).toEqual({
    '0 sent done': 1,
    '0 returned done': 1,
    '0 renewed done': 1,
    '0 signed_out by_person': 1,
  })
})

test.each<[string, Partial<Behaviour>, string]>([
  ['that the person cancelled', { error: 'access_denied' }, 'cancelled'],
  ['that the issuer refused', { error: 'server_error' }, 'issuer_refused'],
  ['of an issuer that fails', { tokenStatus: 500 }, 'issuer_unavailable'],
  ['with an ID token of another sign-in', { idClaims: { nonce: 'another' } }, 'issuer_refused'],
  ['with an access token for another service', { accessClaims: { aud: 'https://other.test' } }, 'tokens_refused'],
  ['with tokens too large for cookies', { padding: 9_000 }, 'too_large'],
])('a sign-in %s counts by its cause', async (_, behave, outcome) => {
  const own = await worlds.open()
  Object.assign(own.issuers[0].behave, behave)
  await own.browser().open('/docs/1')
  expect(await own.steps()).toEqual({ '0 sent done': 1, [`0 returned ${outcome}`]: 1 })
})

test('each line about signing in and out names its request', async () => {
  const own = await worlds.open()
  await signOut(await signedIn(own), own)
  await notify(own, await own.issuers[0].signLogout({ sid: 's1' }))
  await notify(own, await own.issuers[0].signLogout({ sid: 's1', aud: 'other' }))
  const lines = own.log.filter((line) => 'event' in line && /sign|logout/.test(String(line.event)))
  const events = ['signed_in', 'signed_out', 'signed_out', 'signed_out_here_only', 'logout_token_refused']
  expect(lines).toMatchObject(events.map((event) => ({ event, request_id: expect.stringMatching(/./) })))
})

test.each<[string, Partial<Behaviour>]>([
  ['is refused', { error: 'server_error' }],
  ['finds an issuer that fails', { tokenStatus: 500 }],
])('a sign-in that %s is logged with the ID of the request', async (_, behave) => {
  const own = await worlds.open()
  Object.assign(own.issuers[0].behave, behave)
  await own.browser().open('/docs/1')
  expect(own.log).toContainEqual(expect.objectContaining({ event: 'sign_in_failed', request_id: expect.any(String) }))
})

test('a stronger sign-in that does not come counts as too weak', async () => {
  const own = await worlds.open()
  own.issuers[0].behave.idClaims = { acr: 'pwd' }
  await (await signedIn(own)).open('/strong')
  expect(await own.steps()).toMatchObject({ '0 returned too_weak': 1 })
})

test('ways back that nobody began here have no issuer, whatever they say', async () => {
  const own = await worlds.open({ providers: 2 })
  const callback = await callbackOf(own, own.browser(), '/docs/1', 1)
  await own.browser().visit(callback)
  for (const state of ['evil', 'state=%22%7D', own.issuers[0].url])
    await own.browser().visit(`/.portcullis/callback/idp0?code=x&state=${state}&iss=https://evil.test`)
  expect(await own.steps()).toEqual({ '1 sent done': 1, '1 returned stranger': 1, '-1 returned foreign': 3 })
})

test('an issuer that does not answer counts when nobody can be sent there', async () => {
  const own = await worlds.open()
  await own.issuers[0].close()
  own.issuers[0].close = async () => undefined
  expect(locationOf(await own.browser().visit('/docs/1'))).toBe('')
  expect(await own.steps()).toEqual({ '0 sent issuer_unavailable': 1 })
  expect(own.log).toContainEqual(expect.objectContaining({ event: 'sign_in_failed', request_id: expect.any(String) }))
})

test('renewals count by what the issuer says', async () => {
  const own = await worlds.open()
  const browser = await signedIn(own)
  own.issuers[0].behave.tokenStatus = 500
  worlds.clock.aheadMs += 6 * MINUTE
  expect(await statusOf(browser)).toBe(503)
  expect(await own.steps()).toMatchObject({ '0 renewed failed': 1 })
})

test('back-channel logouts count, and those that are refused', async () => {
  const own = await worlds.open()
  await signedIn(own)
  await notify(own, await own.issuers[0].signLogout({ sid: 's1' }))
  await notify(own, await own.issuers[0].signLogout({ sid: 's1', aud: 'other' }))
  expect(await own.steps()).toMatchObject({ '0 signed_out by_issuer': 1, '0 signed_out logout_token_refused': 1 })
})
