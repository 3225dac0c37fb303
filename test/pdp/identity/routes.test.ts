import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientToken, signIn } from '../../support/sign-in.ts'
import { decode, openWorld, PASSWORD, parseObject, REDIRECT, SECRET, type World } from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.close())

const FORMS = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']
const metadata = async (path = FORMS[0] ?? '', headers = {}) =>
  parseObject(await (await fetch(world.issuer + path, { headers })).text())

/** One request as bytes: fetch sets Host by itself. */
function raw(lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(world.issuer)
  return new Promise((done, fail) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`),
    )
    let text = ''
    socket.on('data', (part) => {
      text += part
    })
    socket.on('end', () => done(text)).on('error', fail)
  })
}

test.each(['/oauth/authorize', '/oauth/logout', '/oauth/device'])(
  '%s reads a hundred parameters of a query, and refuses more',
  async (path) => {
    const ask = async (count: number) => (await fetch(`${world.issuer}${path}?${'a=b&'.repeat(count - 1)}c=d`)).text()
    const more = 'the query has more than 100 parameters'
    expect(await ask(100)).not.toContain(more)
    for (const count of [101, 3_000])
      expect(JSON.parse(await ask(count))).toEqual({ error: 'invalid_request', error_description: more })
  },
)

describe('discovery', () => {
  test.each(FORMS)('at %s names this issuer and its endpoints', async (path) => {
    expect(await metadata(path)).toMatchObject({
      issuer: world.issuer,
      authorization_endpoint: `${world.issuer}/oauth/authorize`,
      token_endpoint: `${world.issuer}/oauth/token`,
      jwks_uri: `${world.issuer}/oauth/jwks`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      id_token_signing_alg_values_supported: ['RS256'],
      authorization_response_iss_parameter_supported: true,
    })
  })

  test('offers the grants that exist and no others', async () => {
    const document = await metadata()
    expect(document.grant_types_supported).toEqual([
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:device_code',
      'urn:openid:params:grant-type:ciba',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
    ])
    expect(document.token_endpoint_auth_methods_supported).toEqual([
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'none',
    ])
    expect(document.acr_values_supported).toEqual(['mfa', 'pwd'])
    expect(document.backchannel_token_delivery_modes_supported).toEqual(['poll'])
    expect(document).toMatchObject({
      userinfo_endpoint: `${world.issuer}/oauth/userinfo`,
      introspection_endpoint: `${world.issuer}/oauth/introspect`,
      revocation_endpoint: `${world.issuer}/oauth/revoke`,
      device_authorization_endpoint: `${world.issuer}/oauth/device_authorization`,
      backchannel_authentication_endpoint: `${world.issuer}/oauth/bc-authorize`,
      pushed_authorization_request_endpoint: `${world.issuer}/oauth/par`,
      end_session_endpoint: `${world.issuer}/oauth/logout`,
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256']),
    })
    const absent = ['registration', 'check_session']
    for (const name of absent) expect(document).not.toHaveProperty(`${name}_endpoint`)
  })

  test.each(FORMS)('at %s may be held for five minutes', async (path) => {
    expect((await fetch(world.issuer + path)).headers.get('cache-control')).toBe('public, max-age=300')
  })

  test.each([
    ['Host: evil.example'],
    ['Host: evil.example\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https'],
    ['Host: evil.example\r\nForwarded: host=evil.example;proto=https'],
    ['Host: evil.example:1\r\nX-Forwarded-Port: 1'],
  ])('does not believe %j', async (headers) => {
    const text = await raw([`GET ${FORMS[0]} HTTP/1.1`, headers])
    expect(text).toContain(`"issuer":"${world.issuer}"`)
    expect(text).toContain(`"token_endpoint":"${world.issuer}/oauth/token"`)
    expect(text).not.toContain('evil.example')
  })

  test('does not let Host decide where a sign-in goes', async () => {
    const query = new URLSearchParams({
      client_id: 'web',
      response_type: 'code',
      redirect_uri: REDIRECT,
      scope: 'openid',
      code_challenge: 'a'.repeat(43),
      code_challenge_method: 'S256',
    })
    const text = await raw([`GET /oauth/authorize?${query} HTTP/1.1`, 'Host: evil.example'])
    expect(text).toMatch(/^HTTP\/1.1 303/)
    expect(text).not.toContain('evil.example')
  })
})

describe('the key set', () => {
  test('has an active and a next key, both public RSA keys for RS256 signatures', async () => {
    const response = await fetch(`${world.issuer}/oauth/jwks`)
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    const text = await response.text()
    const { keys } = parseObject(text)
    expect(keys).toHaveLength(2)
    expect(keys).toEqual(Array(2).fill(expect.objectContaining({ kty: 'RSA', alg: 'RS256', use: 'sig', e: 'AQAB' })))
    expect(text).not.toMatch(/"(d|p|q|dp|dq|qi|k)":/)
    expect(keys).toEqual(world.identity.publicKeys())
  })

  test('begins with the key that signs', async () => {
    const { access_token: token } = await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET })
    expect(decode(token).header.kid).toBe(world.identity.publicKeys()[0]?.kid)
  })
})

describe('addresses in answers', () => {
  test.each([
    ['/oauth/device_authorization', 'scope=openid', /"verification_uri":"([^"]+)"/],
    ['/oauth/par', 'client_id=flows&scope=', /"(invalid_request)"/],
  ])('of %s never come from the request', async (path, body, wanted) => {
    const text = await new Promise<string>((done, fail) => {
      const headers = {
        host: 'evil.example',
        'x-forwarded-host': 'evil.example',
        'content-type': 'application/x-www-form-urlencoded',
      }
      request(world.issuer + path, { method: 'POST', headers, auth: `flows:${SECRET}` }, (response) => {
        let received = ''
        response.on('data', (part) => {
          received += part
        })
        response.on('end', () => done(received))
      })
        .on('error', fail)
        .end(body)
    })
    expect(text).toMatch(wanted)
    expect(text).not.toContain('evil.example')
  })

  test('of UserInfo and its challenges never come from the request', async () => {
    const text = await raw(['GET /oauth/userinfo HTTP/1.1', 'Host: evil.example'])
    expect(text).toContain(`resource_metadata="${world.issuer}/`)
    expect(text).not.toContain('evil.example')
  })
})

