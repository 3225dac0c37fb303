import { describe, expect, test } from 'vitest'
import { createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { CONTEXT, PASSWORD, parseObject } from '../../harness.ts'
import { openSecondFactors } from './second-factors.ts'

const { scene, person, enroll, enrolled, codeAt, answers, authorize, idToken, atCodePage, giveCode } =
  openSecondFactors()
const later = (ms: number): void => {
  scene.world.time.offsetMs = scene.offsetMs + ms
}

describe('who has an authenticator', () => {
  test('is always asked for its code after the password, and the sign-in says so', async () => {
    const { id, secret } = await enrolled()
    const { id: claims, access } = await idToken(await authorize({}, answers(id, secret)))
    expect(scene.steps).toEqual(['login', 'totp'])
    expect(claims).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'], auth_time: expect.any(Number) })
    expect(await scene.world.identity.introspect(access)).toMatchObject({ acr: 'mfa', authTime: claims.auth_time })
  })

  test('is asked on a page that works without scripts and may not be framed, cached or made to load anything', async () => {
    const { id } = await enrolled()
    const path = (await scene.browser.send(scene.flow.authorizeUrl({}))).headers.get('location') ?? ''
    const response = await scene.browser.send(path, {
      form: { action: 'login', email: `${id}@x.example`, password: PASSWORD },
    })
    const html = await response.text()
    expect(response.status).toBe(200)
    expect(html).toContain('<label for="code">')
    expect(html).toContain('autocomplete="one-time-code"')
    expect(html).not.toMatch(/<script|correct horse/)
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('gets no token from any grant with a password alone', async () => {
    const { id } = await enrolled()
    const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    expect(await (await scene.browser.send('/oauth/approve', { form })).text()).toContain('Enter your code')
    expect(await (await scene.browser.send('/oauth/approve')).text()).toContain('data-step="login"')
    await expect(scene.flows.code({ person: id })).rejects.toThrow(/no end after/)
  })

  test.each(['pwd', 'mfa', 'phr mfa', 'pwd mfa'])('can be asked for acr_values=%s', async (acr) => {
    const { id, secret } = await enrolled()
    const end = await authorize({ acr_values: acr }, answers(id, secret))
    expect(scene.steps).toEqual(['login', 'totp'])
    expect((await idToken(end)).id.acr).toBe('mfa')
  })
})

describe('a code', () => {
  test.each(['000000', '', '12345', '1234567', 'abcdef', '١٢٣٤٥٦'])('that is %j is refused', async (code) => {
    const { id } = await enrolled()
    const refused = await giveCode(await atCodePage(id), code)
    expect(refused.status).toBe(400)
    expect(await refused.text()).toContain('<p role="alert" id="problem">The code is not right')
  })

  test('may be one step old or early, not two', async () => {
    for (const [step, status] of [
      [-2, 400],
      [-1, 303],
      [1, 303],
      [2, 400],
    ] as const) {
      const { id, secret } = await enrolled()
      scene.browser = createBrowser(scene.world.issuer)
      expect([step, (await giveCode(await atCodePage(id), codeAt(secret, step))).status]).toEqual([step, status])
    }
  })

  test('is good once, and no older one after it', async () => {
    const { id, secret } = await enrolled()
    const [current, older] = [codeAt(secret), codeAt(secret, -1)]
    expect((await giveCode(await atCodePage(id), current)).status).toBe(303)
    for (const code of [current, older]) expect((await giveCode(await atCodePage(id), code)).status).toBe(400)
  })

  test('is good for one of 20 that give it at the same time', async () => {
    const { id, secret } = await enrolled()
    const page = await atCodePage(id)
    const code = codeAt(secret)
    const answers = await Promise.all(Array.from({ length: 20 }, () => giveCode(page, code)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
  })

  test('of another person, or of an authenticator that is gone, is refused', async () => {
    const [one, two] = [await enrolled(), await enrolled()]
    expect((await giveCode(await atCodePage(one.id), codeAt(two.secret))).status).toBe(400)
    const page = await atCodePage(two.id)
    await scene.world.identity.secondFactor.remove(two.id, null, CONTEXT)
    expect((await giveCode(page, codeAt(two.secret))).status).toBe(400)
  })

  test('is counted together with passwords: after ten wrong ones both wait, and the right password gives no new tries', async () => {
    const { id, secret } = await enrolled()
    for (let i = 0; i < 10; i += 1) {
      const page = await atCodePage(id) // the right password, again and again
      expect((await giveCode(page, '000000')).status).toBe(400)
    }
    const path = (await scene.browser.send(scene.flow.authorizeUrl({}))).headers.get('location') ?? ''
    const form = { action: 'login', email: `${id}@x.example`, password: PASSWORD }
    expect((await scene.browser.send(path, { form })).status).toBe(429)
    later(900_001)
    const page = await atCodePage(id)
    expect((await giveCode(page, codeAt(secret))).status).toBe(303)
  })
})

describe('the password that waits for its code', () => {
  test('is bound to its own sign-in, five minutes, and the service that sealed it', async () => {
    const { id, secret } = await enrolled()
    const stolen = await atCodePage(id)
    const other = await atCodePage(id)
    const isLoginPage = async (response: Response) => (await response.text()).includes('data-step="login"')
    expect(await isLoginPage(await giveCode({ ...stolen, path: other.path }, codeAt(secret)))).toBe(true)
    const forged = {
      ...other,
      html: other.html.replace(
        /(password_accepted" value="v1\.)(.)/,
        (_, start, first) => start + (first === 'A' ? 'B' : 'A'),
      ),
    }
    expect(await isLoginPage(await giveCode(forged, codeAt(secret)))).toBe(true)
    const nobody = await scene.browser.send(other.path, { form: { action: 'code', code: codeAt(secret) } })
    expect(await isLoginPage(nobody)).toBe(true)
    later(301_000)
    expect(await isLoginPage(await giveCode(other, codeAt(secret)))).toBe(true)
    later(0)
    expect((await giveCode(other, codeAt(secret))).status).toBe(303)
  })

  test('is not taken from a form that another site sent', async () => {
    const { id, secret } = await enrolled()
    const { path, html } = await atCodePage(id)
    const form = { ...hiddenFields(html), action: 'code', code: codeAt(secret) }
    expect((await scene.browser.send(path, { form, headers: { origin: 'https://evil.example' } })).status).toBe(400)
  })

  test('is worth nothing once the password was changed, also when the code comes later', async () => {
    const { id, secret } = await enrolled()
    const page = await atCodePage(id)
    later(-2_000)
    const early = await atCodePage(id)
    later(0)
    await scene.world.sql.transaction((sql) => scene.world.identity.sessions.endUser(sql, id, CONTEXT))
    expect(page.html).toContain('password_accepted')
    const resumed = await giveCode(early, codeAt(secret))
    expect(resumed.status).toBe(303)
    const next = await scene.browser.send(resumed.headers.get('location') ?? '')
    expect(next.headers.get('location')).toMatch(/\/oauth\/interaction\//)
  })
})

describe('stepping up', () => {
  test('a session by password alone asks for the code only, and keeps the time of the password', async () => {
    const id = await person()
    later(-60_000)
    const before = await idToken(await authorize({}, answers(id)))
    later(0)
    expect(before.id).toMatchObject({ acr: 'pwd', amr: ['pwd'] })
    const secret = await enroll(id)
    // Whoever asks for nothing special goes on.
    expect((await idToken(await authorize({}, answers(id)))).id.acr).toBe('pwd')
    scene.steps = []
    const after = await idToken(await authorize({ acr_values: 'mfa' }, answers(id, secret)))
    expect(scene.steps).toEqual(['totp'])
    expect(after.id).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'], auth_time: before.id.auth_time })
  })

  test('with max_age asks for both again', async () => {
    const { id, secret } = await enrolled()
    await authorize({}, answers(id, secret, -1))
    const requests = [{ max_age: '0' }, { max_age: '0', acr_values: 'mfa' }, { prompt: 'login' }]
    for (const [i, parameters] of requests.entries()) {
      scene.steps = []
      later(60_000 * (i + 1))
      await authorize(parameters, answers(id, secret))
      expect(scene.steps).toEqual(['login', 'totp'])
    }
  })

  test('lets somebody who cannot give a code sign in with another account, if the client asks for a sign-in', async () => {
    const [id, other] = [await person(), await enrolled()]
    await authorize({}, answers(id))
    scene.steps = []
    const asked = { acr_values: 'mfa', prompt: 'login' }
    const by = (answer: ReturnType<typeof answers>) => (page: Parameters<typeof answer>[0]) =>
      page.step === 'logout' ? { logout: 'yes' } : answer(page)
    const end = await authorize(asked, by(answers(other.id, other.secret)))
    expect([scene.steps.slice(0, 2), end.searchParams.has('code')]).toEqual([['login', 'totp'], true])
    const again = await authorize(asked, by(answers(id)))
    expect(again.searchParams.get('error')).toBe('unmet_authentication_requirements')
  })

  test('to a code that the person cannot give is told to the client, before and after the password', async () => {
    const id = await person()
    const fresh = await authorize({ acr_values: 'mfa' }, answers(id))
    expect(scene.steps).toEqual(['login'])
    await authorize({}, answers(id))
    scene.steps = []
    const signedIn = await authorize({ acr_values: 'mfa' }, answers(id))
    expect(scene.steps).toEqual([])
    for (const end of [fresh, signedIn]) {
      expect(end.searchParams.get('error')).toBe('unmet_authentication_requirements')
    }
  })

  test('without a page says that there would have to be one', async () => {
    const id = await person()
    await authorize({}, answers(id))
    await enroll(id)
    const end = await authorize({ acr_values: 'mfa', prompt: 'none' }, answers(id))
    expect(end.searchParams.get('error')).toBe('login_required')
  })

  test('is bounded: 10 wrong codes of a signed-in person, then they wait', async () => {
    const id = await person()
    await authorize({}, answers(id))
    await enroll(id)
    const path =
      (await scene.browser.send(scene.flow.authorizeUrl({ acr_values: 'mfa' }))).headers.get('location') ?? ''
    const statuses: number[] = []
    for (let i = 0; i < 11; i += 1) {
      statuses.push((await scene.browser.send(path, { form: { action: 'code', code: '000000' } })).status)
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 400), 429])
  })
})

test('is announced: discovery lists both authentication contexts', async () => {
  const metadata = parseObject(await (await fetch(`${scene.world.issuer}/.well-known/openid-configuration`)).text())
  expect(metadata.acr_values_supported).toEqual(['mfa', 'pwd'])
})

test('a client of the sign-in page never learns whether an account has an authenticator without its password', async () => {
  const { id } = await enrolled()
  const path = (await scene.browser.send(scene.flow.authorizeUrl({}))).headers.get('location') ?? ''
  const form = { action: 'login', email: `${id}@x.example`, password: 'wrong' }
  const answer = await scene.browser.send(path, { form })
  expect([answer.status, (await answer.text()).includes('data-step="login"')]).toEqual([400, true])
})
