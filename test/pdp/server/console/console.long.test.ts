/** What the console refuses: forged forms and tickets, sign-ins that are not one's own, old ones for writes, and rights that nobody gave. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { PersonId } from '../../../console/world.ts'
import { type Browser, createBrowser } from '../../../support/browser.ts'
import { clientToken } from '../../../support/sign-in.ts'
import type { Json } from '../serve/harness.ts'
import { csrfIn, get, post, signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())

const signedIn = (person: PersonId): Promise<Browser> => signedInTo(world, person)
const LINE = { action: 'confirm', op: 'write', lines: 'doc:forged#viewer@user:bob' }
const WRITE = '/console/relationships?org=acme'
const isWritten = async (): Promise<boolean> => {
  const found = await world.manage('GET', '/v1/organizations/acme/relationships?object=doc:forged')
  return found.items.length > 0
}

describe('a browser without a session', () => {
  test.each(['/console', '/console/ask?org=acme', '/console/decisions'])('is sent from %s to sign in', async (path) => {
    const { status, headers } = await get(createBrowser(world.issuer), path)
    expect(status).toBe(303)
    expect(headers.get('location')).toBe(`${world.issuer}/console/sign-in?${new URLSearchParams({ to: path })}`)
  })

  test('is asked for by OpenID Connect with PKCE, and by nothing that a script could read', async () => {
    const { headers } = await get(createBrowser(world.issuer), '/console/sign-in')
    const to = new URL(headers.get('location') ?? '')
    expect(to.origin + to.pathname).toBe(`${world.issuer}/oauth/authorize`)
    expect(to.searchParams.get('code_challenge_method')).toBe('S256')
    expect(headers.getSetCookie().join()).toMatch(
      /^portcullis_console_sign_in=v1\.[^;]+; Max-Age=900; Path=\/; HttpOnly; SameSite=Lax$/,
    )
  })

  test('leads from / to the console in a browser only', async () => {
    const browser = createBrowser(world.issuer)
    expect((await get(browser, '/')).headers.get('location')).toBe('/console')
    const api = await fetch(`${world.issuer}/`, { headers: { accept: 'application/json' } })
    const problem: Json = await api.json()
    expect([api.status, problem.code]).toEqual([404, 'route_unknown'])
  })
})

describe('a sign-in', () => {
  test.each([
    ['no code', ''],
    ['another state', '?code=abc&state=forged'],
    ['an error', '?error=access_denied&state=forged'],
  ])('that comes back with %s is refused', async (_, query) => {
    const browser = createBrowser(world.issuer)
    await get(browser, '/console/sign-in')
    const { status, text } = await get(browser, `/console/callback${query}`)
    expect(status).toBe(400)
    expect(text).not.toContain('forged')
  })

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/oauth/logout',
    'javascript:alert(1)',
    '/consolex',
  ])('never leads to %s', async (to) => {
    const browser = await signedIn('root')
    let at = `${world.issuer}/console/sign-in?${new URLSearchParams({ to })}`
    for (let hop = 0; hop < 6; hop++) {
      const location = (await browser.send(at)).headers.get('location')
      if (location === null) break
      at = new URL(location, at).href
      expect(new URL(at).origin).toBe(world.issuer)
    }
    expect(new URL(at).pathname).toBe('/console')
  })

  test('puts no token into the browser, and a policy without exceptions on every page', async () => {
    const browser = await signedIn('root')
    expect([...browser.cookies().values()].join()).not.toMatch(/eyJ/)
    const { headers, text } = await get(browser, '/console')
    expect(text).not.toMatch(/eyJ[A-Za-z0-9_-]{20}/)
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
    )
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('ends with the session at the identity service', async () => {
    const browser = await signedIn('anna')
    expect((await get(browser, '/console')).status).toBe(200)
    await world.manage('POST', '/v1/users/anna/sessions:revoke')
    expect((await get(browser, '/console')).status).toBe(303)
  })

  test('ends with signing out', async () => {
    const browser = await signedIn('anna')
    const csrf = csrfIn((await get(browser, '/console')).text)
    expect((await post(browser, '/console/sign-out', { csrf })).status).toBe(200)
    expect((await get(browser, '/console/people')).status).toBe(303)
  })
})

describe('a form', () => {
  test.each<[string, (csrf: string) => [form: { [name: string]: string }, headers: { [name: string]: string }]]>([
    ['without its token', () => [LINE, {}]],
    ['with another token', () => [{ ...LINE, csrf: 'a'.repeat(43) }, {}]],
    ['from another origin', (csrf) => [{ ...LINE, csrf }, { origin: 'https://evil.example' }]],
    ['from nowhere', (csrf) => [{ ...LINE, csrf }, { origin: 'null' }]],
  ])('%s writes nothing', async (_, make) => {
    const browser = await signedIn('root')
    const csrf = csrfIn((await get(browser, WRITE)).text)
    const [form, headers] = make(csrf)
    expect((await post(browser, WRITE, form, headers)).status).toBe(403)
    expect(await isWritten()).toBe(false)
  })

  test("with another person's token writes nothing", async () => {
    const [root, anna] = [await signedIn('root'), await signedIn('anna')]
    const csrf = csrfIn((await get(anna, WRITE)).text)
    expect((await post(root, WRITE, { ...LINE, csrf })).status).toBe(403)
    expect(await isWritten()).toBe(false)
  })

  test.each(['bob', 'tom'] as const)('of %s, who may not write here, writes nothing', async (person) => {
    const browser = await signedIn(person)
    const csrf = csrfIn((await get(browser, '/console')).text)
    const { status, text } = await post(browser, WRITE, { ...LINE, csrf })
    expect(status).toBe(403)
    expect(text).toContain('portcullis:relationships:write')
    expect(await isWritten()).toBe(false)
  })

  test('after an old sign-in asks for another one and writes nothing', async () => {
    const browser = await signedIn('root')
    const csrf = csrfIn((await get(browser, WRITE)).text)
    const sql = new pg.Client({ connectionString: world.connectionString })
    await sql.connect()
    // Sixteen minutes ago, and the password was set before.
    await sql.query("update user_account set signed_out_at = null where user_id = 'root'")
    await sql.query(`update oidc_record set payload = jsonb_set(payload, '{authTime}', to_jsonb((payload ->> 'authTime')::int - 960))
      where kind = 'ConsoleSession' and payload ->> 'user' = 'root'`)
    await sql.end()
    const { status, text } = await post(browser, WRITE, { ...LINE, csrf })
    expect([status, text.includes('sign-in?again=1')]).toEqual([403, true])
    expect(await isWritten()).toBe(false)
    expect((await get(browser, WRITE)).text).toContain('sign in once more')
  })

  test('that ends sessions needs the right to do so', async () => {
    const browser = await signedIn('anna')
    const csrf = csrfIn((await get(browser, '/console')).text)
    expect((await post(browser, '/console/people?org=acme&user=root', { csrf, all: '1' })).status).toBe(403)
  })
})

describe('the rights of people', () => {
  test.each(['Console', `Console ${'a'.repeat(43)}`, 'console x', 'Console undefined'])(
    'are not had by the header %s',
    async (authorization) => {
      const response = await fetch(`${world.issuer}/v1/organizations/acme/relationships`, {
        headers: { authorization },
      })
      expect(response.status).toBe(401)
    },
  )

  test('are not had by a token of a person', async () => {
    const browser = await signedIn('root')
    const cookie = [...browser.cookies().values()].join()
    const response = await fetch(`${world.issuer}/v1/apps`, {
      headers: { authorization: `Bearer ${cookie.slice(0, 43)}` },
    })
    expect(response.status).toBe(401)
  })

  test('cannot be given by a client that does not have them', async () => {
    await world.manage('PUT', '/v1/clients/granter', {
      grant_types: ['client_credentials'],
      token_endpoint_auth_method: 'client_secret_basic',
      client_secret: 'a-secret-of-the-granter-0123',
      scope: 'roles:write relationships:write directory:read',
    })
    const scope = 'roles:write relationships:write directory:read'
    const { access_token } = await clientToken({
      issuer: world.issuer,
      clientId: 'granter',
      clientSecret: 'a-secret-of-the-granter-0123',
      scope,
    })
    const send = async (path: string, body: object): Promise<readonly [number, string]> => {
      const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }
      const response = await fetch(world.issuer + path, { method: 'POST', headers, body: JSON.stringify(body) })
      return [response.status, await response.text()]
    }
    const grant = { app: 'portcullis', role: 'administrator', subject: 'user:bob' }
    for (const path of ['/v1/role-grants', '/v1/organizations/acme/role-grants']) {
      const [status, text] = await send(path, grant)
      expect([status, text.includes('portcullis:clients:write')]).toEqual([403, true])
    }
    await world.manage('POST', '/v1/organizations/acme/role-grants', { ...grant, subject: 'group:admins' })
    const [status] = await send('/v1/organizations/acme/relationships', { write: ['group:admins#member@user:bob'] })
    expect(status).toBe(403)
  })

  test('cannot be put into another role or into the built-in app', async () => {
    const refused = async (path: string, body: object): Promise<string> =>
      world.manage('PUT', path, body).then(
        () => 'written',
        (err: Error) => err.message,
      )
    const permissions = ['portcullis:relationships:read']
    expect(await refused('/v1/roles/sneaky', { name: 'Sneaky', permissions })).toMatch(/400.*grant a role of that app/)
    expect(await refused('/v1/apps/portcullis/manifest', { roles: {} })).toMatch(/409.*built in/)
  })

  test('end with the grant, at the next click', async () => {
    const { id } = await world.manage('POST', '/v1/organizations/acme/role-grants', {
      app: 'portcullis',
      role: 'auditor',
      subject: 'user:bob',
    })
    const browser = await signedIn('bob')
    expect((await get(browser, '/console/relationships?org=acme')).status).toBe(200)
    await world.manage('DELETE', `/v1/organizations/acme/role-grants/${id}`)
    expect((await get(browser, '/console/relationships?org=acme')).status).toBe(403)
  })
})

describe('the stream of a receiver', () => {
  const here = '/console/streams?org=acme&stream=stream-of-failing'
  const state = () => world.manage('GET', '/v1/streams/stream-of-failing')

  test.each(['anna', 'bob', 'tom'] as const)('is neither shown to %s nor paused by them', async (person) => {
    const browser = await signedIn(person)
    expect((await get(browser, here)).status).toBe(403)
    const csrf = csrfIn((await get(browser, '/console')).text)
    expect((await post(browser, here, { csrf, action: 'pause' })).status).toBe(403)
    expect(await state()).toMatchObject({ status: 'enabled' })
  })

  test('is paused with a reason and resumed by who may, and its hostile reason stands as text', async () => {
    const browser = await signedIn('root')
    const csrf = csrfIn((await get(browser, here)).text)
    const reason = '"><script>alert(1)</script>'
    const paused = await post(browser, here, { csrf, action: 'pause', reason })
    expect(paused.headers.get('location')).toContain('done=pause')
    expect(await state()).toMatchObject({ status: 'paused', reason })
    const { text } = await get(browser, here)
    expect(text).toContain('&lt;script&gt;alert(1)')
    expect(text).not.toContain('<script>alert')
    expect((await get(browser, '/console/streams?org=acme')).text).toContain('✗ paused')
    await post(browser, here, { csrf, action: 'resume' })
    expect(await state()).toMatchObject({ status: 'enabled', reason: null })
  })

  test('that does not exist is not found', async () => {
    expect((await get(await signedIn('root'), '/console/streams?org=acme&stream=nothing')).status).toBe(404)
  })
})
