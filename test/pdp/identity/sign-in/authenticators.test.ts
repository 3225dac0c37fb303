/** Devices, the page for CIBA requests, and authenticators as the management API changes them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { codeOf } from '../../../support/authenticator.ts'
import { type Answer, type Browser, createBrowser, hiddenFields, type PageForm } from '../../../support/browser.ts'
import { createFlow } from '../flow.ts'
import { createFlows } from '../flows.ts'
import { CONTEXT, decode, openWorld, PASSWORD, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
  flows = createFlows(world)
})
afterAll(() => world.close())

let browser: Browser
let steps: string[]
/** The clock of the service, two seconds into a time step: no test runs into the next one. */
let offsetMs = 0
beforeEach(() => {
  browser = createBrowser(world.issuer)
  steps = []
  offsetMs = 32_000 - (Date.now() % 30_000)
  world.time.offsetMs = offsetMs
})

/** A person of their own for each test, with one membership. */
let people = 0
async function person(): Promise<string> {
  const id = `p${++people}`
  const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
  await world.directory.putUser({ id, email: `${id}@x.example`, emailVerified: true, name: id, passwordHash }, CONTEXT)
  const membership = { role: 'viewer', status: 'active' } as const
  await world.store.write('acme', [{ kind: 'membership', user: id, membership }], { context: CONTEXT })
  return id
}
const enroll = async (id: string) => (await world.identity.secondFactor.enroll(id, CONTEXT)).secret
async function enrolled(): Promise<{ id: string; secret: string }> {
  const id = await person()
  return { id, secret: await enroll(id) }
}
const now = () => Date.now() + world.time.offsetMs
/** Codes are good once, so a test that needs several takes them one step apart. */
const codeAt = (secret: string, step = 0) => codeOf(secret, now() + step * 30_000)

