/** A second factor that a client, or the operator, demands: nobody comes in without, and who has none is led to adding one. */
import { beforeAll, describe, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { VERIFIER } from '../../flow.ts'
import { CONTEXT, decode, PASSWORD, postToken, REDIRECT } from '../../harness.ts'
import { codesIn, secretIn } from '../factors/own-factors.ts'
import { openSecondFactors } from './second-factors.ts'

const { scene, person, enroll, enrolled, codeAt, answers, authorize, atCodePage, giveCode } = openSecondFactors()
const STRICT = { client_id: 'strict' }

beforeAll(async () => {
  const { directory } = scene.world
  const web = await directory.client('web')
  if (web === null) throw new Error('no client web')
  const metadata = { ...web.metadata, require_second_factor: true }
  await directory.putClient({ ...web, id: 'strict', metadata }, CONTEXT)
})

const claimsOf = async (end: URL, id = 'strict') => {
  const code = end.searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
  return decode(String((await postToken(scene.world, form, { id })).body.id_token)).payload
}
const linkIn = (html: string, path: string): string => {
  const found = new RegExp(`href="(${path}[^"]*)"`).exec(html)?.[1]
  if (found === undefined) throw new Error(`no link to ${path}: ${html.slice(-900)}`)
  return found
}

/** Up to the page that asks for a second factor, after the password. */
async function atNeed(id: string, parameters = {}): Promise<{ html: string; uid: string }> {
  const { browser, flow } = scene
  let answer = await browser.send(flow.authorizeUrl({ ...STRICT, ...parameters }))
  let at = answer.headers.get('location') ?? ''
  answer = await browser.send(at, { form: { action: 'login', email: `${id}@x.example`, password: PASSWORD } })
  for (let hops = 0; hops < 5 && answer.status === 303; hops += 1) {
    at = answer.headers.get('location') ?? ''
    answer = await browser.send(at)
  }
  return { html: await answer.text(), uid: new URL(at, scene.world.issuer).pathname.split('/').at(-1) ?? '' }
}
/** Adds an app there; the page with the recovery codes. */
async function add(page: string, html: string): Promise<string> {
  const form = { ...hiddenFields(html), action: 'confirm', code: codeAt(secretIn(html)) }
  return (await scene.browser.send(page, { form })).text()
}
const goOn = (path: string): Promise<URL> =>
  scene.browser.follow(new URL(path, scene.world.issuer).href, () => ({ action: 'continue' }))

test('who is asked for a second factor can use another account', async () => {
  for (const id of [await person(), await enrolled().then(({ id: known }) => known)]) {
    scene.browser = createBrowser(scene.world.issuer)
    const { html, uid } = await atNeed(id)
    expect(html).toContain('>Use another account</button>')
    const answer = await scene.browser.send(`/oauth/interaction/${uid}`, { form: { action: 'switch' } })
    expect(await answer.text()).toContain('data-step="login"')
  }
})

describe('who has no second factor', () => {
  test('is led to adding an app, and goes on with the same sign-in, which counts as one by both', async () => {
    const { html } = await atNeed(await person())
    expect(html).toContain('A second factor is needed')
    const page = linkIn(html, '/account/authenticator')
    const done = await add(page, await (await scene.browser.send(page)).text())
    expect(codesIn(done)).toHaveLength(10)
    const claims = await claimsOf(await goOn(linkIn(done, '/oauth/interaction/')))
    expect(claims).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
  })

  test.each([{}, { acr_values: 'pwd' }, { acr_values: 'mfa' }, { prompt: 'login' }, { max_age: '0' }])(
    'gets no code without one, whatever the request says: %j',
    async (parameters) => {
      const { html, uid } = await atNeed(await person(), parameters)
      expect(html).toContain('A second factor is needed')
      for (const form of [
        { action: 'continue' },
        { action: 'consent' },
        { action: 'code', code: '000000' },
        { action: 'app' },
        { action: 'passkey_answer', credential: '{}', after_password: 'yes' },
      ]) {
        const answer = await scene.browser.send(`/oauth/interaction/${uid}`, { form })
        expect([answer.status, answer.headers.get('location')]).toEqual([expect.any(Number), null])
      }
      expect(await (await scene.browser.send(`/oauth/interaction/${uid}`)).text()).toContain(
        'A second factor is needed',
      )
    },
  )

  test('is told so with prompt=none', async () => {
    const id = await person()
    await authorize({}, answers(id))
    const end = await authorize({ ...STRICT, prompt: 'none' }, answers(id))
    expect(end.searchParams.get('error')).toBe('login_required')
  })

  test('can turn back, and the application learns it', async () => {
    const { uid } = await atNeed(await person())
    const end = await scene.browser.follow(new URL(`/oauth/interaction/${uid}`, scene.world.issuer).href, () => ({
      action: 'cancel',
    }))
    expect(end.searchParams.get('error')).toBe('access_denied')
  })

  test('is asked to sign in once more for that, after an older sign-in, and comes back', async () => {
    const id = await person()
    await authorize({}, answers(id))
    scene.world.time.offsetMs += 3_600_000
    const start = (await scene.browser.send(scene.flow.authorizeUrl(STRICT))).headers.get('location') ?? ''
    const page = linkIn(await (await scene.browser.send(start)).text(), '/account/authenticator')
    const signIn = (await scene.browser.send(page)).headers.get('location') ?? ''
    const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    const back = (await scene.browser.send(signIn, { form })).headers.get('location') ?? ''
    const done = await add(back, await (await scene.browser.send(back)).text())
    expect(await claimsOf(await goOn(linkIn(done, '/oauth/interaction/')))).toMatchObject({ acr: 'mfa' })
  })

  test('comes in without one where none is demanded', async () => {
    expect(await claimsOf(await authorize({}, answers(await person())), 'web')).toMatchObject({ acr: 'pwd' })
  })
})

describe('who has a second factor', () => {
  test('gives it as ever', async () => {
    const { id, secret } = await enrolled()
    expect(await claimsOf(await authorize(STRICT, answers(id, secret)))).toMatchObject({ acr: 'mfa' })
    expect(scene.steps).toEqual(['login', 'totp'])
  })

  test('is asked for that alone after a sign-in by password', async () => {
    const id = await person()
    await authorize({}, answers(id))
    const secret = await enroll(id)
    scene.steps = []
    expect(await claimsOf(await authorize(STRICT, answers(id, secret)))).toMatchObject({ acr: 'mfa' })
    expect(scene.steps[0]).toBe('totp')
  })

  test('may give a recovery code', async () => {
    const id = await person()
    const { html } = await atNeed(id)
    const page = linkIn(html, '/account/authenticator')
    const [code = ''] = codesIn(await add(page, await (await scene.browser.send(page)).text()))
    scene.browser = createBrowser(scene.world.issuer)
    const used = await (await giveCode(await atCodePage(id), code)).text()
    expect(used).toContain('You are signed in with a recovery code')
    await goOn(linkIn(used, '[^"]*/oauth/authorize/'))
    scene.steps = []
    expect(await claimsOf(await authorize(STRICT, answers(id)))).toMatchObject({ acr: 'mfa' })
    expect(scene.steps).not.toContain('totp')
  })
})

describe('a request without a browser', () => {
  async function asked() {
    const { directory } = scene.world
    const flows = await directory.client('flows')
    if (flows === null) throw new Error('no client flows')
    await directory.putClient({ ...flows, metadata: { ...flows.metadata, require_second_factor: true } }, CONTEXT)
    return { person: await person(), client: 'flows' }
  }

  test('is refused for who has none', async () => {
    const request = await asked()
    const { browser } = await scene.flows.startCiba(request)
    expect(await scene.flows.answerCiba(browser, request)).not.toContain('You approved')
  })

  test('of a device leads to adding one', async () => {
    const request = await asked()
    const { browser, started } = await scene.flows.startDevice(request)
    const end = scene.flows.answerDevice(browser, started.verification_uri, request, started.user_code)
    expect(await end).not.toContain('is connected')
  })
})

test.each([
  '//evil.test',
  '/\\evil.test',
  'https://evil.test',
  '..%2F..%2Flogout',
  'x"onclick="',
  '%0d%0aSet-Cookie:a=b',
])('the address of an account page leads to no other place: %s', async (from) => {
  await atNeed(await person())
  const html = await (await scene.browser.send(`/account/authenticator?sign_in=${from}`)).text()
  expect(html).toContain('href="/account"')
  expect(html).not.toMatch(/evil|onclick|logout|\.\.\//)
})

test('a sign-in of another browser is not taken over by its address', async () => {
  const { uid } = await atNeed(await person())
  const other = createBrowser(scene.world.issuer)
  const answer = await other.send(`/oauth/interaction/${uid}`)
  expect(answer.status).toBe(400)
})

describe('demanded by the operator', () => {
  const all = openSecondFactors({ requireSecondFactor: true })

  test('holds for every client', async () => {
    const id = await all.person()
    const end = all.authorize({}, (page) => {
      if (page.step === 'needed') throw new Error(page.html)
      return all.answers(id)(page)
    })
    await expect(end).rejects.toThrow('A second factor is needed')
  })

  test('lets people into their account, where they add one', async () => {
    const id = await all.person()
    const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    await all.scene.browser.send('/account/sign-in?to=/account/authenticator', { form })
    expect((await all.scene.browser.send('/account/authenticator')).status).toBe(200)
  })
})