describe('routes', () => {
  test.each([
    '/oauth/decisions',
    '/oauth/nothing',
    '/oauth/token/',
    '/OAUTH/TOKEN',
    '/oauth//token',
    '/oauth/%74oken',
    '/oauth/userinfo/',
    '/oauth/INTROSPECT',
    '/oauth/interaction',
    '/oauth/interaction/a/b',
    '/oauth/interaction/..',
    '/.well-known/unknown',
    '/.well-known/openid-configuration/',
    '/v1/users',
    '/',
  ])('leave %s to others', async (path) => {
    const text = await raw([`GET ${path} HTTP/1.1`, 'Host: x'])
    expect(text).toMatch(/^HTTP\/1.1 404.*not ours/s)
  })

  test.each([
    ['GET', '/oauth/token', 'POST, OPTIONS'],
    ['HEAD', '/oauth/userinfo', 'GET, POST, OPTIONS'],
    ['POST', '/oauth/logout/success', 'GET, HEAD'],
    ['DELETE', '/oauth/jwks', 'GET, HEAD, OPTIONS'],
    ['PUT', '/oauth/interaction/abc', 'GET, HEAD, POST'],
  ])('refuse %s %s and say what is possible', async (method, path, allow) => {
    const response = await fetch(world.issuer + path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })

  test('let a page of a public client call the token endpoint, and no other page', async () => {
    const call = (client_id: string, origin: string) =>
      fetch(`${world.issuer}/oauth/token`, {
        method: 'POST',
        headers: { origin },
        body: new URLSearchParams({ grant_type: 'authorization_code', client_id, code: 'x', redirect_uri: REDIRECT }),
      })
    expect((await call('spa', 'https://app.example')).headers.get('access-control-allow-origin')).toBe(
      'https://app.example',
    )
    expect((await call('spa', 'https://evil.example')).headers.get('access-control-allow-origin')).toBeNull()
    expect((await call('spa', 'null')).headers.get('access-control-allow-origin')).toBeNull()
  })

  test('refuse a body that is too large', async () => {
    const response = await fetch(`${world.issuer}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'x'.repeat(60_000) }),
    })
    expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })
})

describe('an issuer with a path', () => {
  let mounted: World
  beforeAll(async () => {
    mounted = await openWorld({ mount: '/idp/one' })
  })
  afterAll(() => mounted.close())

  test('serves clients that only know the issuer', async () => {
    const token = (await clientToken({ issuer: mounted.issuer, clientId: 'robot', clientSecret: SECRET })).access_token
    expect(await mounted.identity.introspect(token)).toMatchObject({ active: true, audiences: [mounted.issuer] })
    const request = { issuer: mounted.issuer, clientId: 'web', clientSecret: SECRET, redirectUri: REDIRECT }
    const { tokens } = await signIn({ ...request, email: 'eve@x.example', password: PASSWORD })
    expect(await mounted.identity.introspect(tokens.access_token)).toMatchObject({ organization: 'acme' })
  })

  test('has its resource metadata between host and path, and UserInfo below the path', async () => {
    const url = new URL('/.well-known/oauth-protected-resource/idp/one', mounted.issuer)
    expect(parseObject(await (await fetch(url)).text())).toMatchObject({ resource: mounted.issuer })
    const userinfo = await fetch(`${mounted.issuer}/oauth/userinfo`)
    expect(userinfo.headers.get('www-authenticate')).toContain(`resource_metadata="${url.href}"`)
  })

  test.each([
    '/idp/one/.well-known/openid-configuration',
    '/idp/one/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/idp/one',
    '/.well-known/openid-configuration',
  ])('has its metadata at %s', async (path) => {
    const document = parseObject(await (await fetch(new URL(path, mounted.issuer))).text())
    expect(document).toMatchObject({ issuer: mounted.issuer, token_endpoint: `${mounted.issuer}/oauth/token` })
  })
})

describe('while the store is away', () => {
  let other: World
  beforeAll(async () => {
    other = await openWorld()
    await other.store.close()
  })
  afterAll(() => other.close().catch(() => undefined))
  const client = { client_id: 'robot', client_secret: SECRET }
  const answer = (path: string, form?: { [name: string]: string }) =>
    fetch(other.issuer + path, {
      redirect: 'manual',
      headers: { accept: 'text/html', cookie: 'portcullis_session=x' },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })

  test.each([
    ['/oauth/introspect', { ...client, token: 'opaque' }],
    ['/oauth/revoke', { ...client, token: 'opaque' }],
    ['/oauth/token', { ...client, grant_type: 'client_credentials' }],
  ])('%s says so as OAuth does', async (path, form) => {
    const { status, headers, body } = await answer(path, form).then(async (a) => ({
      status: a.status,
      headers: a.headers,
      body: parseObject(await a.text()),
    }))
    expect([status, headers.get('content-type')?.split(';')[0]]).toEqual([503, 'application/json'])
    expect(body).toMatchObject({
      error: 'temporarily_unavailable',
      error_description: 'the database of this server does not answer; try again later',
    })
  })

  test.each([['/oauth/authorize?client_id=web&response_type=code&scope=openid'], ['/oauth/device'], ['/oauth/logout']])(
    '%s shows a page that says so',
    async (path) => {
      const page = await answer(path)
      expect([page.status, page.headers.get('content-security-policy')]).toEqual([
        503,
        expect.stringContaining("frame-ancestors 'none'"),
      ])
      expect(await page.text()).toContain('cannot answer right now')
    },
  )
})
