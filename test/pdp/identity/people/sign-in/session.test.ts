import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { createFlow } from '../../flow.ts'
import { createFlows } from '../../flows.ts'
import { CONTEXT, decode, openWorld, PASSWORD, REDIRECT, type World } from '../../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

const isActive = async (token: string) => (await world.identity.introspect(token)).active
const events = async () => {
  await numberEvents(world.sql)
  return world.sql.query<{ type: string; payload: object }>('select type, payload from outbox order by seq')
}
const signedIn = async (scope: string) => {
  const browser = createBrowser(world.issuer)
  return { browser, ...(await flows.code({ person: 'eve', organization: 'acme', scope, browser })) }
}

describe('signing out (RP-initiated logout)', () => {
  test('ends the session and its tokens, but not those of offline access, and reports it once', async () => {
    const online = await signedIn('openid')
    const offline = await flows.code({
      person: 'eve',
      organization: 'acme',
      client: 'tenant-flows',
      scope: 'openid offline_access',
      browser: online.browser,
    })
    const url = oauth.buildEndSessionUrl(online.config, {
      id_token_hint: online.tokens.id_token ?? '',
      post_logout_redirect_uri: REDIRECT,
      state: 'bye',
    })
    const before = (await events()).length
    const end = await online.browser.follow(url.href, () => ({ logout: 'yes' }))
    expect(end.href).toBe(`${REDIRECT}?state=bye`)
    expect(await isActive(online.tokens.access_token)).toBe(false)
    expect(await isActive(offline.tokens.access_token)).toBe(true)
    expect((await flows.refreshed(offline)).tokens.access_token).toBeTruthy()
    const reported = (await events()).slice(before)
    expect(reported).toEqual([
      {
        type: 'session.revoked',
        payload: { session: expect.any(String), user: 'eve', tenants: ['acme'], initiating_entity: 'user' },
      },
    ])
  })

  test('is not done by a form without its secret, or by a person who stays', async () => {
    const { browser, tokens } = await signedIn('openid')
    const page = await (await browser.send('/oauth/logout')).text()
    expect((await browser.send('/oauth/logout/confirm', { form: { logout: 'yes' } })).status).toBe(400)
    const again = await (await browser.send('/oauth/logout')).text()
    expect(page).toContain('Do you want to sign out')
    await browser.send('/oauth/logout/confirm', { form: hiddenFields(again) })
    expect(await isActive(tokens.access_token)).toBe(true)
  })

  test('goes nowhere that is not registered', async () => {
    const parameters = { client_id: 'flows', post_logout_redirect_uri: 'https://evil.example/' }
    const response = await fetch(`${world.issuer}/oauth/logout?${new URLSearchParams(parameters)}`)
    expect(response.status).toBe(400)
  })
})

