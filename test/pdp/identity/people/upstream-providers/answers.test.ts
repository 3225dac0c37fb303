import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { codeOf } from '../../../../support/authenticator.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { CONTEXT, openWorld, type World } from '../../harness.ts'
import { CLIENT, type Forged, forgeProvider } from './forged-provider.ts'

let world: World
let forged: Forged
let people = 0
beforeAll(async () => {
  ;[world, forged] = await Promise.all([openWorld(), forgeProvider()])
})
afterAll(async () => {
  await world.close()
  await forged.close()
})
beforeEach(async () => {
  Object.assign(forged, {
    claims: {},
    userinfo: {},
    signedWith: 'first',
    published: ['first'],
    metadata: {},
    answers: {},
  })
  await provide()
  // What was read of its metadata is read again.
  world.time.offsetMs += 61_000
  await world.sql.query('delete from attempt')
})

const provide = (more: object = {}) =>
  world.identity.identityProviders.put(
    'forged',
    {
      ...{ issuer: forged.issuer, client_id: CLIENT, name: 'Forged', creates_accounts: true, secret: 's'.repeat(20) },
      ...more,
    },
    CONTEXT,
  )
/** A new person of the provider, with an address of theirs. */
const newPerson = (): { sub: string; email: string; email_verified: boolean } => {
  const sub = `them${++people}`
  return { sub, email: `${sub}@forged.example`, email_verified: true }
}
type Claims = { readonly [claim: string]: unknown }
/** Presses the button of the provider. */
async function press(by: ReturnType<typeof createBrowser>): Promise<Response> {
  const html = await (await by.send('/account/sign-in')).text()
  const target = /name="target" value="([^"]+)"/.exec(html)?.[1] ?? ''
  return by.send('/account/providers', { form: { provider: 'forged', target } })
}
async function depart() {
  const sent = await press(createBrowser(world.issuer))
  return { status: sent.status, location: sent.headers.get('location'), html: await sent.text() }
}
/** There and back; what the provider says can depend on what it was asked for. */
async function travel(claims: Claims | ((asked: URLSearchParams) => Claims)) {
  const by = createBrowser(world.issuer)
  const sent = await press(by)
  const asked = new URL(sent.headers.get('location') ?? 'about:blank').searchParams
  const said = typeof claims === 'function' ? claims(asked) : claims
  forged.claims = { nonce: asked.get('nonce'), ...said }
  const query = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })
  const back = await by.send(`/account/providers/forged?${query}`)
  const name = /<p><strong>([^<]+)<\/strong><\/p>/.exec(await (await by.send('/account')).text())?.[1] ?? null
  return { by, status: back.status, location: back.headers.get('location') ?? '', html: await back.text(), name, asked }
}

