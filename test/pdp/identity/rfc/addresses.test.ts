/** Nothing that a request says about where it was sent, or by whom, shows in an answer or changes who is told what. */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { createIdentity } from '../../../../pdp/identity/identity.ts'
import { hashSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { createBrowser, hiddenFields } from '../../../support/browser.ts'
import { realScrypt } from '../../../support/passwords/quick-scrypt.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { createFlows } from '../flows.ts'
import { DECOY_HASH, logInto, MASTER_KEY, openWorld, PASSWORD, REDIRECT, SECRET, type World } from '../harness.ts'
import { digestOf } from './forge.ts'

realScrypt()

let world: World
let subject: string
beforeAll(async () => {
  world = await openWorld({ slowDecoy: true })
  subject = (await createFlows(world).code({ person: 'eve', organization: 'acme' })).tokens.access_token
})
afterAll(() => world.close())

type Form = { readonly [name: string]: string }
const basic = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
const request = (): Form => ({
  ...{ client_id: 'flows', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid', state: 'st', nonce: 'n' },
  ...{ code_challenge: digestOf(VERIFIER), code_challenge_method: 'S256' },
})

describe('what a request says about its own address', () => {
  const LIES = [
    'Host: evil.example',
    'Host: evil.example:8443',
    'Host: evil.example\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 8443',
    'Host: evil.example\r\nForwarded: for=evil.example;host=evil.example;proto=https',
    'Host: evil.example\r\nX-Forwarded-Prefix: /evil.example\r\nX-Original-URL: /evil.example\r\nX-Rewrite-URL: /evil.example',
    'Host: evil.example\r\nX-Forwarded-Server: evil.example\r\nX-Host: evil.example\r\nX-Original-Host: evil.example',
    'Host: evil.example\r\nReferer: https://evil.example/\r\nX-Forwarded-Scheme: https\r\nFront-End-Https: on',
  ]
  const form = (path: string, body: Form) => [
    `POST ${path} HTTP/1.1`,
    'Content-Type: application/x-www-form-urlencoded',
    `Authorization: ${basic}`,
    `Content-Length: ${new URLSearchParams(body).toString().length}`,
    '',
    new URLSearchParams(body).toString(),
  ]
  const REQUESTS: { readonly [what: string]: () => readonly string[] } = {
    discovery: () => ['GET /.well-known/openid-configuration HTTP/1.1', '', ''],
    'server metadata': () => ['GET /.well-known/oauth-authorization-server HTTP/1.1', '', ''],
    'resource metadata': () => ['GET /.well-known/oauth-protected-resource HTTP/1.1', '', ''],
    keys: () => ['GET /oauth/jwks HTTP/1.1', '', ''],
    'a sign-in': () => [`GET /oauth/authorize?${new URLSearchParams(request())} HTTP/1.1`, '', ''],
    'a sign-in that fails': () => ['GET /oauth/authorize?client_id=flows HTTP/1.1', '', ''],
    'the device page': () => ['GET /oauth/device HTTP/1.1', '', ''],
    'the approval page': () => ['GET /oauth/approve HTTP/1.1', '', ''],
    'signing out': () => ['GET /oauth/logout HTTP/1.1', '', ''],
    'an interaction': () => ['GET /oauth/interaction/x HTTP/1.1', '', ''],
    UserInfo: () => ['GET /oauth/userinfo HTTP/1.1', '', ''],
    'a token': () => form('/oauth/token', { grant_type: 'client_credentials', client_id: 'flows' }),
    'a pushed request': () => form('/oauth/par', request()),
    'a device code': () => form('/oauth/device_authorization', { scope: 'openid' }),
    'a CIBA request': () => form('/oauth/bc-authorize', { scope: 'openid', login_hint: 'eve@x.example' }),
    introspection: () => form('/oauth/introspect', { token: subject }),
    'a wrong method': () => ['DELETE /oauth/token HTTP/1.1', '', ''],
  }
  test.each(Object.entries(REQUESTS))('shows nowhere in the answer to %s', async (_, lines) => {
    const answers = await Promise.all(LIES.map((lie) => raw(lines(), lie)))
    for (const answer of answers) {
      expect(answer).not.toContain('evil.example')
      // With its colon: the value of a form may have these digits by chance.
      expect(answer).not.toMatch(/:8443|https:\/\/127/)
      // Whatever is an address of ours begins with the issuer.
      for (const [address] of answer.matchAll(/https?:\/\/(?!app\.example|www\.w3\.org|schemas\.)[^\s"'<>;,\\]+/g)) {
        expect(address.startsWith(world.issuer)).toBe(true)
      }
      expect(answer).not.toMatch(/domain=/i)
    }
  })
})

/** `[request line, …fields, '', body]` with more fields; one connection each. */
function raw(lines: readonly string[], more: string): Promise<string> {
  const { hostname, port } = new URL(world.issuer)
  const end = lines.indexOf('')
  const head = [...lines.slice(0, end), more, 'Connection: close']
  return new Promise((done, fail) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${head.join('\r\n')}\r\n\r\n${lines.slice(end + 1).join('\r\n')}`),
    )
    let text = ''
    socket.on('data', (part) => {
      text += part
    })
    socket.on('end', () => done(text)).on('error', fail)
  })
}

describe('an issuer with TLS, behind a proxy that ends it', () => {
  const issuer = 'https://id.example.test'
  let url: string
  let close: () => Promise<void>
  beforeAll(async () => {
    const { sql, store, directory } = world
    const parts = {
      appendJournal,
      appendEvents,
      fetch: globalThis.fetch,
      masterKeys: masterKeysOf(MASTER_KEY),
      decoyHash: DECOY_HASH,
      clock: Date.now,
    }
    const deps = { ...parts, issuer, sql, store, directory, pdp: createPdp({ store }), log: logInto([]) }
    const identity = await createIdentity(deps)
    const routes = identity.routes(null)
    const server = createServer((req, res) => void routes.handle(req, res))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
    close = async () => {
      await identity.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    }
  })
  afterAll(() => close())

  test.each([{}, { 'x-forwarded-proto': 'http' }, { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' }])(
    'names itself with https and guards its cookies whatever the proxy says (%j)',
    async (headers) => {
      const metadata = await (await fetch(`${url}/.well-known/openid-configuration`, { headers })).text()
      expect(metadata).toContain(`"token_endpoint":"${issuer}/oauth/token"`)
      expect(metadata).not.toMatch(/http:|127\.0\.0\.1|evil/)
      const query = new URLSearchParams(request())
      const begun = await fetch(`${url}/oauth/authorize?${query}`, {
        headers: { ...headers, accept: 'text/html' },
        redirect: 'manual',
      })
      expect(begun.headers.get('location')).toMatch(/^(https:\/\/id\.example\.test)?\/oauth\/interaction\//)
      const cookies = begun.headers.getSetCookie()
      expect(cookies.length).toBeGreaterThan(0)
      for (const cookie of cookies) expect(cookie).toMatch(/; secure; httponly|; httponly; secure|secure/i)
      for (const cookie of cookies) expect(cookie).not.toMatch(/domain=/i)
    },
  )
})

describe('whether a person exists', () => {
  /** Time to the answer of one sign-in with a wrong password, and the answer without what differs by request. */
  async function attempt(email: string): Promise<{ ms: number; page: string; status: number }> {
    const browser = createBrowser(world.issuer)
    const begun = await browser.send(createFlow(world).authorizeUrl({}))
    const url = begun.headers.get('location') ?? ''
    const form = {
      ...hiddenFields(await (await browser.send(url)).text()),
      action: 'continue',
      email,
      password: 'wrong',
    }
    const startedMs = performance.now()
    const answer = await browser.send(url, { form })
    const text = await answer.text()
    // The link for a forgotten password names the sign-in to come back to.
    const uid = new URL(url, world.issuer).pathname.split('/').at(-1) ?? ''
    const page = text.replaceAll(email, 'E').replaceAll(uid, 'U')
    return { ms: performance.now() - startedMs, page, status: answer.status }
  }
  const PEOPLE = ['ann@x.example', 'bob@x.example']
  const NOBODY = ['nobody1@x.example', 'nobody2@x.example']
  const WITHOUT_PASSWORD = ['gus@x.example']
  const COSTS_KEPT_MS = 60_000

  test('cannot be told from the answer to a wrong password, nor from its time', async () => {
    // Hashes as they are made in service, for all: a cheap one would count as another system's, which unknown addresses imitate.
    await world.sql.query('update user_account set password_hash = $1 where password_hash is not null', [
      await hashSecret(PASSWORD),
    ])
    world.time.offsetMs += COSTS_KEPT_MS
    await attempt('somebody@x.example') // Costs are read again beside this one.
    const answers = new Set<string>()
    const fastest = [PEOPLE, NOBODY, WITHOUT_PASSWORD].map(() => Number.POSITIVE_INFINITY)
    const ratio = (): number => Math.max(...fastest) / Math.min(...fastest)
    // One scrypt takes a hundred milliseconds and more; without it an answer takes five. A busy machine gets more rounds.
    for (let round = 0; round < 2 || (round < 8 && ratio() >= 6); round += 1) {
      for (const [group, emails] of [PEOPLE, NOBODY, WITHOUT_PASSWORD].entries()) {
        const { ms, page, status } = await attempt(emails[round % emails.length] ?? '')
        answers.add(`${status} ${page}`)
        fastest[group] = Math.min(fastest[group] ?? ms, ms)
      }
    }
    expect(answers.size).toBe(1)
    expect(ratio()).toBeLessThan(6)
  })

  test('is told to a CIBA client only, whose protocol says so, and never to one that does not authenticate', async () => {
    const ask = (login_hint: string, authorization: string) =>
      fetch(`${world.issuer}/oauth/bc-authorize`, {
        method: 'POST',
        headers: { authorization },
        body: new URLSearchParams({ scope: 'openid', login_hint }),
      }).then(async (answer) => `${answer.status} ${await answer.text()}`)
    expect(await ask('nobody@x.example', basic)).toContain('"unknown_user_id"')
    const wrong = `Basic ${Buffer.from('flows:wrong').toString('base64')}`
    expect(await ask('nobody@x.example', wrong)).toBe(await ask('eve@x.example', wrong))
  })
})
