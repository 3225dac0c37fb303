/** A provider of others says that somebody signed out there. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBrowser } from '../../../../support/browser.ts'
import { cheapHash } from '../../../../support/passwords/cheap-hash.ts'
import { CONTEXT, openWorld, PASSWORD, type World } from '../../harness.ts'
import { CLIENT, type Forged, forgeProvider } from './forged-provider.ts'

let world: World
let forged: Forged
let second: Forged
beforeAll(async () => {
  ;[world, forged, second] = await Promise.all([openWorld(), forgeProvider(), forgeProvider()])
  for (const [id, { issuer }] of Object.entries({ forged, second }))
    await world.identity.identityProviders.put(
      id,
      { issuer, client_id: CLIENT, name: id, creates_accounts: true, secret: 's'.repeat(20) },
      CONTEXT,
    )
})
afterAll(async () => {
  await world.close()
  await forged.close()
  await second.close()
})
beforeEach(() => world.sql.query('delete from attempt'))

type Browser = ReturnType<typeof createBrowser>
/** Signs in by the provider as its subject, whose account is made at the first time. */
async function signedIn(sub: string, at = forged, id = 'forged'): Promise<Browser> {
  const by = createBrowser(world.issuer)
  const form = (await (await by.send('/account/sign-in')).text()).split('<form ').find((one) => one.includes(`"${id}"`))
  const target = /name="target" value="([^"]+)"/.exec(form ?? '')?.[1] ?? ''
  const sent = await by.send('/account/providers', { form: { provider: id, target } })
  const asked = new URL(sent.headers.get('location') ?? '').searchParams
  at.claims = { nonce: asked.get('nonce'), sub, email: `${sub}@${id}.example`, email_verified: true }
  const query = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' })
  await by.send(`/account/providers/${id}?${query}`)
  expect(await isSignedIn(by)).toBe(true)
  return by
}
const isSignedIn = async (by: Browser): Promise<boolean> => (await by.send('/account')).status === 200
const tell = (token: string | URLSearchParams, id = 'forged') =>
  fetch(`${world.issuer}/oauth/backchannel-logout/${id}`, {
    method: 'POST',
    body: typeof token === 'string' ? new URLSearchParams({ logout_token: token }) : token,
  })

test('ends the sign-ins by it, on the next request, and no others', async () => {
  const [phone, desk, other] = [await signedIn('ann'), await signedIn('ann'), await signedIn('bea')]
  // The same subject of another issuer is somebody else.
  const elsewhere = await signedIn('ann', second, 'second')
  const user = await world.directory.userByEmail('ann@forged.example')
  if (user === null) throw new Error('no account was made')
  await world.directory.putUser({ ...user, passwordHash: cheapHash(PASSWORD) }, CONTEXT)
  const byPassword = createBrowser(world.issuer)
  await byPassword.send('/account/sign-in', {
    form: { action: 'login', email: 'ann@forged.example', password: PASSWORD },
  })
  const answer = await tell(await forged.signLogout({ sub: 'ann', sid: 'a session there' }))
  expect([answer.status, answer.headers.get('cache-control'), await answer.text()]).toEqual([200, 'no-store', ''])
  expect([await isSignedIn(phone), await isSignedIn(desk)]).toEqual([false, false])
  for (const kept of [other, elsewhere, byPassword]) expect(await isSignedIn(kept)).toBe(true)
  expect(world.log.join('')).toContain('"event":"foreign_sign_out"')
})

test('about somebody who has no account here changes nothing, and says nothing of it', async () => {
  expect((await tell(await forged.signLogout({ sub: 'nobody-here' }))).status).toBe(200)
})

test('that could not be carried out counts when it comes again', async () => {
  const phone = await signedIn('dot')
  const message = await forged.signLogout({ sub: 'dot' })
  await world.sql.query('alter table foreign_identity rename to away')
  expect((await tell(message)).status).toBeGreaterThanOrEqual(500)
  await world.sql.query('alter table away rename to foreign_identity')
  expect(await isSignedIn(phone)).toBe(true)
  expect((await tell(message)).status).toBe(200)
  expect(await isSignedIn(phone)).toBe(false)
  expect((await tell(message)).status).toBe(400)
})

describe('a message that is not right ends nothing', () => {
  const now = (): number => Math.floor(Date.now() / 1_000)
  test.each<[string, () => Promise<string>]>([
    ['of another type', () => forged.signLogout({ sub: 'cy' }, { typ: 'JWT' })],
    ['without a type', () => forged.signLogout({ sub: 'cy' }, { typ: undefined })],
    ['of an unknown key', () => forged.signLogout({ sub: 'cy' }, { kid: 'another' })],
    ['of another provider, in the name of this one', () => second.signLogout({ sub: 'cy', iss: forged.issuer })],
    ['of another provider, in its own name', () => second.signLogout({ sub: 'cy' })],
    ['in the name of our own issuer', () => forged.signLogout({ sub: 'cy', iss: world.issuer })],
    ['for another client', () => forged.signLogout({ sub: 'cy', aud: 'another' })],
    ['about something else', () => forged.signLogout({ sub: 'cy', events: { 'https://other.example': {} } })],
    ['with a nonce', () => forged.signLogout({ sub: 'cy', nonce: 'n' })],
    ['about a session alone', () => forged.signLogout({ sub: undefined, sid: 'a session there' })],
    ['that has expired', () => forged.signLogout({ sub: 'cy', exp: now() - 120 })],
    ['of last week', () => forged.signLogout({ sub: 'cy', iat: now() - 604_800 })],
    ['without an id', () => forged.signLogout({ sub: 'cy', jti: undefined })],
    ['that is no token', async () => 'x'],
  ])('%s', async (_name, make) => {
    const by = await signedIn('cy')
    const answer = await tell(await make())
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: 'invalid_request' }])
    expect(await isSignedIn(by)).toBe(true)
  })

  test('that comes twice, or has two tokens, or is for no provider', async () => {
    const token = await forged.signLogout({ sub: 'dee' })
    expect([(await tell(token)).status, (await tell(token)).status]).toEqual([200, 400])
    const by = await signedIn('dee')
    const two = new URLSearchParams([
      ['logout_token', await forged.signLogout({ sub: 'dee' })],
      ['logout_token', await forged.signLogout({ sub: 'dee' })],
    ])
    expect([(await tell(two)).status, (await tell(token, 'none')).status]).toEqual([400, 400])
    expect((await tell('x'.repeat(20_000))).status).toBe(413)
    expect((await fetch(`${world.issuer}/oauth/backchannel-logout/forged`)).status).toBe(405)
    expect(await isSignedIn(by)).toBe(true)
  })
})