describe('the answer of a provider', () => {
  test('signs in when it is right', async () => {
    const them = newPerson()
    expect(await travel(them)).toMatchObject({ status: 303, name: them.email })
  })

  test.each<[string, Claims | ((asked: URLSearchParams) => Claims)]>([
    ['no nonce', { nonce: null }],
    ['another nonce', { nonce: 'another' }],
    ['the state as its nonce', (asked) => ({ nonce: asked.get('state') })],
    ['another issuer', { iss: 'https://evil.example' }],
    ['no issuer', { iss: null }],
    ['another audience', { aud: 'another' }],
    ['further audiences and another party', { aud: [CLIENT, 'another'], azp: 'another' }],
    ['no subject', { sub: null }],
    ['an empty subject', { sub: '' }],
    ['a number as its subject', { sub: 7 }],
    ['a subject that is too long', { sub: 's'.repeat(256) }],
    ['an end in the past', { exp: 1_000_000 }],
    ['no end', { exp: null }],
    ['a beginning in the future', { nbf: 9_999_999_999 }],
  ])('leads nowhere with %s', async (_, claims) => {
    const them = newPerson()
    const back = await travel((asked) => ({ ...them, ...(typeof claims === 'function' ? claims(asked) : claims) }))
    expect([back.status, back.name]).toEqual([400, null])
    expect(back.html).toContain('was not right')
    expect(await world.directory.userByEmail(them.email)).toBeNull()
  })

  test.each(['other', 'none', 'second'] as const)(
    'leads nowhere signed by a key that is not published: %s',
    async (by) => {
      forged.signedWith = by
      expect(await travel(newPerson())).toMatchObject({ status: 400, name: null })
    },
  )

  test('counts with a new key at once, and with an old one no more', async () => {
    expect((await travel(newPerson())).status).toBe(303)
    Object.assign(forged, { signedWith: 'second', published: ['second'] })
    expect((await travel(newPerson())).status).toBe(303)
    forged.signedWith = 'first'
    expect((await travel(newPerson())).status).toBe(400)
  })

  test.each([
    ['another text', 'false'],
    ['a number', 1],
    ['missing', null],
  ])('does not verify an address by %s', async (_, verified) => {
    const them = newPerson()
    expect((await travel({ ...them, email_verified: verified })).location).toBe(`${world.issuer}/account/proof`)
    expect(await world.directory.userByEmail(them.email)).toBeNull()
  })

  test('verifies an address by the text that Apple and Amazon Cognito send', async () => {
    const them = newPerson()
    expect(await travel({ ...them, email_verified: 'true' })).toMatchObject({ status: 303, name: them.email })
  })

  test('is completed by UserInfo where its ID token does not say that the address is verified, as that of Okta', async () => {
    forged.metadata = { userinfo_endpoint: `${forged.issuer}/userinfo` }
    await provide({ email_domains: ['forged.example'] })
    const them = newPerson()
    forged.userinfo = them
    expect(await travel({ sub: them.sub, email: them.email })).toMatchObject({ status: 303, name: them.email })
  })

  test.each<[string, Claims, Claims]>([
    ['its ID token, and the address is of UserInfo', { email_verified: true }, { email_verified: undefined }],
    ['its ID token, and UserInfo says no', { email_verified: true }, { email_verified: false }],
    ['UserInfo for another address', { email: 'mine@forged.example' }, { email_verified: true }],
  ])('verifies no address by the word of %s', async (_, inToken, inUserInfo) => {
    forged.metadata = { userinfo_endpoint: `${forged.issuer}/userinfo` }
    const them = newPerson()
    forged.userinfo = { ...them, ...inUserInfo }
    expect(await travel({ sub: them.sub, ...inToken })).toMatchObject({ location: `${world.issuer}/account/proof` })
    expect(await world.directory.userByEmail(them.email)).toBeNull()
  })

  test.each<[string, Claims]>([
    ['the provider gives no address', { email: null }],
    ['the provider does not say email_verified', { email_verified: null }],
    ['the address is of another one', { email: 'a@elsewhere.example' }],
  ])('that is not of a domain is in the log with the reason: %s', async (reason, claims) => {
    await provide({ email_domains: ['forged.example'] })
    const lines = world.log.length
    expect((await travel({ ...newPerson(), ...claims })).status).toBe(403)
    expect(world.log.slice(lines).join()).toContain(reason)
  })

  test('takes the address of UserInfo of the same person alone', async () => {
    forged.metadata = { userinfo_endpoint: `${forged.issuer}/userinfo` }
    const them = newPerson()
    forged.userinfo = { ...them, sub: 'somebody-else' }
    expect(await travel({ sub: them.sub })).toMatchObject({ status: 400, name: null })
    forged.userinfo = them
    expect(await travel({ sub: them.sub })).toMatchObject({ status: 303, name: them.email })
  })

  test.each([
    ['a character that nobody sees', 'ev\u200be'],
    ['a soft hyphen', 'e\u00adve'],
    ['a turned order', '\u202eeve'],
    ['a control character', 'eve\u0007'],
    ['two addresses', 'eve@x.example,eve'],
    ['half a character', 'eve\ud800'],
  ])('makes no account for an address with %s, which would look like that of somebody else', async (_what, local) => {
    const email = `${local}@x.example`
    const them = { ...newPerson(), email }
    expect(await travel(them)).toMatchObject({ location: `${world.issuer}/account/proof`, name: null })
    expect(await world.directory.userByEmail(email)).toBeNull()
  })

  test('is about its own people: the same subject of another issuer is somebody else', async () => {
    const them = newPerson()
    await travel(them)
    const twin = await forgeProvider()
    await world.identity.identityProviders.put(
      'twin',
      { issuer: twin.issuer, client_id: CLIENT, name: 'Twin', secret: 's'.repeat(20) },
      CONTEXT,
    )
    await world.sql.query(`update foreign_identity set issuer = $1 where subject = $2`, [twin.issuer, them.sub])
    const back = await travel({ ...them, email: 'another@forged.example' })
    expect(back.name).not.toBe(them.email)
    await world.identity.identityProviders.remove('twin', CONTEXT)
    await twin.close()
  })

  test.each([
    ['with a slash at the end', (issuer: string) => `${issuer}/`, 'it ends with a slash, but'],
    [
      'of another name, as the template of Entra ID',
      () => 'https://evil.example/{tenantid}',
      'evil.example/{tenantid}',
    ],
  ])('is not even asked for when the metadata is of an issuer %s, and the log says so', async (_, named, said) => {
    forged.metadata = { issuer: named(forged.issuer) }
    const lines = world.log.length
    expect(await depart()).toMatchObject({
      status: 400,
      location: null,
      html: expect.stringContaining('was not right'),
    })
    expect(world.log.slice(lines).join()).toContain(said)
  })

  test('is not even asked for while the metadata is away, and the page says to try again', async () => {
    forged.answers = { '/.well-known/openid-configuration': { status: 503, ...html } }
    expect(await depart()).toMatchObject({
      status: 503,
      location: null,
      html: expect.stringContaining('does not answer'),
    })
  })

  const html = { type: 'text/html', body: '<h1>Not now</h1>' }
  test.each<[string, Forged['answers'], string]>([
    ['hangs up', { '/token': null }, 'socket hang up'],
    ['answers 502 with a page', { '/token': { status: 502, ...html } }, '/token answered 502'],
    ['cannot give its keys', { '/jwks': { status: 503, ...html } }, '/jwks answered 503'],
    ['has too much to do', { '/token': { status: 429, ...html } }, '/token answered'],
  ])('did not come when the provider %s: the page says so, and the log why', async (_, answers, why) => {
    forged.answers = answers
    const lines = world.log.length
    const back = await travel(newPerson())
    expect([back.status, back.name]).toEqual([503, null])
    expect(world.log.slice(lines).join()).toContain(why)
  })

  test('of UserInfo that is signed by what the metadata does not name is a refusal', async () => {
    forged.metadata = { userinfo_endpoint: `${forged.issuer}/userinfo` }
    const body = await forged.signLogout({})
    forged.answers = { '/userinfo': { status: 200, type: 'application/jwt', body } }
    expect(await travel({ sub: 'them' })).toMatchObject({ status: 400, name: null })
  })

  test('that is a refusal is in the log in the words of the provider, in one line', async () => {
    const error_description = 'AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1'
    const body = JSON.stringify({ error: 'invalid_client', error_description })
    forged.answers = { '/token': { status: 401, type: 'application/json', body } }
    const lines = world.log.length
    expect((await travel(newPerson())).status).toBe(400)
    expect(world.log.slice(lines).join()).toContain(
      'invalid_client: AADSTS7000215: Invalid client secret provided. Trace ID: 1',
    )
  })

  test('counts as one factor, but for an acr that is trusted', async () => {
    const them = newPerson()
    const first = await travel(them)
    const user = (await world.directory.userByEmail(them.email))?.id ?? ''
    expect(first.name).toBe(them.email)
    const { secret } = await world.identity.secondFactor.enroll(user, CONTEXT)
    for (const acr of [null, 'urn:strong', 'mfa'])
      expect(await travel({ ...them, acr })).toMatchObject({ location: `${world.issuer}/account/proof`, name: null })
    await provide({ trusted_acr: ['urn:strong'] })
    expect(await travel({ ...them, acr: 'urn:strong' })).toMatchObject({ name: them.email })
    const weak = await travel({ ...them, acr: 'urn:weak' })
    expect(weak.name).toBeNull()
    const code = codeOf(secret, Date.now() + world.time.offsetMs)
    expect((await weak.by.send('/account/proof', { form: { action: 'code', code } })).status).toBe(303)
  })
})
