/** A person lets an agent act, with a part of what it asks for, sees it, and ends it. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import german from '../../../../../pdp/identity/html/words/de.json' with { type: 'json' }
import { LANGUAGES } from '../../../../../pdp/identity/html/words/words.ts'
import { createDelegations } from '../../../../../pdp/identity/issuer/tokens/delegations.ts'
import { createRevocations } from '../../../../../pdp/identity/issuer/tokens/revocation.ts'
import { hashGeneratedSecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../../support/browser.ts'
import { drop } from '../../../../support/tuples.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../../flows.ts'
import { API, CONTEXT, PASSWORD, postToken, REDIRECT, SECRET } from '../../harness.ts'
import { browser, HOUR_MS, person, useWorld, world } from './forgetting.ts'

useWorld()
const SCOPES = 'orders:read orders:write'
const ASKED = `/account/delegations?${new URLSearchParams({ client_id: 'bot', scope: SCOPES, organization: 'acme' })}`

beforeAll(async () => {
  const manifest = {
    app: 'invoices',
    audiences: [API],
    permissions: {},
    roles: {},
    model: null,
    actors: 'both',
  } as const
  await world.store.write('#environment', [{ kind: 'manifest', manifest }], { context: CONTEXT })
  const agent = { grant_types: [EXCHANGE], scope: SCOPES, exchange_clients: ['desk'], exchange_resources: [API] }
  const secretHash = hashGeneratedSecret(SECRET)
  await world.putClient({ id: 'desk', secretHash, metadata: { redirect_uris: [REDIRECT], scope: `openid ${SCOPES}` } })
  await world.putClient({ id: 'bot', secretHash, metadata: { ...agent, client_name: 'Bot & Co' } })
  await world.putClient({ id: 'beta-bot', secretHash, organization: 'beta', metadata: agent })
})

let id: string
let email: string
beforeEach(async () => {
  const made = await person()
  id = made.id
  email = made.email
  await signIn()
})
const signIn = (by = browser, to = '/account') =>
  by.send(`/account/sign-in?${new URLSearchParams({ to })}`, { form: { action: 'login', email, password: PASSWORD } })
const textOf = async (path: string, by = browser) => (await by.send(path)).text()
const linked = async () =>
  world.store.tuples('acme', { relation: 'acts_for', subject: `user:${id}` }, { after: null, countMax: 9 })
/** As a browser sends the form of the page; several scopes go as several fields. */
async function grant(
  ticked: readonly string[],
  { path = ASKED, by = browser, ...more }: { path?: string; by?: Browser; [field: string]: unknown } = {},
) {
  const fields = { ...hiddenFields(await textOf(path, by)), until: 'month', ...(more as Record<string, string>) }
  const body = new URLSearchParams([...Object.entries(fields), ...ticked.map((scope) => ['scope', scope])] as [
    string,
    string,
  ][])
  return by.send(path, { form: body as unknown as Record<string, string> })
}
async function exchange(scope?: string) {
  const flow = { person: id, client: 'desk', organization: 'acme', scope: `openid ${SCOPES}`, resource: API }
  const subject = (await createFlows(world).code({ ...flow, browser: createBrowser(world.issuer) })).tokens.access_token
  const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN, resource: API }
  return postToken(world, { ...form, ...(scope !== undefined && { scope }) }, { id: 'bot' })
}

describe('a person', () => {
  test('grants a part of what an agent asks for, and its tokens have no more', async () => {
    const refused = await exchange(SCOPES)
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    const link = /they can at (\S+)$/.exec(String(refused.body.error_description))?.[1] ?? ''
    expect(await textOf(link)).toContain('<strong>Bot &amp; Co</strong>')
    const granted = await grant(['orders:read'], { path: link })
    expect([granted.status, await granted.text()]).toEqual([200, expect.stringContaining('may now act for you')])
    for (const scope of [SCOPES, undefined, 'orders:read'])
      expect((await exchange(scope)).body).toMatchObject({ scope: 'orders:read' })
    expect((await exchange('orders:write')).body).not.toHaveProperty('scope')
  })

  test('sees what acts for them, in their language, and ends it with its tokens', async () => {
    await grant(['orders:read'])
    const token = String((await exchange()).body.access_token)
    const page = await (await browser.send('/account', { headers: { 'accept-language': 'de' } })).text()
    expect(page).toContain(german.account.delegations.list)
    expect(page).toMatch(
      /<strong>Bot &amp; Co<\/strong> in der Organisation <strong>Acme &amp; Co<\/strong><br><small>seit \S+ \S+ UTC · bis \S+ \S+ UTC · nur orders:read · zuletzt benutzt /,
    )
    const form = { xsrf: hiddenFields(page).xsrf ?? '', delegation: 'bot', organization: 'acme' }
    expect(await (await browser.send('/account', { form })).text()).toContain('It has ended')
    expect(await linked()).toEqual([])
    expect((await world.identity.introspect(token)).active).toBe(false)
    expect((await browser.send('/account', { form })).status).toBe(400)
  })

  test('comes to the page of an agent’s link after the sign-in, and nowhere else', async () => {
    const stranger = createBrowser(world.issuer)
    const to = (await stranger.send(`${ASKED}&next=https://evil.example`)).headers.get('location') ?? ''
    const back = (await stranger.send(to, { form: { action: 'login', email, password: PASSWORD } })).headers.get(
      'location',
    )
    expect(new URL(back ?? '').search).toBe(
      `?${new URLSearchParams({ client_id: 'bot', scope: SCOPES, organization: 'acme' })}`,
    )
    expect(new URL(back ?? '').pathname).toBe('/account/delegations')
  })

  test('signs in once more before granting when the sign-in is not recent', async () => {
    const fields = { ...hiddenFields(await textOf(ASKED)), until: 'open' }
    world.time.offsetMs += HOUR_MS / 2
    expect((await browser.send(ASKED, { form: fields })).headers.get('location')).toContain('/account/sign-in')
    expect(await linked()).toEqual([])
  })

  test.each(['en', 'de', 'fr', 'es'])('reads the page in %s', async (language) => {
    const page = await (await browser.send(ASKED, { headers: { 'accept-language': language } })).text()
    expect(page).toContain(`<h1>${LANGUAGES.get(language)?.account.delegations.title}</h1>`)
  })
})

