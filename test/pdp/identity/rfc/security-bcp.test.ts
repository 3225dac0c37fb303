/** Attacks of RFC 9700 (OAuth 2.0 Security Best Current Practice), section 4, on our own authorization server. Those on its pages are in security-bcp-pages.test.ts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../support/browser.ts'
import { answerPage, clientToken } from '../../../support/sign-in.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { createFlows } from '../flows.ts'
import { API, decode, GRANTS, openWorld, parseObject, postToken, REDIRECT, SECRET, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
})
afterAll(() => world.close())

const EVIL = 'https://evil.example/cb'
const isActive = async (token: unknown) => (await world.identity.introspect(String(token))).active
/** The page of a sign-in that has begun, and the requests that lead there. */
async function signInPage(parameters: { readonly [name: string]: string } = {}) {
  const browser = createBrowser(world.issuer)
  let response = await browser.send(flow.authorizeUrl(parameters))
  let url = flow.authorizeUrl(parameters)
  for (let hop = 0; hop < 5 && response.headers.get('location') !== null; hop += 1) {
    url = new URL(response.headers.get('location') ?? '', url).href
    response = await browser.send(url)
  }
  return { browser, url, response }
}

describe('4.1, a redirect address', () => {
  test.each([
    ['elsewhere', EVIL],
    ['with a longer path', `${REDIRECT}/more`],
    ['with a trailing slash', `${REDIRECT}/`],
    ['with a path that leads back', 'https://app.example/other/../cb'],
    ['with an encoded path', 'https://app.example/%63b'],
    ['with a query', `${REDIRECT}?next=${encodeURIComponent(EVIL)}`],
    ['with a fragment', `${REDIRECT}#x`],
    ['with another case in the path', 'https://app.example/CB'],
    ['with a host in capitals', 'https://APP.example/cb'],
    ['with a port', 'https://app.example:443/cb'],
    ['with a subdomain', 'https://evil.app.example/cb'],
    ['with a longer host', 'https://app.example.evil.example/cb'],
    ['with a dot behind the host', 'https://app.example./cb'],
    ['with the host as a user name', 'https://app.example@evil.example/cb'],
    ['with a backslash', 'https://evil.example\\@app.example/cb'],
    ['without TLS', 'http://app.example/cb'],
    ['of a script', 'javascript:alert(1)//https://app.example/cb'],
    ['with a blank before it', ` ${REDIRECT}`],
    ['that is empty', ''],
  ])('%s is refused on a page of ours, and the browser goes nowhere', async (_name, uri) => {
    const { response } = await signInPage({ redirect_uri: uri })
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
    expect(await response.text()).not.toContain('href="https://evil.example')
  })

  test('that is sent twice is refused', async () => {
    const twice = `${flow.authorizeUrl({})}&redirect_uri=${encodeURIComponent(EVIL)}`
    const response = await createBrowser(world.issuer).send(twice)
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
  })
})

describe('4.3, what leaks from addresses', () => {
  test('an access token in the query is taken by nothing', async () => {
    const { access_token: token } = (await createFlows(world).code({ person: 'eve', organization: 'acme' })).tokens
    const asked = (init: RequestInit, query = '') => fetch(`${world.issuer}/oauth/userinfo${query}`, init)
    expect((await asked({ headers: { authorization: `Bearer ${token}` } })).status).toBe(200)
    expect((await asked({}, `?access_token=${token}`)).status).toBe(400)
    expect(await isActive(token)).toBe(true)
  })
})

test('4.4, mix-up: the answer names its issuer, errors too', async () => {
  for (const parameters of [{}, { scope: 'openid never:granted' }]) {
    const { searchParams } = await flow.authorize(parameters)
    expect(searchParams.get('iss')).toBe(world.issuer)
  }
})

describe('4.5 and 4.8, a code', () => {
  test.each([
    ['with the verifier of another browser', { code_verifier: 'w'.repeat(43) }, 'web'],
    ['without a verifier', { code_verifier: '' }, 'web'],
    ['with another redirect address', { redirect_uri: EVIL }, 'web'],
    ['at another client', {}, 'invoices-web'],
  ])('that was stolen is redeemed by nobody %s', async (_name, form, client) => {
    const code = await flow.newCode()
    const { status, body } = await flow.redeem(code, form, client)
    expect([status, body.access_token]).toEqual([400, undefined])
  })

  test('that is redeemed twice ends the tokens of the first time', async () => {
    const code = await flow.newCode()
    const first = await flow.redeem(code)
    expect(await isActive(first.body.access_token)).toBe(true)
    expect((await flow.redeem(code)).body.error).toBe('invalid_grant')
    expect(await isActive(first.body.access_token)).toBe(false)
  })

  test('is not given without a challenge of S256', async () => {
    for (const parameters of [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge_method: undefined },
    ])
      expect(await flow.errorOf(parameters)).toBe('invalid_request')
  })
})

test.each(['token', 'id_token', 'id_token token', 'code token', 'code id_token', 'code id_token token', 'none'])(
  '4.6, token injection: no token comes by a browser, asked for as "%s"',
  async (type) => {
    const end = await flow.authorize({ response_type: type, nonce: 'n' })
    expect(end.href).not.toMatch(/access_token|id_token=|code=/)
    expect(await flow.errorOf({ response_type: type, nonce: 'n' })).toBe('unsupported_response_type')
  },
)

describe('4.7, requests of other sites', () => {
  test('cannot answer the pages of a sign-in that another browser began', async () => {
    const { url } = await signInPage()
    const person = answerPage({ step: 'login', html: '' }, flow.as('eve'))
    const other = await createBrowser(world.issuer).send(url, { form: person })
    expect([other.status, other.headers.get('location')]).toEqual([400, null])
  })

  test('get the state back as it came, whatever is in it', async () => {
    const state = '"><script>&=#%é'
    expect((await flow.authorize({ state })).searchParams.get('state')).toBe(state)
  })
})

