/** The pages, UserInfo and every method, with input that no good client sends: errors, and nothing of it as markup. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { effort } from '../../../support/effort.ts'
import { openWorld, REDIRECT, type World } from '../harness.ts'
import {
  badCases,
  CODES,
  codeRequest,
  createSender,
  deep,
  expectDecent,
  type Form,
  failures,
  inBatches,
  jwt,
} from './bad-input.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const { send, post } = createSender(() => world)

describe('the pages', () => {
  const pages = ['/oauth/authorize', '/oauth/device', '/oauth/logout', '/oauth/approve', '/oauth/logout/success']

  // First: those below start more than one address may in a minute.
  test('send an answer by form_post to the client, with a form that works without a script', async () => {
    const query = new URLSearchParams({ ...codeRequest(), prompt: 'none', response_mode: 'form_post' })
    const { status, headers, text } = await send(`/oauth/authorize?${query}`, { headers: { accept: 'text/html' } })
    expect([status, headers.get('location')]).toEqual([400, null])
    expect(text).toContain(`<form method="post" action="${REDIRECT}">`)
    for (const [name, value] of Object.entries({ error: 'login_required', state: 'st', iss: world.issuer })) {
      expect(text).toContain(`<input type="hidden" name="${name}" value="${value}">`)
    }
    expect(text).toMatch(/<button type="submit"/)
  })

  test.each(pages)(
    'of %s show an error for any parameter, and nothing of it as markup',
    async (path) => {
      const before = failures(world).length
      // The short run gives each case to one page.
      await inBatches(
        badCases(pages.indexOf(path), effort({ short: pages.length, long: 1 })),
        async ({ name, what, value }) => {
          const { [name]: _, ...others } = path === '/oauth/authorize' ? codeRequest() : ({} as Form)
          const answer = await send(`${path}?${new URLSearchParams(others)}&${name}=${value}`, {
            headers: { accept: 'text/html' },
          })
          expectDecent(answer, `${name} with ${what}`)
          expect(answer.text).not.toContain('<script>alert')
          expect(answer.headers.get('set-cookie') ?? '').not.toContain('x=y')
          const end = answer.headers.get('location')
          // Only ever to our own pages, or to the registered address.
          if (end !== null) expect(end).toMatch(/^(\/oauth\/|https:\/\/app\.example\/cb[?#])/)
          if (end?.startsWith(REDIRECT)) {
            const error = new URL(end).searchParams.get('error')
            expect([name, what, error === null || CODES.has(error)]).toEqual([name, what, true])
          }
        },
      )
      expect(failures(world).slice(before)).toEqual([])
    },
    60_000,
  )

  test.each([
    '/oauth/interaction/x',
    `/oauth/interaction/${'x'.repeat(128)}`,
    '/oauth/device',
    '/oauth/approve',
    '/oauth/logout/confirm',
  ])('take no form of %s that is not theirs', async (path) => {
    const before = failures(world).length
    for (const body of [
      '',
      'action=login',
      `email=${'x'.repeat(9_000)}`,
      'xsrf=a&xsrf=b',
      'user_code=%ff',
      '%00=%00',
    ]) {
      const cookie = 'portcullis_session=x; portcullis_session.sig=y; portcullis_interaction=z'
      const answer = await post(path, body, { cookie, accept: 'text/html' })
      expectDecent(answer, `${path} ${body.slice(0, 20)}`)
      // At most back to a page of its own, with a form that counts.
      expect([null, world.issuer + path]).toContain(answer.headers.get('location'))
    }
    expect(failures(world).slice(before)).toEqual([])
  })

  test('bring fields that keep them out of frames and from running anything, also those that oidc-provider makes', async () => {
    const formPost = `/oauth/authorize?${new URLSearchParams({ ...codeRequest(), prompt: 'none', response_mode: 'form_post' })}`
    for (const path of [...pages, formPost, '/oauth/device?user_code=AAAA-AAAA', '/oauth/authorize?client_id=flows']) {
      const { headers, text } = await send(path, { headers: { accept: 'text/html' } })
      const policy = headers.get('content-security-policy') ?? ''
      expect([path, policy]).toEqual([path, expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/)])
      expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
      expect(policy).not.toMatch(/unsafe|\*/)
      const [, script] = /<script>([\s\S]*?)<\/script>/.exec(text) ?? []
      if (script !== undefined) expect(policy).toContain(createHash('sha256').update(script).digest('base64'))
    }
  })

  test.each([
    '',
    '%',
    'portcullis_session',
    `portcullis_session=${'x'.repeat(4_000)}`,
    'portcullis_session=%00; =; ;;',
  ])('live with the cookies %.30j', async (cookie) => {
    for (const path of pages) expectDecent(await send(path, { headers: { cookie, accept: 'text/html' } }), cookie)
    expect(failures(world)).toEqual([])
  })
})