test.each([
  ['without the mark of the form', {}, { xsrf: '' }],
  ['with the mark of another session', {}, { xsrf: 'A'.repeat(43) }],
  ['without an end', {}, { until: '' }],
  ['with an end of its own', {}, { until: '3650' }],
  ['for a client that does not exist', { client_id: 'nobody' }, {}],
  ['for a client that exchanges nothing', { client_id: 'desk' }, {}],
  ['for a client of another organization', { client_id: 'beta-bot' }, {}],
  ['in an organization of other people', { organization: 'beta' }, {}],
  ['in no organization that there is', { organization: 'nowhere' }, {}],
])('nothing is granted %s', async (_, query, fields) => {
  const { xsrf = '' } = hiddenFields(await textOf(ASKED))
  const asked = { client_id: 'bot', scope: SCOPES, organization: 'acme', ...query }
  const path = `/account/delegations?${new URLSearchParams(asked)}`
  const sent = await browser.send(path, { form: { xsrf, until: 'open', scope: 'orders:read', ...fields } })
  expect(sent.status).toBe(400)
  expect(await linked()).toEqual([])
})

test('a form of another site grants nothing', async () => {
  const form = { ...hiddenFields(await textOf(ASKED)), until: 'open' }
  const sent = await browser.send(ASKED, {
    form,
    headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  })
  expect([sent.status, await linked()]).toEqual([400, []])
})

test('only what was asked for, and what the client is registered for, can be granted', async () => {
  const path = `/account/delegations?${new URLSearchParams({ client_id: 'bot', scope: 'orders:read admin:all' })}`
  expect(await textOf(path)).not.toContain('admin:all')
  await grant(['orders:read', 'orders:write', 'admin:all'], { path })
  expect((await linked()).map(({ condition }) => condition?.context.scopes)).toEqual([['orders:read']])
})

test('nobody ends what acts for somebody else', async () => {
  await grant(['orders:read'])
  const mine = id
  const other = await person()
  const stranger = createBrowser(world.issuer)
  const form = { action: 'login', email: other.email, password: PASSWORD }
  await stranger.send('/account/sign-in?to=/account', { form })
  const own = hiddenFields(await textOf('/account/password', stranger))
  const sent = await stranger.send('/account', {
    form: { ...own, delegation: 'bot', organization: 'acme', user: mine },
  })
  expect(sent.status).toBe(400)
  expect(await linked()).toHaveLength(1)
})

test('a delegation with fewer scopes ends what tokens with more may do', async () => {
  await grant(['orders:read', 'orders:write'])
  const token = String((await exchange()).body.access_token)
  const state = await world.identity.introspect(token)
  expect(state).toMatchObject({ active: true, scopes: new Set(SCOPES.split(' ')) })
  await grant(['orders:read'])
  expect((await linked()).map(({ condition }) => condition?.context.scopes)).toEqual([['orders:read']])
  await world.store.write('acme', [drop(`service:bot#acts_for@user:${id}`)], { context: CONTEXT })
})

test('an end whose tokens cannot be ended now is not done by half: the delegation stays listed', async () => {
  await grant(['orders:read'])
  const token = String((await exchange()).body.access_token)
  const { sql, store } = world
  const real = createRevocations({ sql, appendEvents, clock: Date.now })
  let isAway = true
  const endGrant: typeof real.endGrant = (grantId, context) =>
    isAway ? Promise.reject(new Error('the connection is lost')) : real.endGrant(grantId, context)
  const delegations = createDelegations({ sql, store, clock: Date.now, revocations: { endGrant } })
  const pair = { organization: 'acme', client: 'bot', user: id }
  await expect(delegations.end(pair, CONTEXT)).rejects.toThrow('the connection is lost')
  expect(await linked()).toHaveLength(1)
  isAway = false
  expect(await delegations.end(pair, CONTEXT)).toBe(true)
  expect([await linked(), (await world.identity.introspect(token)).active]).toEqual([[], false])
})
