/** Devices, the page for CIBA requests, and authenticators as the management API changes them. */
import { describe, expect, test } from 'vitest'
import { type Answer, hiddenFields } from '../../../../support/browser.ts'
import { CONTEXT, decode, PASSWORD } from '../../harness.ts'
import { openSecondFactors } from './second-factors.ts'

const { scene, person, enroll, enrolled, codeAt, answers, authorize, idToken, atCodePage, giveCode } =
  openSecondFactors()

describe('a device', () => {
  test('is connected by the same rules', async () => {
    const { id, secret } = await enrolled()
    const { config, started } = await scene.flows.startDevice({ person: id, scope: 'openid' })
    await expect(
      scene.browser.follow(started.verification_uri, (page) => {
        if (page.step === 'code') return { user_code: started.user_code }
        return page.step === 'confirm' ? { confirm: 'yes' } : answers(id, secret)(page)
      }),
    ).rejects.toThrow('is connected')
    expect(scene.steps).toEqual(['login', 'totp', 'consent'])
    const { pollDeviceAuthorizationGrant } = await import('openid-client')
    const tokens = await pollDeviceAuthorizationGrant(config, { ...started, interval: 0.01 })
    expect(decode(tokens.id_token ?? '').payload).toMatchObject({ acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
  })
})

describe('the page for CIBA requests', () => {
  const page = async (form?: Answer) => (await scene.browser.send('/oauth/approve', form && { form })).text()
  const login = (id: string) => page({ action: 'login', email: `${id}@x.example`, password: PASSWORD })

  test('asks for password and code, and the token says so', async () => {
    const { id, secret } = await enrolled()
    const { config, started } = await scene.flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
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
    const { config, started } = await scene.flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
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
    const { config, started } = await scene.flows.startCiba({ person: id, scope: 'openid' }, { acr_values: 'mfa' })
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
    const rows = await scene.world.sql.query<{ row: string }>(
      'select a::text as row from authenticator a where user_id = $1',
      [id],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0]?.row).not.toContain(secret)
    const [entry] = await scene.world.sql.query<{ change: object; actor: string }>(
      "select change, actor from change_log where organization_id = '#directory' order by revision desc limit 1",
    )
    expect(entry).toEqual({ change: { kind: 'authenticator', id, op: 'write' }, actor: 'test' })
  })

  test('does not open for another person, whoever wrote the row', async () => {
    const [one, two] = [await enrolled(), await enrolled()]
    await scene.world.sql.query(
      'update authenticator set secret_sealed = (select secret_sealed from authenticator where user_id = $1) where user_id = $2',
      [one.id, two.id],
    )
    expect((await giveCode(await atCodePage(two.id), codeAt(one.secret))).status).toBe(500)
  })

  test('that is taken away ends the sessions and tokens of its user, and the password is enough again', async () => {
    const { id, secret } = await enrolled()
    const { access } = await idToken(await authorize({}, answers(id, secret)))
    expect(await scene.world.identity.secondFactor.remove(id, null, CONTEXT)).toBe(true)
    expect(await scene.world.identity.introspect(access)).toEqual({ active: false })
    expect(await scene.world.identity.secondFactor.remove(id, null, CONTEXT)).toBe(false)
    scene.steps = []
    expect((await idToken(await authorize({}, answers(id)))).id.acr).toBe('pwd')
    expect(scene.steps).toEqual(['login'])
  })
})
