/** Signing in at the sidecar as people and programs meet it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field } from '../../support/peers/raw-http.ts'
import { fieldOf } from '../support/upstream.ts'
import { cookieLines, locationOf, NAVIGATE, openWorld, SESSION, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())
const usual = { idClaims: {}, accessClaims: {}, accessSeconds: 300, error: null, tokenStatus: null, padding: 0 }
beforeEach(() => {
  const [issuer] = world.issuers
  Object.assign(issuer.behave, { ...usual, iss: issuer.url, refreshTokens: true, pushes: false })
})

describe('a browser without a token', () => {
  test('is sent to the issuer with code, PKCE, nonce and a sealed state, and comes back to the page that it wanted', async () => {
    const browser = world.browser()
    const sent = await browser.visit('/docs/1?x=1')
    expect(sent.status).toBe(302)
    const url = new URL(locationOf(sent))
    expect(url.origin).toBe(world.issuers[0].url)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'web',
      scope: 'openid',
      redirect_uri: `${world.origin}/.portcullis/callback`,
      code_challenge_method: 'S256',
      resource: 'https://app.test',
    })
    expect(url.search).not.toContain('docs')
    const answer = await browser.open('/docs/1?x=1')
    expect(answer.status).toBe(200)
    const reached = world.upstream.reached.at(-1)
    expect(reached?.target).toBe('/docs/1?x=1')
    expect(fieldOf(reached, 'x-auth-subject')).toBe('alice')
    expect(fieldOf(reached, 'cookie')).toBeNull()
    expect(fieldOf(reached, 'authorization')).toBeNull()
  })

  test('gets pages that no cache in front may keep for others, unless the service says what holds', async () => {
    const browser = world.browser()
    await browser.open('/docs/1')
    expect(field(await browser.visit('/docs/1'), 'cache-control')).toBe('private')
    world.upstream.handle = (_req, res) => void res.setHeader('Cache-Control', 'max-age=60').end()
    expect(field(await browser.visit('/docs/1'), 'cache-control')).toBe('max-age=60')
    world.upstream.handle = null
    expect(field(await world.browser().visit('/public'), 'cache-control')).toBeNull()
  })

  test('keeps one cookie that only its own host can set, that scripts cannot read and other sites do not send', async () => {
    const browser = world.browser()
    let callback = locationOf(await browser.visit('/docs/1'))
    callback = (await fetch(callback, { redirect: 'manual' })).headers.get('location') ?? ''
    const landed = await browser.visit(callback.slice(world.origin.length))
    expect(landed.status).toBe(303)
    const [line = ''] = cookieLines(landed).filter((text) => text.startsWith(`${SESSION}=`))
    expect(line.replace(/=.*?;/, '=…;')).toBe(`${SESSION}=…; Path=/; Secure; HttpOnly; SameSite=Lax`)
    expect(field(landed, 'cache-control')).toContain('no-store')
    expect(line).not.toContain('alice')
  })

  test('pushes the request where the issuer takes it', async () => {
    const own = await openWorld()
    own.issuers[0].behave.pushes = true
    const url = new URL(locationOf(await own.browser().visit('/docs/1')))
    expect([...url.searchParams.keys()].sort()).toEqual(['client_id', 'request_uri'])
    expect((await own.browser().open('/docs/1')).status).toBe(200)
    await own.close()
  })

  test.each([
    ['a program by curl', ['Accept: */*']],
    ['a script of a page', ['Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty', 'Accept: text/html']],
    ['an old script', ['X-Requested-With: XMLHttpRequest', 'Accept: text/html']],
    ['a picture', ['Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image', 'Accept: image/*']],
    ['a prefetch', [...NAVIGATE, 'Sec-Purpose: prefetch']],
    ['an older prefetch', ['Accept: text/html', 'Purpose: prefetch']],
    ['a preview of Firefox', [...NAVIGATE, 'X-Moz: prefetch']],
    ['somebody who wants no HTML', ['Accept: text/html;q=0, application/json']],
    ['two answers to one question', ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Mode: cors', 'Accept: text/html']],
    ['a program with a bad token', [...NAVIGATE, 'Authorization: Bearer x.y.z']],
  ])('%s gets the 401 of an API, and no cookie', async (_, fields) => {
    const answer = await world.send('GET /docs/1', fields)
    expect([answer.status, field(answer, 'content-type')]).toEqual([401, 'application/problem+json'])
    expect(cookieLines(answer)).toEqual([])
  })

  test.each([
    ['GET', NAVIGATE],
    ['HEAD', NAVIGATE],
    ['GET', ['Accept: text/html,application/xhtml+xml;q=0.9']],
  ])('%s %j is sent to sign in', async (method, fields) => {
    const answer = await world.send(`${method} /docs/1`, fields)
    expect([answer.status, answer.body]).toEqual([302, ''])
  })

  test('gets 401 on a route that does not sign in, although it navigates there', async () => {
    const answer = await world.send('GET /api/1', NAVIGATE)
    expect([answer.status, field(answer, 'content-type')]).toEqual([401, 'application/problem+json'])
    const browser = world.browser()
    await browser.open('/docs/1')
    expect((await browser.fetch('GET /api/1')).status).toBe(200)
  })

  test('in a frame gets a page with a link, because issuers refuse frames', async () => {
    const answer = await world.send('GET /docs/1', ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe'])
    expect([answer.status, field(answer, 'content-type')]).toEqual([401, 'text/html; charset=utf-8'])
    expect(answer.body).toContain('/.portcullis/sign-in?goal=')
  })

  test('gets a page, and no endless error, while the issuer is away', async () => {
    const own = await openWorld()
    await own.issuers[0].close()
    const answer = await own.browser().visit('/docs/1')
    expect(answer.status).toBe(503)
    expect(answer.body).toContain('Try again')
    await own.close()
  })

  test('on another host of the sidecar gets a page, because its cookies belong to one host', async () => {
    const answer = await world.send('GET /docs/1', ['Host: other.test', ...NAVIGATE])
    expect([answer.status, field(answer, 'content-type')]).toEqual([401, 'text/html; charset=utf-8'])
  })
})

