import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../support/browser.ts'
import { CIBA, createFlows, DEVICE_CODE } from '../flows.ts'
import { CONTEXT, openWorld, PASSWORD, parseObject, postToken, SECRET, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const token = (form: Record<string, string>, id = 'flows', headers = {}) => postToken(world, form, { id, headers })
async function post(path: string, form: Record<string, string>, id: string | null = 'flows') {
  const authorization = `Basic ${Buffer.from(`${id}:${SECRET}`).toString('base64')}`
  const response = await fetch(world.issuer + path, {
    method: 'POST',
    headers: id === null ? {} : { authorization },
    body: new URLSearchParams(form),
  })
  return { status: response.status, body: parseObject(await response.text()) }
}

describe('the device grant (RFC 8628)', () => {
  const poll = (code: string, id = 'flows') => token({ grant_type: DEVICE_CODE, device_code: code }, id)

  test('says where to go, with which code, and how often to ask', async () => {
    const { body } = await post('/oauth/device_authorization', { scope: 'openid' })
    expect(body).toEqual({
      device_code: expect.any(String),
      user_code: expect.stringMatching(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/),
      verification_uri: `${world.issuer}/oauth/device`,
      verification_uri_complete: expect.stringContaining(`${world.issuer}/oauth/device?user_code=`),
      expires_in: 600,
      interval: 5,
    })
  })

  test('waits for the person, and tells a client that asks too often to slow down, longer each time', async () => {
    const { started } = await flows.startDevice(eve)
    expect((await poll(started.device_code)).body.error).toBe('authorization_pending')
    expect((await poll(started.device_code)).body.error).toBe('slow_down')
    world.time.offsetMs += 6_000
    expect((await poll(started.device_code)).body.error).toBe('slow_down')
    world.time.offsetMs += 16_000
    expect((await poll(started.device_code)).body.error).toBe('authorization_pending')
    world.time.offsetMs = 0
  })

  test('gives tokens once', async () => {
    const { started, browser } = await flows.startDevice(eve)
    await flows.answerDevice(browser, started.verification_uri, eve, started.user_code)
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(started.device_code)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await poll(started.device_code)).body.error).toBe('invalid_grant')
  })

  test('is stopped by a person who refuses, and by nobody else', async () => {
    const { started, browser } = await flows.startDevice(eve)
    expect((await poll(started.device_code, 'tenant-flows')).body.error).toBe('invalid_grant')
    const page = await (await browser.send('/oauth/device')).text()
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)?.[1] ?? ''
    const form = { xsrf, user_code: started.user_code, abort: 'yes' }
    expect(await (await browser.send('/oauth/device', { form })).text()).toContain('was stopped')
    expect((await poll(started.device_code)).body.error).toBe('access_denied')
  })

  test('expires, is for clients that have it, and knows no other code', async () => {
    const { started } = await flows.startDevice(eve)
    await world.sql.query(
      `update oidc_record set payload = jsonb_set(payload, '{exp}', '1') where kind = 'DeviceCode' and id = $1`,
      [createHash('sha256').update(started.device_code).digest('base64url')],
    )
    expect((await poll(started.device_code)).body.error).toBe('expired_token')
    expect((await poll('unknown')).body.error).toBe('invalid_grant')
    expect((await post('/oauth/device_authorization', { scope: 'openid' }, 'web')).status).toBe(400)
    expect((await post('/oauth/device_authorization', { scope: 'openid' }, null)).status).toBe(401)
    expect((await post('/oauth/device_authorization', { scope: 'decisions:read' })).body.error).toBe('invalid_scope')
    expect((await post('/oauth/device_authorization', { scope: 'openid', organization: '*' })).status).toBe(400)
  })

  test('shows the page again for a wrong code, and stops guessers', async () => {
    const browser = createBrowser(world.issuer)
    const attempt = async () => {
      const page = await (await browser.send('/oauth/device')).text()
      const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)?.[1] ?? ''
      return browser.send('/oauth/device', { form: { xsrf, user_code: '<b>-WRONG' } })
    }
    const answer = await attempt()
    expect(await answer.text()).toContain('There is no such code')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect((await browser.send('/oauth/device', { form: { user_code: 'AAAA-AAAA' } })).status).toBe(400)
    for (let i = 0; i < 100; i += 1) await attempt()
    expect((await attempt()).status).toBe(429)
    world.time.offsetMs += 61_000
    expect((await attempt()).status).toBe(200)
    world.time.offsetMs = 0
  })
})

