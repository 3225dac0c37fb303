/** RFC 6750, 7662, 8693, 9470 and 9728: items of their checklists that no other file is about. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { remoteKeys } from '../../../../pdp/shared/token/remote-keys.ts'
import { createBrowser } from '../../../support/browser.ts'
import { clientToken } from '../../../support/sign-in.ts'
import { createFlow } from '../flow.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../flows.ts'
import { CONTEXT, decode, openWorld, parseObject, postToken, SECRET, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld({ fetch: async () => new Response(JSON.stringify({ claims: hookClaims })) })
  flows = createFlows(world)
})
afterAll(() => world.close())

let hookClaims: object = {}
const eve = { person: 'eve', organization: 'acme' }
const userinfo = (init: RequestInit) => fetch(`${world.issuer}/oauth/userinfo`, init)
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const introspect = async (token: string) => {
  const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
  const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token }) }
  return parseObject(await (await fetch(`${world.issuer}/oauth/introspect`, init)).text())
}
const revoke = (token: string) => {
  const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
  const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token }) }
  return fetch(`${world.issuer}/oauth/revoke`, init)
}

describe('a token that is no longer good (RFC 6750 section 3.1)', () => {
  const expectInvalid = async (token: string) => {
    const answer = await userinfo(bearer(token))
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token"/)
    expect(await introspect(token)).toEqual({ active: false })
  }

  test('is invalid_token when it has expired', async () => {
    const { access_token: token } = (await flows.code(eve)).tokens
    world.time.offsetMs = 901_000
    await expectInvalid(token)
    world.time.offsetMs = 0
    expect((await userinfo(bearer(token))).status).toBe(200)
  })

  test('is invalid_token when it was revoked, its session ended, or its parent was revoked', async () => {
    const revoked = (await flows.code(eve)).tokens.access_token
    expect((await revoke(revoked)).status).toBe(200)
    await expectInvalid(revoked)

    const browser = createBrowser(world.issuer)
    const online = (await flows.code({ ...eve, scope: 'openid', browser })).tokens.access_token
    const session = (await world.identity.record(online))?.sessionUid ?? ''
    await world.identity.sessions.revokeSession(session, CONTEXT)
    await expectInvalid(online)

    const parent = (await flows.code(eve)).tokens.access_token
    const child = await flows.exchangeOf(parent, { person: 'eve', client: 'gateway' }, { scope: 'openid' })
    expect((await userinfo(bearer(child.tokens.access_token))).status).toBe(200)
    await revoke(parent)
    await expectInvalid(child.tokens.access_token)
  })
})

describe('a token in a body (RFC 6750 section 2.2)', () => {
  test.each([
    ['JSON', 'application/json', (token: string) => JSON.stringify({ access_token: token })],
    ['plain text', 'text/plain', (token: string) => `access_token=${token}`],
    [
      'parts',
      'multipart/form-data; boundary=b',
      (token: string) => `--b\r\ncontent-disposition: form-data; name="access_token"\r\n\r\n${token}\r\n--b--`,
    ],
  ])('is not looked for in %s', async (_, type, write) => {
    const body = write((await flows.code(eve)).tokens.access_token)
    const answer = await userinfo({ method: 'POST', headers: { 'content-type': type }, body })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).not.toContain('error=')
  })

  test('is not looked for in the body of a GET', async () => {
    const body = `access_token=${(await flows.code(eve)).tokens.access_token}`
    const { hostname, port } = new URL(world.issuer)
    const text = await new Promise<string>((done, fail) => {
      const head = ['GET /oauth/userinfo HTTP/1.1', 'Host: x', 'Connection: close', `Content-Length: ${body.length}`]
      const lines = [...head, 'Content-Type: application/x-www-form-urlencoded', '', body].join('\r\n')
      const socket = connect(Number(port), hostname, () => socket.write(lines))
      let received = ''
      socket.on('data', (part) => {
        received += part
      })
      socket.on('end', () => done(received)).on('error', fail)
    })
    expect(text).toMatch(/^HTTP\/1.1 401 /)
  })
})

describe('a challenge', () => {
  test.each([
    ['nothing', {}],
    ['a bad token', bearer('a.b.c')],
    ['a bad bound token', { headers: { authorization: 'DPoP a.b.c' } }],
    ['two tokens', { headers: { authorization: 'Bearer a, Bearer b' } }],
  ])('to %s has one part for each scheme, and no attribute twice', async (_, init) => {
    const challenge = (await userinfo(init)).headers.get('www-authenticate') ?? ''
    const parts = challenge.split(/, (?=(?:Bearer|DPoP) )/)
    expect(new Set(parts.map((part) => part.split(' ', 1)[0])).size).toBe(parts.length)
    for (const part of parts) {
      const names = [...part.matchAll(/([a-z_]+)="[\x20\x21\x23-\x5b\x5d-\x7e]*"/g)].map(([, name]) => name)
      expect(names.length).toBeGreaterThan(0)
      expect(new Set(names).size).toBe(names.length)
      expect(part.replaceAll(/[a-z_]+="[^"]*"(, )?/g, '').trim()).toMatch(/^(Bearer|DPoP)$/)
    }
  })
})

describe('metadata (RFC 8414, 9728)', () => {
  const read = async (path: string) => parseObject(await (await fetch(world.issuer + path)).text())

  test.each(['/.well-known/oauth-protected-resource', '/.well-known/openid-configuration'])(
    'at %s leaves out what would be empty',
    async (path) => {
      for (const [name, value] of Object.entries(await read(path))) {
        expect([name, value === null || value === '' || (Array.isArray(value) && value.length === 0)]).toEqual([
          name,
          false,
        ])
      }
    },
  )

  test('of the resource names an authorization server that says the same of itself', async () => {
    const resource = await read('/.well-known/oauth-protected-resource')
    expect(resource.resource).toBe(world.issuer)
    expect(resource.authorization_servers).toEqual([world.issuer])
    const server = await read('/.well-known/oauth-authorization-server')
    expect(server.issuer).toBe(world.issuer)
    expect(server.jwks_uri).toBe(resource.jwks_uri)
    expect(server.protected_resources).toEqual([world.issuer])
    expect(resource).not.toHaveProperty('signed_metadata')
  })

  test('of another issuer may have members that we do not know', async () => {
    const jwks = { keys: world.identity.publicKeys(), unknown: { nested: [1] } }
    const metadata = { issuer: 'https://as.test', jwks_uri: 'https://as.test/jwks', signed_metadata: 'x', unknown: 7 }
    const keys = remoteKeys({
      issuer: 'https://as.test',
      fetch: async (url) => Response.json(url.endsWith('/jwks') ? jwks : metadata),
      clock: Date.now,
    })
    const kid = world.identity.publicKeys()[0]?.kid ?? null
    expect(await keys.find({ kid, algorithm: 'RS256' })).toHaveLength(1)
  })
})

describe('introspection (RFC 7662)', () => {
  test('calls a code, a device code, a CIBA request, a session and an interaction inactive', async () => {
    const browser = createBrowser(world.issuer)
    const flow = createFlow(world)
    const code = await flow.newCode()
    await flows.code({ ...eve, browser })
    const { started } = await flows.startDevice(eve)
    const ciba = await flows.startCiba(eve)
    const session = browser.cookies().get('portcullis_session') ?? ''
    for (const text of [code, started.device_code, started.user_code, ciba.started.auth_req_id, session]) {
      expect(text.length).toBeGreaterThan(8)
      expect(await introspect(text)).toEqual({ active: false })
    }
  })
})

describe('token exchange (RFC 8693)', () => {
  const exchange = (form: Record<string, string>) =>
    postToken(world, { grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN, ...form }, { id: 'gateway' })
  const refused = { status: 400, body: { error: 'invalid_request' } }

  test('is refused for a subject or an actor that has expired or was revoked', async () => {
    const subject = (await flows.code(eve)).tokens.access_token
    const revoked = (await flows.code(eve)).tokens.access_token
    await revoke(revoked)
    expect(await exchange({ subject_token: revoked })).toMatchObject(refused)
    const actor = { actor_token: revoked, actor_token_type: ACCESS_TOKEN }
    expect(await exchange({ subject_token: subject, ...actor })).toMatchObject(refused)
    world.time.offsetMs = 901_000
    expect(await exchange({ subject_token: subject })).toMatchObject(refused)
    world.time.offsetMs = 0
    expect((await exchange({ subject_token: subject })).status).toBe(200)
  })

  test('reads the tier of now, and gives a token that ends with the one that it came from', async () => {
    const set = (role: 'developer' | 'viewer', status: 'active' | 'suspended' = 'active') =>
      world.store.write('acme', [{ kind: 'membership', user: 'eve', membership: { role, status } }], {
        context: CONTEXT,
      })
    const subject = (await flows.code(eve)).tokens.access_token
    const claims = async () => decode(String((await exchange({ subject_token: subject })).body.access_token)).payload
    await set('viewer')
    expect(await claims()).toMatchObject({ org: 'acme', org_role: 'viewer' })
    expect(Number((await claims()).exp)).toBeLessThanOrEqual(Number(decode(subject).payload.exp))
    await set('viewer', 'suspended')
    expect(await claims()).not.toHaveProperty('org_role')
    await set('developer')
  })

  test('knows nobody who may act but whoever shows a token: no hook can say so', async () => {
    await world.identity.hook.configure({ url: 'https://hook.example/', secret: 'a-secret-of-the-hook' }, CONTEXT)
    hookClaims = { may_act: { sub: 'robot' }, act: { sub: 'robot' }, added: true }
    const { access_token: subject } = (await flows.code(eve)).tokens
    await world.identity.hook.configure(null, CONTEXT)
    expect(decode(subject).payload).toMatchObject({ added: true })
    for (const claim of ['may_act', 'act']) expect(decode(subject).payload).not.toHaveProperty(claim)
  })

  test('names as actor whom the actor token is about, whoever asks', async () => {
    const subject = (await flows.code(eve)).tokens.access_token
    const ann = (await flows.code({ person: 'ann', organization: 'acme' })).tokens.access_token
    const robot = (await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET })).access_token
    for (const [actor, sub] of [
      [ann, 'ann'],
      [robot, 'robot'],
    ] as const) {
      const { body } = await exchange({ subject_token: subject, actor_token: actor, actor_token_type: ACCESS_TOKEN })
      expect(decode(String(body.access_token)).payload).toMatchObject({ sub: 'eve', act: { sub } })
    }
  })
})

describe('step-up (RFC 9470)', () => {
  test('to what nobody can give ends with an error, and not with the same question again', async () => {
    const browser = createBrowser(world.issuer)
    const flow = createFlow(world)
    const steps: string[] = []
    const end = await browser.follow(flow.authorizeUrl({ acr_values: 'urn:example:gold' }), ({ step }) => {
      steps.push(step)
      return { action: 'continue', email: 'eve@x.example', password: 'correct horse battery staple' }
    })
    expect(end.searchParams.get('error')).toBe('unmet_authentication_requirements')
    expect(steps.length).toBeLessThanOrEqual(1)
  })

  test('shows in introspection, not in the token, and a later sign-in shows with a later time', async () => {
    const browser = createBrowser(world.issuer)
    const first = (await flows.code({ ...eve, scope: 'openid', browser })).tokens
    const before = await introspect(first.access_token)
    expect(decode(first.access_token).payload).not.toHaveProperty('auth_time')
    expect(before.auth_time).toBe(decode(first.id_token ?? '').payload.auth_time)
    await new Promise((done) => setTimeout(done, 1_100))
    const flow = createFlow(world)
    const end = await browser.follow(flow.authorizeUrl({ max_age: '0' }), () => ({
      action: 'continue',
      email: 'eve@x.example',
      password: 'correct horse battery staple',
    }))
    const { body } = await flow.redeem(end.searchParams.get('code') ?? '')
    const after = await introspect(String(body.access_token))
    expect(Number(after.auth_time)).toBeGreaterThan(Number(before.auth_time))
  })
})