describe('sessions ended from outside', () => {
  const sessionOf = async (token: string) => (await world.identity.record(token))?.sessionUid ?? ''

  test('take their tokens with them at once, on the next call', async () => {
    const one = await signedIn('openid')
    const two = await signedIn('openid')
    expect(await world.identity.sessions.revokeSession(await sessionOf(one.tokens.access_token), CONTEXT)).toBe(true)
    expect([await isActive(one.tokens.access_token), await isActive(two.tokens.access_token)]).toEqual([false, true])
    const page = await (await one.browser.send('/oauth/approve')).text()
    expect(page).toContain('Sign in')
  })

  test('of a person take offline tokens and tokens of other clients too, and nothing of anybody else', async () => {
    const offline = await signedIn('openid offline_access')
    const online = await signedIn('openid')
    const ann = await flows.code({ person: 'ann', organization: 'acme' })
    expect((await world.identity.sessions.revokeUser('eve', CONTEXT)).length).toBeGreaterThan(1)
    for (const { tokens } of [offline, online]) expect(await isActive(tokens.access_token)).toBe(false)
    await expect(flows.refreshed(offline)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect(await isActive(ann.tokens.access_token)).toBe(true)
    // She can sign in again: what was logged is about the old grants only.
    expect(await isActive((await signedIn('openid')).tokens.access_token)).toBe(true)
  })
})

describe('the browser of a person who is gone', () => {
  test('is asked to sign in, and anybody else can', async () => {
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    const gone = { id: 'gone', email: 'gone@x.example', emailVerified: true, name: null, passwordHash }
    await world.directory.putUser(gone, CONTEXT)
    const browser = createBrowser(world.issuer)
    await flows.code({ person: 'gone', scope: 'openid', browser })
    await world.directory.deleteUser('gone', CONTEXT)
    const pages: string[] = []
    const end = await browser.follow(createFlow(world).authorizeUrl({}), ({ step }) => {
      pages.push(step)
      return step === 'logout' ? { logout: 'yes' } : { action: 'login', email: 'eve@x.example', password: PASSWORD }
    })
    expect(pages).toEqual(['login', 'logout'])
    expect(end.searchParams.get('code')).not.toBeNull()
    expect(await (await browser.send('/oauth/approve')).text()).toContain('eve@x.example')
  })
})

describe('the record of a token', () => {
  test('says once and for all what the token depends on', async () => {
    const parent = await signedIn('openid')
    const child = await flows.exchangeOf(
      parent.tokens.access_token,
      { person: 'eve', client: 'gateway' },
      { scope: 'openid' },
    )
    const [a, b] = [
      await world.identity.record(parent.tokens.access_token),
      await world.identity.record(child.tokens.access_token),
    ]
    expect(a).toMatchObject({ grants: [a?.grantId], userId: 'eve', clientId: 'flows', sessionUid: expect.any(String) })
    expect(b?.grants.toSorted()).toEqual([a?.grantId, b?.grantId].toSorted())
    expect(b).toMatchObject({ clientId: 'gateway', sessionUid: a?.sessionUid, acr: 'pwd' })
    expect(await world.identity.record(child.tokens.access_token)).toBe(b)
    expect(await world.identity.isRevoked(b ?? expect.fail())).toBe(false)
    await world.sql.query("delete from oidc_record where kind = 'Grant' and id = $1", [a?.grantId])
    expect(await world.identity.isRevoked(b ?? expect.fail())).toBe(true)
  })

  test('is null for what is malformed, unknown, expired or dead already', async () => {
    const { tokens } = await signedIn('openid')
    expect(await world.identity.record('a.b.c')).toBeNull()
    await world.sql.query('delete from oidc_record where id = $1', [decode(tokens.access_token).payload.jti])
    expect(await world.identity.record(tokens.access_token)).toBeNull()
    const { tokens: late } = await signedIn('openid')
    expect(await world.identity.record(late.access_token)).not.toBeNull()
    world.time.offsetMs = 901_000
    expect(await world.identity.record(late.access_token)).toBeNull()
    world.time.offsetMs = 0
  })

  test('has no session for a token that outlives it', async () => {
    const { tokens } = await signedIn('openid offline_access')
    expect(await world.identity.record(tokens.access_token)).toMatchObject({ sessionUid: null })
  })
})

describe('step-up', () => {
  test('with an acr that a password gives asks nobody twice', async () => {
    const browser = createBrowser(world.issuer)
    const first = await flows.code({ person: 'eve', scope: 'openid', browser })
    expect(decode(first.tokens.id_token ?? '').payload.acr).toBe('pwd')
    const flow = createFlow(world)
    const end = await browser.follow(flow.authorizeUrl({ acr_values: 'mfa pwd' }), () => ({}))
    expect(end.searchParams.get('code')).not.toBeNull()
  })

  test.each([{}, { prompt: 'none' }])(
    'to an acr that is not to be had tells the client so (%j)',
    async (parameters) => {
      const flow = createFlow(world)
      const browser = createBrowser(world.issuer)
      await flows.code({ person: 'eve', scope: 'openid', browser })
      const end = await browser.follow(flow.authorizeUrl({ acr_values: 'mfa', ...parameters }), () => ({}))
      expect(end.searchParams.get('error')).toBe('unmet_authentication_requirements')
    },
  )

  test('by max_age asks for the password again, and the new sign-in shows', async () => {
    const browser = createBrowser(world.issuer)
    await flows.code({ person: 'eve', scope: 'openid', browser })
    const flow = createFlow(world)
    const steps: string[] = []
    await browser.follow(flow.authorizeUrl({ max_age: '0' }), ({ step }) => {
      steps.push(step)
      return { action: 'continue', email: 'eve@x.example', password: 'correct horse battery staple' }
    })
    expect(steps).toEqual(['login'])
    expect(await flow.errorOf({ max_age: '0', prompt: 'none' })).toBe('login_required')
  })
})