describe('what the database holds', () => {
  test('redeems nothing: neither codes nor requests nor sessions are found in it, before and after the person answers', async () => {
    const device = await flows.startDevice(eve)
    const { started } = device
    const ciba = await flows.startCiba(eve)
    const bearers = [started.device_code, started.user_code.replace('-', ''), ciba.started.auth_req_id]
    const expectNone = async () => {
      const rows = await world.sql.query('select * from oidc_record')
      expect(rows.length).toBeGreaterThan(0)
      const held = JSON.stringify(rows)
      for (const bearer of bearers) expect(held.includes(bearer)).toBe(false)
      return rows.map((row) => ('id' in row ? String(row.id) : ''))
    }
    const ids = await expectNone()
    await device.browser.send('/oauth/device')
    await flows.answerDevice(device.browser, started.verification_uri, eve, started.user_code)
    const cookies = [...device.browser.cookies()].filter(([name]) => name.startsWith('portcullis_session'))
    expect(cookies.length).toBeGreaterThan(0)
    bearers.push(...cookies.filter(([name]) => !name.includes('.sig')).map(([, value]) => value))
    await expectNone()
    for (const id of ids) {
      expect((await token({ grant_type: DEVICE_CODE, device_code: id })).body.error).toBe('invalid_grant')
      expect((await token({ grant_type: CIBA, auth_req_id: id })).body.error).toBe('invalid_grant')
    }
    expect((await token({ grant_type: DEVICE_CODE, device_code: started.device_code })).status).toBe(200)
  })
})

