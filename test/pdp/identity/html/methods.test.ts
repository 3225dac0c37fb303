/** Requests for pages by other methods than GET and POST. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFlow } from '../flow.ts'
import { openWorld, type World } from '../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const ask = (path: string, method: string): Promise<Response> =>
  fetch(new URL(path, world.issuer), { method, redirect: 'manual', headers: { accept: 'text/html' } })
/** What every answer has anew. */
const ANEW: ReadonlySet<string> = new Set([
  'date',
  'x-request-id',
  'location',
  'set-cookie',
  'connection',
  'keep-alive',
])
/** Of the message, not of the page (RFC 9110 section 9.3.2). */
const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])
const steady = ({ headers }: Response): readonly (readonly [string, string])[] =>
  [...headers].filter(([name]) => !ANEW.has(name) && !FRAMING.has(name))

test.each([
  '/oauth/device',
  '/oauth/device?user_code=BBBB-BBBB',
  '/oauth/approve',
  '/oauth/logout',
  '/oauth/logout/confirm',
  '/oauth/logout/success',
  '/oauth/interaction/none',
  '/oauth/authorize?client_id=nobody',
  '/account',
  '/account/sign-in',
  '/account/forgotten',
  '/account/reset?token=none',
  '/account/invitation',
  '/account/access?organization=acme',
  '/account/passkeys',
  '/account/passkey.js',
  '/account/providers',
  '/account/providers/none?state=x&code=x',
])('HEAD %s is answered as GET, without the page', async (path) => {
  const [head, get] = [await ask(path, 'HEAD'), await ask(path, 'GET')]
  expect([head.status, steady(head)]).toEqual([get.status, steady(get)])
  expect([await head.text(), get.status >= 300 && get.status < 400]).toEqual(['', (await get.text()) === ''])
})

test('HEAD begins a sign-in as GET does', async () => {
  const head = await ask(createFlow(world).authorizeUrl({}), 'HEAD')
  expect([head.status, head.headers.get('location')]).toEqual([303, expect.stringContaining('/oauth/interaction/')])
})

test.each([
  ['PUT', '/oauth/device'],
  ['DELETE', '/account'],
  ['POST', '/oauth/logout/success'],
  ['POST', '/account/providers/none'],
])('%s %s is a page for a browser, which leads to the page', async (method, path) => {
  const answer = await ask(path, method)
  expect([answer.status, answer.headers.get('content-type')]).toEqual([405, 'text/html; charset=utf-8'])
  expect(await answer.text()).toContain(`<a href="${path}">Open the page again</a>`)
})