describe('methods', () => {
  const routes: { readonly [path: string]: readonly string[] } = {
    '/oauth/authorize': ['GET', 'HEAD', 'POST'],
    '/oauth/par': ['POST', 'OPTIONS'],
    '/oauth/token': ['POST', 'OPTIONS'],
    '/oauth/device_authorization': ['POST', 'OPTIONS'],
    '/oauth/bc-authorize': ['POST'],
    '/oauth/introspect': ['POST', 'OPTIONS'],
    '/oauth/revoke': ['POST', 'OPTIONS'],
    '/oauth/userinfo': ['GET', 'POST', 'OPTIONS'],
    '/oauth/jwks': ['GET', 'HEAD', 'OPTIONS'],
    '/oauth/device': ['GET', 'HEAD', 'POST'],
    '/oauth/approve': ['GET', 'HEAD', 'POST'],
    '/oauth/logout': ['GET', 'HEAD', 'POST'],
    '/oauth/logout/confirm': ['GET', 'HEAD', 'POST'],
    '/oauth/logout/success': ['GET', 'HEAD'],
    '/oauth/interaction/x': ['GET', 'HEAD', 'POST'],
    '/account': ['GET', 'HEAD', 'POST'],
    '/account/providers/x': ['GET', 'HEAD'],
    '/.well-known/openid-configuration': ['GET', 'HEAD', 'OPTIONS'],
    '/.well-known/oauth-authorization-server': ['GET', 'HEAD', 'OPTIONS'],
    '/.well-known/oauth-protected-resource': ['GET', 'HEAD'],
  }
  test.each(Object.entries(routes))(
    'that %s does not have are refused with those that it has',
    async (path, methods) => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
        if (methods.includes(method)) continue
        const answer = await send(path, { method, headers: { 'x-http-method-override': methods[0] ?? '' } })
        expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, methods.join(', ')])
      }
    },
  )
})

describe('UserInfo', () => {
  test.each([
    ['a NUL', 'Bearer a\\u0000'],
    ['an endless token', `Bearer ${'x'.repeat(15_000)}`],
    ['deep JSON in a JWT', `Bearer ${jwt(deep(2_000))}`],
    ['a JWT whose members are of other types', `Bearer ${jwt('{"iss":[],"aud":{},"exp":"x","sub":1,"cnf":[]}')}`],
    ['parameters', 'Bearer realm="x", token=y'],
  ])('refuses %s with a challenge', async (why, authorization) => {
    const answer = await send('/oauth/userinfo', { headers: { authorization } })
    expectDecent(answer, why)
    expect([400, 401]).toContain(answer.status)
    expect(answer.headers.get('www-authenticate')).toMatch(/^(Bearer|DPoP) /)
  })

  test.each(['access_token=%ff', 'access_token=a%00b', 'access_token', 'access_token[]=x', '__proto__=x', '%zz'])(
    'refuses the form %s',
    async (body) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await send('/oauth/userinfo', { method: 'POST', headers, body })
      expectDecent(answer, body)
      expect(answer.status).toBe(401)
    },
  )
})