describe('a person who signed in', () => {
  test('and lacks the permission reads what is missing, with the id of the request, in a page without scripts', async () => {
    const browser = world.browser()
    const answer = await browser.open('/docs/2')
    expect([answer.status, field(answer, 'content-type')]).toEqual([403, 'text/html; charset=utf-8'])
    expect(answer.body).toContain('You may not open this page')
    expect(answer.body).toContain(field(answer, 'x-request-id') ?? 'none')
    expect(answer.body).toContain('alice')
    expect(field(answer, 'content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect((await browser.visit('/paid')).body).toContain('feature.docs')
    expect((await browser.visit('/nothing')).body).toContain('There is no such page')
    const program = await browser.fetch('GET /docs/2')
    expect([program.status, field(program, 'content-type')]).toEqual([403, 'application/problem+json'])
  })

  test('is signed out everywhere by a revocation, on the very next request', async () => {
    const browser = world.browser()
    expect((await browser.open('/docs/1')).status).toBe(200)
    const { script } = world.pdp
    world.pdp.script = () => 'token_invalid'
    const kept = browser.jar.get(SESSION)
    expect(kept).toBeDefined()
    world.pdp.script = (asked) => {
      const answer = script(asked)
      return typeof answer === 'object' && answer !== null ? { ...answer, active: false } : answer
    }
    expect((await browser.fetch('GET /docs/1')).status).toBe(401)
    browser.jar.delete('__Host-portcullis-landed')
    expect((await browser.visit('/docs/1')).status).toBe(302)
    world.pdp.script = script
  })

  test('goes on to a stronger sign-in where a route needs it, and comes back', async () => {
    const [issuer] = world.issuers
    const browser = world.browser()
    await browser.open('/docs/1')
    const { script } = world.pdp
    world.pdp.script = (asked) => {
      const answer = script(asked)
      if (typeof answer !== 'object' || answer === null) return answer
      return { ...answer, acr: issuer.asked.at(-1)?.get('acr_values') ?? 'pwd' }
    }
    const sent = await browser.visit('/strong')
    expect(sent.status).toBe(302)
    expect(new URL(locationOf(sent)).searchParams.get('acr_values')).toBe('mfa')
    issuer.behave.idClaims = { acr: 'mfa' }
    const former = browser.jar.get(SESSION)
    const answer = await browser.open('/strong')
    expect([answer.status, answer.hops]).toEqual([200, 3])
    expect(browser.jar.get(SESSION)).not.toBe(former)
    world.pdp.script = script
  })

  test('reads that the issuer did not ask for more, in place of a loop, when a stronger sign-in does not come', async () => {
    const [issuer] = world.issuers
    const browser = world.browser()
    await browser.open('/docs/1')
    issuer.behave.idClaims = { acr: 'pwd' }
    const answer = await browser.open('/strong')
    expect([answer.status, answer.hops < 6]).toEqual([403, true])
    expect(answer.body).toContain('stronger sign-in')
    issuer.behave.idClaims = {}
    const again = await browser.open('/strong')
    expect([again.status, again.hops < 6]).toEqual([401, true])
  })
})