describe('CIBA (poll)', () => {
  const poll = (id: string, client = 'flows') => token({ grant_type: CIBA, auth_req_id: id }, client)

  test('waits until the person approves on the page, once', async () => {
    const browser = createBrowser(world.issuer)
    const { started } = await flows.startCiba(eve)
    expect(started).toMatchObject({ expires_in: 300, interval: 5 })
    expect((await poll(started.auth_req_id)).body.error).toBe('authorization_pending')
    expect((await poll(started.auth_req_id)).body.error).toBe('slow_down')
    expect(await flows.answerCiba(browser, eve)).toContain('You approved')
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(started.auth_req_id)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('is refused by the person', async () => {
    const { started } = await flows.startCiba(eve)
    expect(await flows.answerCiba(createBrowser(world.issuer), eve, 'deny')).toContain('You refused')
    expect((await poll(started.auth_req_id)).body.error).toBe('access_denied')
  })

  test('shows a person only what is for them, and takes only forms of their own page', async () => {
    const { started } = await flows.startCiba(eve)
    const ann = createBrowser(world.issuer)
    expect(await flows.answerCiba(ann, { person: 'ann' })).toContain('This form has expired')
    const forged = await ann.send('/oauth/approve', { form: { action: 'approve', request: 'x', xsrf: 'x' } })
    expect(forged.status).toBe(400)
    const elsewhere = { form: { action: 'approve' }, headers: { origin: 'https://evil.example' } }
    expect((await ann.send('/oauth/approve', elsewhere)).status).toBe(400)
    expect((await poll(started.auth_req_id)).body.error).toMatch(/pending|slow_down/)
  })

  test('does not bind an organization that the person does not belong to', async () => {
    await flows.startCiba({ person: 'cy', organization: 'acme' })
    expect(await flows.answerCiba(createBrowser(world.issuer), { person: 'cy' })).toContain('Choose one')
  })

  test('asks for the password again when the sign-in is older than the client wants', async () => {
    const browser = createBrowser(world.issuer)
    const credentials = { email: 'gil@x.example', password: 'correct horse battery staple' }
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    const user = { id: 'gil', email: 'gil@x.example', emailVerified: true, name: null, passwordHash }
    await world.directory.putUser(user, CONTEXT)
    await browser.send('/oauth/approve', { form: { action: 'login', ...credentials } })
    await new Promise((done) => setTimeout(done, 1_100))
    const { started } = await flows.startCiba({ person: 'gil' }, { max_age: '0' })
    const approve = async () => {
      const page = await (await browser.send('/oauth/approve')).text()
      return (await browser.send('/oauth/approve', { form: { ...hiddenFields(page), action: 'approve' } })).text()
    }
    expect(await approve()).toContain('asks you to sign in again')
    await browser.send('/oauth/approve', { form: { action: 'login', ...credentials } })
    expect(await approve()).toContain('You approved')
    expect((await poll(started.auth_req_id)).status).toBe(200)
  })

  test.each([
    ['nobody of that name', { login_hint: 'nobody@x.example' }, 'unknown_user_id'],
    ['no hint', {}, 'invalid_request'],
    ['a login_hint_token', { login_hint_token: 'x' }, 'invalid_request'],
    [
      'a long binding message',
      { login_hint: 'eve@x.example', binding_message: 'x'.repeat(65) },
      'invalid_binding_message',
    ],
    ['an acr that is not to be had', { login_hint: 'eve@x.example', acr_values: 'phr' }, 'invalid_request'],
    ['no openid', { login_hint: 'eve@x.example', scope: 'email' }, 'invalid_request'],
  ])('is refused with %s', async (_, form, error) => {
    expect((await post('/oauth/bc-authorize', { scope: 'openid', ...form })).body.error).toBe(error)
  })

  test('of a tenant reaches its own people alone, and tells of others no more than of nobody', async () => {
    const ask = (person: string, form: Record<string, string> = {}) =>
      post('/oauth/bc-authorize', { scope: 'openid', login_hint: `${person}@x.example`, ...form }, 'tenant-flows')
    expect((await ask('eve')).status).toBe(200)
    const answers = await Promise.all([ask('nobody'), ask('cy'), ask('ann', { organization: 'beta' })])
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(answers[0]?.body.error).toBe('unknown_user_id')
    const waiting = await world.sql.query(
      "select 1 from oidc_record where kind = 'BackchannelAuthenticationRequest' and payload ->> 'accountId' = 'cy' and payload ->> 'clientId' = 'tenant-flows'",
    )
    expect(waiting).toEqual([])
  })

  test('of a tenant is shown no more to a person who has left it', async () => {
    const person = { person: 'eve', client: 'tenant-flows' }
    await flows.startCiba(person, { binding_message: 'words-of-the-tenant' })
    const browser = createBrowser(world.issuer)
    await browser.send('/oauth/approve', { form: { action: 'login', email: 'eve@x.example', password: PASSWORD } })
    const page = async () => (await browser.send('/oauth/approve')).text()
    const set = (status: 'active' | 'suspended') =>
      world.store.write('acme', [{ kind: 'membership', user: 'eve', membership: { role: 'developer', status } }], {
        context: CONTEXT,
      })
    expect(await page()).toContain('words-of-the-tenant')
    await set('suspended')
    expect(await page()).not.toContain('words-of-the-tenant')
    await set('active')
    expect(await page()).toContain('words-of-the-tenant')
  })

  test('is for confidential clients that have it', async () => {
    const form = { scope: 'openid', login_hint: 'eve@x.example' }
    expect((await post('/oauth/bc-authorize', form, 'web')).status).toBe(400)
    expect((await post('/oauth/bc-authorize', { ...form, client_id: 'public-flows' }, null)).status).toBe(400)
    expect((await poll('unknown')).body.error).toBe('invalid_grant')
  })
})