describe('4.9 and 4.10, a token that a service or a thief has', () => {
  test('is for one audience only', async () => {
    const { tokens } = await createFlows(world).code({
      person: 'eve',
      organization: 'acme',
      scope: 'orders:read',
      resource: API,
    })
    expect(decode(tokens.access_token).payload.aud).toBe(API)
    const answer = await fetch(`${world.issuer}/oauth/userinfo`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    expect(answer.status).toBe(403)
  })

  test('is worth nothing without its key when it is bound', async () => {
    const { tokens } = await createFlows(world).code({ person: 'eve', organization: 'acme', dpop: true })
    for (const scheme of ['Bearer', 'DPoP']) {
      const headers = { authorization: `${scheme} ${tokens.access_token}` }
      expect((await fetch(`${world.issuer}/oauth/userinfo`, { headers })).status).toBe(401)
    }
  })
})

describe('4.11, the server as a way to anywhere', () => {
  test('a sign-out sends nobody to an address that is not registered', async () => {
    const answer = await fetch(`${world.issuer}/.well-known/openid-configuration`)
    const metadata = parseObject(await answer.text())
    const query = new URLSearchParams({ client_id: 'web', post_logout_redirect_uri: EVIL, state: 's' })
    const response = await createBrowser(world.issuer).send(`${metadata.end_session_endpoint}?${query}`)
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
  })

  test('an unknown client is told so on a page of ours', async () => {
    const { response } = await signInPage({ client_id: 'nobody', redirect_uri: EVIL })
    expect([response.status, response.headers.get('location')]).toEqual([400, null])
  })
})

test('4.12, no redirect repeats the POST with its password at another address', async () => {
  const { browser, url, response } = await signInPage()
  const form = { ...hiddenFields(await response.text()), ...answerPage({ step: 'login', html: '' }, flow.as('eve')) }
  let answer = await browser.send(url, { form })
  for (let at = url; answer.headers.get('location') !== null; ) {
    expect([302, 303]).toContain(answer.status)
    at = new URL(answer.headers.get('location') ?? '', at).href
    if (!at.startsWith(world.issuer)) return expect(at).toContain(REDIRECT)
    answer = await browser.send(at)
  }
  throw new Error('the sign-in did not end at the client')
})

test('4.14, a refresh token is of one client, and ends its family when it comes twice', async () => {
  const secretHash = (await world.directory.client('flows'))?.secretHash ?? null
  await world.putClient({ id: 'thief', metadata: { redirect_uris: [REDIRECT], grant_types: GRANTS }, secretHash })
  const first = await createFlows(world).code({ person: 'eve', organization: 'acme' })
  const form = { grant_type: 'refresh_token', refresh_token: first.tokens.refresh_token ?? '' }
  expect((await postToken(world, form, { id: 'thief' })).body.error).toBe('invalid_grant')
  const second = await postToken(world, form, { id: 'flows' })
  expect(await isActive(second.body.access_token)).toBe(true)
  expect((await postToken(world, form, { id: 'flows' })).body.error).toBe('invalid_grant')
  expect(await isActive(second.body.access_token)).toBe(false)
})

test('4.15, no client can be named like a person', async () => {
  await expect(world.putClient({ id: 'eve', metadata: { scope: 'orders:read' } })).rejects.toThrow('belongs to a user')
  const token = await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET })
  expect(decode(token.access_token).payload.sub).toBe('robot')
})

describe('4.13, fields that a proxy would set', () => {
  const FORGED = {
    forwarded: 'for=1.2.3.4;host=evil.example;proto=https',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-port': '8443',
    'x-forwarded-prefix': '/evil',
    'x-original-url': '/oauth/device',
    'x-rewrite-url': '/oauth/device',
  }
  const CERTIFICATES = {
    'x-ssl-client-cert': 'MIIB',
    'x-client-cert': 'MIIB',
    'ssl-client-cert': 'MIIB',
    ssl_client_verify: 'SUCCESS',
    'client-cert': ':MIIB:',
    'x-forwarded-client-cert': 'Subject="CN=robot"',
    'x-forwarded-user': 'robot',
    'x-remote-user': 'robot',
  }

  test('change no address of the server, and no place that a browser is sent to', async () => {
    const path = '/.well-known/openid-configuration'
    const [plain, forged] = await Promise.all(
      [{}, FORGED].map(async (headers) => parseObject(await (await fetch(world.issuer + path, { headers })).text())),
    )
    expect(forged).toEqual(plain)
    const answers = await Promise.all(
      ['/account', '/oauth/logout/confirm', '/oauth/logout'].map((to) =>
        createBrowser(world.issuer).send(to, { headers: FORGED }),
      ),
    )
    for (const answer of answers) {
      expect(answer.headers.get('location') ?? world.issuer).toMatch(new RegExp(`^${world.issuer}`))
      expect(await answer.text()).not.toContain('evil')
    }
  })

  test('are no proof of who a client is', async () => {
    const headers = { ...FORGED, ...CERTIFICATES }
    const form = { grant_type: 'client_credentials', client_id: 'robot' }
    const { status, body } = await postToken(world, form, { headers })
    expect([status, body.error]).toEqual([401, 'invalid_client'])
  })
})

test('a verifier that is short, or of another code, redeems nothing', async () => {
  for (const verifier of [VERIFIER.slice(1), `${VERIFIER}v`, VERIFIER.toUpperCase()])
    expect((await flow.redeem(await flow.newCode(), { code_verifier: verifier })).status).toBe(400)
})
