/** OpenID Connect Core section 3.1.2.1: who asks for a certain person gets no other one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowser } from '../../../support/browser.ts'
import { answerPage } from '../../../support/sign-in.ts'
import { createFlow } from '../flow.ts'
import { createFlows, DEVICE_CODE } from '../flows.ts'
import { openWorld, parseObject, postToken, SECRET, type World } from '../harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let flow: ReturnType<typeof createFlow>
/** An ID token of Ann's. */
let hint: string
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  flow = createFlow(world)
  hint = (await flows.code({ person: 'ann', organization: 'acme' })).tokens.id_token ?? ''
})
afterAll(() => world.close())

const REQUEST = { client_id: 'flows', organization: 'acme' }

/** The page on which one person takes the place of another. */
const HAND_OVER = { logout: 'yes' }
/** By what the request travels. */
const WAYS: { readonly [way: string]: (more?: { readonly prompt: string }) => Promise<string> } = {
  'the address': async (more) => flow.authorizeUrl({ ...REQUEST, ...more, id_token_hint: hint }),
  'a pushed request': async (more) => {
    const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
    const body = new URL(flow.authorizeUrl({ ...REQUEST, ...more, id_token_hint: hint })).searchParams
    const pushed = await fetch(`${world.issuer}/oauth/par`, { method: 'POST', headers: { authorization }, body })
    const { request_uri } = parseObject(await pushed.text())
    return `${world.issuer}/oauth/authorize?${new URLSearchParams({ client_id: 'flows', request_uri: String(request_uri) })}`
  },
}

describe.each(Object.entries(WAYS))('a hint by %s', (_way, urlOf) => {
  test('lets the person go on that it names', async () => {
    const url = await urlOf()
    const end = await createBrowser(world.issuer).follow(url, (page) => answerPage(page, flow.as('ann')))
    expect(end.searchParams.get('code')).toEqual(expect.any(String))
  })

  test('gives no code for another one who signs in', async () => {
    const url = await urlOf()
    const end = await createBrowser(world.issuer).follow(url, (page) => answerPage(page, flow.as('eve')))
    expect([end.searchParams.get('error'), end.searchParams.get('code')]).toEqual(['login_required', null])
  })

  test('asks who is signed in as another one to sign in, and takes nobody but the person', async () => {
    for (const [person, error] of [
      ['eve', 'login_required'],
      ['ann', null],
    ] as const) {
      const browser = createBrowser(world.issuer)
      await browser.follow(flow.authorizeUrl(REQUEST), (page) => answerPage(page, flow.as('eve')))
      const steps: string[] = []
      const end = await browser.follow(await urlOf(), (page) => {
        steps.push(page.step)
        return page.step === 'logout' ? HAND_OVER : answerPage(page, flow.as(person))
      })
      expect(steps[0]).toBe('login')
      expect(end.searchParams.get('error')).toBe(error)
    }
  })

  test('holds to the end, also when another one signs in on the page for consent', async () => {
    const steps: string[] = []
    const end = await createBrowser(world.issuer).follow(await urlOf({ prompt: 'consent' }), (page) => {
      steps.push(page.step)
      if (page.step === 'logout') return HAND_OVER
      return answerPage({ ...page, step: 'login' }, flow.as(page.step === 'consent' ? 'eve' : 'ann'))
    })
    expect([steps, end.searchParams.get('error')]).toEqual([['login', 'consent', 'logout'], 'login_required'])
  })
})

test('a hint by a device gives no token for another one who signs in', async () => {
  const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
  const started = await fetch(`${world.issuer}/oauth/device_authorization`, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams({ scope: 'openid', organization: 'acme', id_token_hint: hint }),
  })
  const { verification_uri: uri, user_code: code, device_code } = parseObject(await started.text())
  await flows.answerDevice(createBrowser(world.issuer), String(uri), { person: 'eve' }, String(code))
  const answer = await postToken(world, { grant_type: DEVICE_CODE, device_code: String(device_code) }, { id: 'flows' })
  expect([answer.status, answer.body.access_token]).toEqual([400, undefined])
})

describe('a request of CIBA', () => {
  const start = async (more: Record<string, string>) => {
    const authorization = `Basic ${Buffer.from(`flows:${SECRET}`).toString('base64')}`
    const form = { scope: 'openid', login_hint: 'eve@x.example', binding_message: 'W4SCT', ...more }
    const body = new URLSearchParams(form)
    const answer = await fetch(`${world.issuer}/oauth/bc-authorize`, {
      method: 'POST',
      headers: { authorization },
      body,
    })
    return parseObject(await answer.text())
  }

  test.each([
    [undefined, 300],
    ['30', 30],
    ['600', 600],
    ['86400', 600],
  ])('that asks for an end in %s seconds ends in %d', async (asked, seconds) => {
    const { expires_in } = await start(asked === undefined ? {} : { requested_expiry: asked })
    expect(expires_in).toBe(seconds)
  })

  test.each(['0', '-1', '1.5', 'soon'])('that asks for an end in %s is refused', async (asked) => {
    expect((await start({ requested_expiry: asked })).error).toBe('invalid_request')
  })

  test('with a user code is refused, as the metadata says: nobody would verify it', async () => {
    expect((await start({ user_code: '1234' })).error).toBe('invalid_request')
    for (const path of ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']) {
      const metadata = parseObject(await (await fetch(world.issuer + path)).text())
      expect([path, metadata.backchannel_user_code_parameter_supported]).toEqual([path, false])
    }
  })
})
