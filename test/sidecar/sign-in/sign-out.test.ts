/** What ends the session of a browser: the person, the issuer, and what replicas learn of it through Redis. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { processMemory } from '../../../sidecar/sign-in/memory.ts'
import { redisMemory } from '../../../sidecar/sign-in/memory-redis.ts'
import type { Claims } from '../../support/peers/issuer.ts'
import { field } from '../../support/peers/raw-http.ts'
import { hasRedis, startRedis, type TestRedis } from '../../support/peers/redis.ts'
import { until } from '../../support/until.ts'
import { fieldOf } from '../support/upstream.ts'
import { copyOf, FORM, MINUTE, movableWorlds, notify, parts, signedIn, signOut, statusOf } from './steps.ts'
import { locationOf, type openWorld, SESSION, type World } from './world.ts'

const worlds = movableWorlds()
afterAll(worlds.close)

describe('signing out', () => {
  test('ends the session and its copies, revokes its tokens, and goes on to the issuer', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const copy = copyOf(browser, own)
    const page = await browser.visit('/.portcullis/sign-out')
    expect([page.status, page.body.includes('<form method="post"')]).toEqual([200, true])
    const answer = await signOut(browser, own)
    expect(answer.status).toBe(303)
    const to = new URL(locationOf(answer))
    expect(to.origin + to.pathname).toBe(`${own.issuers[0].url}/logout`)
    expect(Object.fromEntries(to.searchParams)).toMatchObject({
      client_id: 'web',
      id_token_hint: expect.stringMatching(/^ey/),
      post_logout_redirect_uri: `${own.origin}/.portcullis/signed-out`,
    })
    expect(own.issuers[0].revoked).toHaveLength(1)
    expect([...browser.jar.keys()]).toEqual([])
    expect([await statusOf(browser), await statusOf(copy)]).toEqual([401, 401])
    expect((await browser.visit('/.portcullis/signed-out')).body).toContain('You are signed out')
  })

  test('without a session leads to the same page, and tells nobody anything', async () => {
    const own = await worlds.open()
    const answer = await signOut(own.browser(), own)
    expect([answer.status, locationOf(answer)]).toEqual([303, `${own.origin}/.portcullis/signed-out`])
  })

  test('ends here although the issuer does not answer', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const copy = copyOf(browser, own)
    await own.issuers[0].close()
    expect((await signOut(browser, own)).status).toBe(303)
    expect(await statusOf(copy)).toBe(401)
    own.issuers[0].close = async () => undefined
  })
})

describe('an open event stream', () => {
  test.each<[string, (own: World, browser: Awaited<ReturnType<typeof signedIn>>) => Promise<unknown>]>([
    ['the person', (own, browser) => signOut(browser, own)],
    ['the issuer', async (own) => notify(own, await own.issuers[0].signLogout({ sid: 's1' }))],
  ])('ends when %s ends its session, although its token is still good', async (_, end) => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    own.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: open\n\n')
    }
    const before = own.upstream.reached.length
    const stream = browser.fetch('GET /docs/1')
    await until(() => own.upstream.reached.length > before)
    await end(own, browser)
    expect((await stream).body).toContain('data: open')
    expect(own.log).toContainEqual(expect.objectContaining({ event: 'cut', reason: 'token_invalid' }))
  })
})

describe('back-channel logout', () => {
  test.each<[string, Claims]>([
    ['of the issuer’s session', { sid: 's1' }],
    ['of the person', { sid: undefined, sub: 'alice' }],
  ])('%s ends the session on the next request', async (_, claims) => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    expect((await notify(own, await own.issuers[0].signLogout({ sid: 'another', ...{} }))).status).toBe(200)
    expect(await statusOf(browser)).toBe(200)
    const answer = await notify(own, await own.issuers[0].signLogout(claims))
    expect([answer.status, field(answer, 'cache-control')]).toEqual([200, 'no-store'])
    expect(await statusOf(browser)).toBe(401)
    // What only one process knows, it says.
    expect(own.log).toContainEqual(expect.objectContaining({ event: 'signed_out_here_only' }))
    worlds.clock.aheadMs += 1_000
    browser.jar.delete('__Host-portcullis-landed')
    expect((await browser.open('/docs/1')).status).toBe(200)
  })

  test('that could not be stored counts when it comes again', async () => {
    const kept = processMemory({ clock: Date.now })
    let isAway = false
    const put: typeof kept.put = (key, value, ttlMs) =>
      isAway && key.startsWith('ended:') ? Promise.reject(new Error('away')) : kept.put(key, value, ttlMs)
    const own = await worlds.open({ memory: () => ({ ...kept, put }) })
    const browser = await signedIn(own)
    const message = await own.issuers[0].signLogout({ sid: 's1' })
    isAway = true
    expect((await notify(own, message)).status).toBe(503)
    isAway = false
    expect(await statusOf(browser)).toBe(200)
    expect((await notify(own, message)).status).toBe(200)
    expect(await statusOf(browser)).toBe(401)
    expect((await notify(own, message)).status).toBe(400)
  })

  test('a forged logout token ends nothing', async () => {
    const own = await worlds.open()
    const browser = await signedIn(own)
    const [issuer] = own.issuers
    const now = Math.floor(Date.now() / 1_000)
    const stranger = await worlds.open()
    const forged: readonly (readonly [string, Claims, Claims?])[] = [
      ['of another type', {}, { typ: 'JWT' }],
      ['without a type', {}, { typ: undefined }],
      ['an access token', {}, { typ: 'at+jwt' }],
      ['without signature', {}, { alg: 'none' }],
      ['by another key', {}, { kid: 'other' }],
      ['of another issuer', { iss: 'https://evil.test' }],
      ['for another client', { aud: 'other' }],
      ['without an audience', { aud: undefined }],
      ['without events', { events: undefined }],
      ['of another event', { events: { 'https://other.test/event': {} } }],
      ['with an event that is no object', { events: { 'http://schemas.openid.net/event/backchannel-logout': true } }],
      ['with a nonce', { nonce: 'n' }],
      ['of nobody', { sid: undefined }],
      ['of an empty session', { sid: '' }],
      ['of a session that is a number', { sid: 1 }],
      ['of last week', { iat: now - 600_000, exp: undefined }],
      ['of tomorrow', { iat: now + 86_400 }],
      ['without a time', { iat: undefined }],
      ['that has expired', { exp: now - 120 }],
      ['without jti', { jti: undefined }],
    ]
    for (const [what, claims, header] of forged) {
      const answer = await notify(own, await issuer.signLogout(claims, header))
      expect([what, answer.status]).toEqual([what, 400])
    }
    for (const token of ['', 'x', 'a.b.c', await stranger.issuers[0].signLogout({ iss: issuer.url })])
      expect((await notify(own, token)).status).toBe(400)
    const good = await issuer.signLogout({ sid: 'another' })
    const twice = new URLSearchParams([
      ['logout_token', good],
      ['logout_token', good],
    ]).toString()
    expect((await own.send('POST /.portcullis/backchannel-logout', FORM, { body: twice })).status).toBe(400)
    expect((await own.send('GET /.portcullis/backchannel-logout')).status).toBe(405)
    expect((await own.send('POST /.portcullis/backchannel-logout', FORM, { body: 'x'.repeat(20_000) })).status).toBe(
      413,
    )
    expect([(await notify(own, good)).status, (await notify(own, good)).status]).toEqual([200, 400])
    expect(await statusOf(browser)).toBe(200)
  })
})

test('the memory of ended sessions refuses what it has no room for, and does not forget', async () => {
  let nowMs = 0
  const memory = processMemory({ clock: () => nowMs, entriesMax: 2 })
  await memory.put('a', '1', 10)
  expect([await memory.claim('b', 10), await memory.claim('b', 10)]).toEqual([true, false])
  await expect(memory.put('c', '1', 10)).rejects.toThrow('full')
  expect(await memory.get(['a', 'c'])).toEqual(['1', null])
  nowMs = 10
  await memory.put('c', '1', 10)
  expect(await memory.get(['a', 'c'])).toEqual([null, '1'])
})

describe.runIf(hasRedis())('with Redis, replicas', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.kill())
  const shared = (options: Parameters<typeof openWorld>[0] = {}): Promise<World> =>
    worlds.open({ replicas: 2, memory: () => redisMemory({ url: redis.url, onError: () => undefined }), ...options })

  test('keep a session of any size there, and a small ticket in the cookie', async () => {
    const own = await shared()
    own.issuers[0].behave.padding = 9_000
    const browser = await signedIn(own)
    expect([parts(browser), (browser.jar.get(SESSION) ?? '').length < 500]).toEqual([[SESSION], true])
    expect(await statusOf(browser, own.ports[1])).toBe(200)
    expect(fieldOf(own.upstream.reached.at(-1), 'x-auth-subject')).toBe('alice')
  })

  test('renew it once: one wins, and the others wait for what it stores', async () => {
    const own = await shared()
    const browser = await signedIn(own)
    const before = own.issuers[0].grants.length
    const cookie = [`Cookie: ${SESSION}=${browser.jar.get(SESSION)}`]
    worlds.clock.aheadMs += 6 * MINUTE
    const sending = own.ports.flatMap((port) => [1, 2, 3].map(() => own.send('GET /docs/1', cookie, { port })))
    expect((await Promise.all(sending)).map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200))
    expect([own.issuers[0].grants.length - before, own.issuers[0].reused()]).toEqual([1, 0])
  })

  test('agree on what was ended: by the person, and by the issuer', async () => {
    const own = await shared()
    const [one, other] = [await signedIn(own), await signedIn(own)]
    const copy = copyOf(one, own)
    await signOut(one, own)
    expect(await statusOf(copy, own.ports[1])).toBe(401)
    expect(await statusOf(other, own.ports[1])).toBe(200)
    expect((await notify(own, await own.issuers[0].signLogout(), own.ports[1])).status).toBe(200)
    expect(await statusOf(other, own.ports[0])).toBe(401)
    expect(own.log).not.toContainEqual(expect.objectContaining({ event: 'signed_out_here_only' }))
  })

  test('answer 503, and let nobody in, while Redis is away', async () => {
    const down = await startRedis()
    const own = await shared({ memory: () => redisMemory({ url: down.url, onError: () => undefined }) })
    const browser = await signedIn(own)
    await down.kill()
    const answer = await browser.fetch('GET /docs/1')
    expect([answer.status, answer.body.includes('session_unavailable')]).toEqual([503, true])
    expect((await own.send('GET /public')).status).toBe(200)
  })
})