/** Answers each page as the person would; what the pages were is in `steps`. */
const answers =
  (id: string, secret?: string, step = 0) =>
  (page: PageForm): Answer => {
    steps.push(page.step)
    if (page.step === 'login') return { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    if (page.step === 'totp') return { action: 'code', code: secret === undefined ? '000000' : codeAt(secret, step) }
    return { action: 'continue' }
  }
const authorize = (parameters: { [name: string]: string }, answer: (page: PageForm) => Answer) =>
  browser.follow(flow.authorizeUrl(parameters), answer)
async function idToken(end: URL) {
  const answer = await flow.redeem(end.searchParams.get('code') ?? '')
  return { id: decode(String(answer.body.id_token)).payload, access: String(answer.body.access_token) }
}
/** Starts a sign-in and gives the password; the page for the code, and where it is. */
async function atCodePage(id: string): Promise<{ path: string; html: string }> {
  const path = (await browser.send(flow.authorizeUrl({}))).headers.get('location') ?? ''
  const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
  return { path, html: await (await browser.send(path, { form })).text() }
}
const giveCode = (at: { path: string; html: string }, code: string) =>
  browser.send(at.path, { form: { ...hiddenFields(at.html), action: 'code', code } })

describe('a device', () => {
  test('is connected by the same rules', async () => {
    const { id, secret } = await enrolled()
    const { config, started } = await flows.startDevice({ person: id, scope: 'openid' })
    await expect(
      browser.follow(started.verification_uri, (page) => {
        if (page.step === 'code') return { user_code: started.user_code }
        return page.step === 'confirm' ? { confirm: 'yes' } : answers(id, secret)(page)
      }),
    ).rejects.toThrow('is connected')
    expect(steps).toEqual(['login', 'totp', 'consent'])
    const { pollDeviceAuthorizationGrant } = await import('openid-client')
    const tokens = await pollDeviceAuthorizationGrant(config, { ...started, interval: 0.01 })
    expect(decode(tokens.id_token ?? '').payload).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
  })
})

describe('the page for CIBA requests', () => {
  const page = async (form?: Answer) => (await browser.send('/oauth/approve', form && { form })).text()
  const login = (id: string) => page({ action: 'login', email: `${id}@x.example`, password: PASSWORD })

  test('asks for password and code, and the token says so', async () => {
    const { id, secret } = await enrolled()
    const { config, started } = await flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
    const asked = await login(id)
    expect(asked).toContain('autocomplete="one-time-code"')
    expect(await page({ ...hiddenFields(asked), action: 'code', code: '000000' })).toContain('The code is not right')
    const listed = await page({ ...hiddenFields(asked), action: 'code', code: codeAt(secret) })
    expect(await page({ ...hiddenFields(listed), action: 'approve' })).toContain('You approved')
    const { pollBackchannelAuthenticationGrant } = await import('openid-client')
    const tokens = await pollBackchannelAuthenticationGrant(config, { ...started, interval: 0.01 })
    expect(decode(tokens.id_token ?? '').payload).toMatchObject({ acr: 'mfa' })
  })

  test('adds the code to a sign-in by password when a request asks for it', async () => {
    const id = await person()
    await login(id)
    const secret = await enroll(id)
    const { config, started } = await flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
    const asked = await page({ ...hiddenFields(await page()), action: 'approve' })
    expect(asked).toContain('An application asks for a code as well')
    expect(await page({ xsrf: 'wrong', action: 'code', code: codeAt(secret) })).toContain('data-step="login"')
    const listed = await page({ ...hiddenFields(asked), action: 'code', code: codeAt(secret) })
    expect(await page({ ...hiddenFields(listed), action: 'approve' })).toContain('You approved')
    const { pollBackchannelAuthenticationGrant } = await import('openid-client')
    const tokens = await pollBackchannelAuthenticationGrant(config, { ...started, interval: 0.01 })
    expect(decode(tokens.id_token ?? '').payload.acr).toBe('mfa')
  })

  test('refuses a request for a code of who has no authenticator', async () => {
    const id = await person()
    const { config, started } = await flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
    expect(await page({ ...hiddenFields(await login(id)), action: 'approve' })).toContain('and you have none')
    const { pollBackchannelAuthenticationGrant } = await import('openid-client')
    await expect(pollBackchannelAuthenticationGrant(config, { ...started, interval: 0.01 })).rejects.toMatchObject({
      error: 'access_denied',
    })
  })
})

describe('an authenticator', () => {
  test('is there once, sealed, and in the log of the directory', async () => {
    const { id, secret } = await enrolled()
    await expect(enroll(id)).rejects.toMatchObject({ code: 'conflict' })
    await expect(enroll('nobody')).rejects.toMatchObject({ code: 'not_found' })
    const rows = await world.sql.query<{ row: string }>(
      'select a::text as row from authenticator a where user_id = $1',
      [id],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0]?.row).not.toContain(secret)
    const [entry] = await world.sql.query<{ change: object; actor: string }>(
      "select change, actor from change_log where organization_id = '#directory' order by revision desc limit 1",
    )
    expect(entry).toEqual({ change: { kind: 'authenticator', id, op: 'write' }, actor: 'test' })
  })

  test('does not open for another person, whoever wrote the row', async () => {
    const [one, two] = [await enrolled(), await enrolled()]
    await world.sql.query(
      'update authenticator set secret_sealed = (select secret_sealed from authenticator where user_id = $1) where user_id = $2',
      [one.id, two.id],
    )
    expect((await giveCode(await atCodePage(two.id), codeAt(one.secret))).status).toBe(500)
  })

  test('that is taken away ends the sessions and tokens of its user, and the password is enough again', async () => {
    const { id, secret } = await enrolled()
    const { access } = await idToken(await authorize({}, answers(id, secret)))
    expect(await world.identity.secondFactor.remove(id, CONTEXT)).toBe(true)
    expect(await world.identity.introspect(access)).toEqual({ active: false })
    expect(await world.identity.secondFactor.remove(id, CONTEXT)).toBe(false)
    steps = []
    expect((await idToken(await authorize({}, answers(id)))).id.acr).toBe('pwd')
    expect(steps).toEqual(['login'])
  })
})
