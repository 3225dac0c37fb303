/** What the console shows of others: on record, within the rights of now, and of the past. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { PersonId } from '../../../console/world.ts'
import type { Browser } from '../../../support/browser.ts'
import { get, signedInTo } from './visitor.ts'

let world: OwnWorld
beforeAll(async () => {
  world = await startOwnWorld()
})
afterAll(() => world?.close())
const signedIn = (person: PersonId): Promise<Browser> => signedInTo(world, person)

test('each look at decisions is on record, with who looked', async () => {
  const browser = await signedIn('anna')
  await get(browser, '/console/decisions?org=acme&subject=user:bob')
  await expect
    .poll(() => world.logged.some((line) => line.includes('"decisions_viewed"') && line.includes('"user:anna"')))
    .toBe(true)
})

test('a question about the past is answered from the log of changes', async () => {
  const browser = await signedIn('root')
  await world.manage('POST', '/v1/organizations/acme/relationships', { write: ['doc:old#viewer@user:bob'] })
  await delay(5)
  const then = new Date().toISOString()
  await delay(5)
  await world.manage('POST', '/v1/organizations/acme/relationships', { delete: ['doc:old#viewer@user:bob'] })
  const ask = `/console/ask?${new URLSearchParams({ org: 'acme', subject: 'user:bob', relation: 'viewer', resource: 'doc:old' })}`
  expect((await get(browser, ask)).text).toContain('✗ denied')
  expect((await get(browser, `${ask}&as_of=${then}`)).text).toContain('✓ allowed')
})

test('a person with rights in one organization sees no grant of another, or of everywhere', async () => {
  const [anna, root] = [await signedIn('anna'), await signedIn('root')]
  const seen = (await get(anna, '/console/organization?org=acme')).text
  expect(seen).toContain('user%3Aanna')
  expect(seen).not.toContain('user%3Aroot')
  expect(seen).toContain('granted where you may not look are left out')
  expect((await get(root, '/console/organization?org=acme')).text).toContain('user%3Aroot')
})

test('the tail of decisions is on record, and ends when its rights end', async () => {
  const { id } = await world.manage('POST', '/v1/organizations/acme/role-grants', {
    app: 'portcullis',
    role: 'auditor',
    subject: 'user:bob',
  })
  const browser = await signedIn('bob')
  const response = await browser.send('/console/decisions/tail?org=acme')
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  await world.ask({ requestId: 'seen-by-bob-in-the-tail', relation: 'viewer', resource: 'doc:1' })
  await world.manage('DELETE', `/v1/organizations/acme/role-grants/${id}`)
  // By itself it would last for 30 seconds.
  const ended = await Promise.race([response.text().then(() => true), delay(20_000, false)])
  expect(ended).toBe(true)
  expect(world.logged.some((line) => line.includes('"how":"live"') && line.includes('"user:bob"'))).toBe(true)
  expect((await browser.send('/console/decisions/tail?org=acme')).status).toBe(403)
})

const NOW = /<th scope="col">(?:<a [^>]*>)?Now</

test('a decision found by its request stands beside the answer of now', async () => {
  const browser = await signedIn('root')
  await world.ask({ requestId: 'then-beside-now', relation: 'viewer', resource: 'doc:then' })
  const page = '/console/decisions?org=acme&request=then-beside-now'
  const before = (await get(browser, page)).text
  expect(before).toMatch(NOW)
  expect(before).not.toContain('changed')
  await world.manage('POST', '/v1/organizations/acme/relationships', { write: ['doc:then#viewer@user:bob'] })
  const after = (await get(browser, page)).text
  expect(after).toMatch(/✗ denied[\s\S]*✓ allowed<\/span> <strong>changed<\/strong>/)
  const all = (await get(browser, '/console/decisions?org=acme')).text
  expect(all).not.toMatch(NOW)
  expect(all).toContain('Ask all of these again, now')
  expect((await get(browser, '/console/decisions?org=acme&now=1')).text).not.toContain('data-tail')
})

test('decisions are found by route and by reason, at an address for each', async () => {
  const browser = await signedIn('root')
  await world.send('GET', '/docs/1', 'refused-at-a-route')
  await world.send('GET', '/docs/2', 'passed-at-a-route')
  await world.ask({ requestId: 'asked-without-a-route', relation: 'viewer', resource: 'doc:1' })
  const found = async (filter: object): Promise<readonly string[]> => {
    const { text } = await get(browser, `/console/decisions?${new URLSearchParams({ org: 'acme', ...filter })}`)
    return ['refused-at-a-route', 'passed-at-a-route', 'asked-without-a-route'].filter((id) => text.includes(id))
  }
  const route = 'GET /docs/{id}'
  expect(await found({ route })).toEqual(['refused-at-a-route', 'passed-at-a-route'])
  expect(await found({ route, reason: 'none' })).toEqual(['refused-at-a-route'])
  expect(await found({ route, outcome: 'allowed' })).toEqual(['passed-at-a-route'])
  expect(await found({ reason: 'none' })).toEqual(['refused-at-a-route', 'asked-without-a-route'])
  expect(await found({ route: 'GET /docs/{other}' })).toEqual([])
  expect(await found({ reason: 'no-such-reason' })).toEqual([])
  const { text } = await get(browser, `/console/decisions?${new URLSearchParams({ org: 'acme', route })}`)
  expect(text).toContain(`href="/console/decisions?org=acme&amp;route=GET+%2Fdocs%2F%7Bid%7D"`)
  // A route file belongs to no organization, so that its routes are suggested to those alone who may look everywhere.
  expect(text).toContain('<option value="PUT /docs/{id}">')
  expect((await get(await signedIn('anna'), '/console/decisions?org=acme')).text).not.toContain('<option value="PUT')
})

test('the start names what deserves a look, and to nobody what they may not read', async () => {
  await world
    .manage('PUT', '/v1/organizations/acme/members/carl', { role: 'member', status: 'suspended' })
    .catch(async () => {
      await world.manage('PUT', '/v1/users/carl', { name: 'Carl' })
      await world.manage('PUT', '/v1/organizations/acme/members/carl', { role: 'member', status: 'suspended' })
    })
  await world.manage('POST', '/v1/organizations/acme/role-grants', {
    app: 'docs',
    role: 'exporter',
    subject: 'user:carl',
  })
  const root = (await get(await signedIn('root'), '/console?org=acme')).text.replaceAll(/<[^>]*>/g, '')
  for (const finding of [
    'user:root holds portcullis / administrator in every organization',
    'acme has no active owner',
    'carl is suspended',
    'route in shadow mode',
  ])
    expect(root).toContain(finding)
  const tom = (await get(await signedIn('tom'), '/console?org=globex')).text.replaceAll(/<[^>]*>/g, '')
  expect(tom).toContain('globex has no active owner')
  for (const hidden of ['root', 'carl', 'shadow mode has', 'acme']) expect(tom).not.toContain(hidden)
})

test.each([
  'who?org=acme&resource=doc:1&relation=viewer&type=user&context={',
  'what?org=acme&subject=user:bob&relation=viewer&type=doc&context=7',
  'ask?org=acme&subject=user:bob&relation=viewer&resource=doc:1&as_of=soon',
  'who?org=acme&resource=doc:1&relation=viewer&type=user&as_of=soon',
  'relationships?org=a%20b',
  'changes?org=%23environment',
  'people?org=acme&page=nonsense',
])('a bad address, %s, is refused and is no fault', async (path) => {
  const browser = await signedIn('root')
  const before = world.logged.length
  const { status, text } = await get(browser, `/console/${path}`)
  expect({ path, isRefused: status === 400 || text.includes('role="alert"') }).toEqual({ path, isRefused: true })
  expect(world.logged.slice(before).filter((line) => line.includes('"request_failed"'))).toEqual([])
})

test('an answer that is watched ends with the relationship that expires', async () => {
  const browser = await signedIn('root')
  const expires_at = new Date(Date.now() + 3_000).toISOString()
  const tuple = { object: 'doc:brief', relation: 'viewer', subject: 'user:bob', expires_at }
  await world.manage('POST', '/v1/organizations/acme/relationships', { write: [tuple] })
  const query = { org: 'acme', subject: 'user:bob', relation: 'viewer', resource: 'doc:brief' }
  const response = await browser.send(`/console/ask/watch?${new URLSearchParams(query)}`)
  let seen = ''
  for await (const chunk of response.body ?? []) {
    seen += Buffer.from(chunk).toString()
    if (seen.includes('✗ denied')) break
  }
  expect(seen).toMatch(/✓ allowed[\s\S]*✗ denied/)
})

test('no heading and no title has a character that nobody sees', async () => {
  const browser = await signedIn('root')
  await world.manage('PUT', '/v1/organizations/hidden', { name: 'A\u202Ecme<b>' })
  await world.manage('PUT', '/v1/users/hidden', { name: 'Da\u200Bna\u202E' })
  const odd = encodeURIComponent('doc:a\u202Etxt')
  for (const path of [
    'organization?org=hidden',
    'people?org=acme&user=hidden',
    `ask?org=acme&subject=user:bob&relation=viewer&resource=${odd}`,
    `model?org=acme&app=${odd}`,
  ]) {
    const { text } = await get(browser, `/console/${path}`)
    const shown = [/<h1>.*<\/h1>/.exec(text)?.[0], /<title>.*<\/title>/.exec(text)?.[0]]
    expect({ path, isHidden: /[\u202E\u200B]|<b>/.test(shown.join('')) }).toEqual({ path, isHidden: false })
    if (!path.startsWith('model')) expect(shown[1]).toContain('U+202E')
  }
})

test('since when and by whom is said of a grant and of a membership as of a relationship', async () => {
  const exporter = { app: 'docs', role: 'exporter' }
  await world.manage('POST', '/v1/organizations/acme/role-grants', { ...exporter, subject: 'user:anna' })
  await world.manage('POST', '/v1/role-grants', { ...exporter, subject: 'user:root' })
  const root = await signedIn('root')
  const since = async (question: string, as = root): Promise<string> =>
    /<tbody>.*?<\/tbody>/s.exec((await get(as, `/console/ask?org=acme&${question}`)).text)?.[0] ?? ''
  const export_ = 'subject=user:anna&relation=docs:export&resource=app:docs'
  const member = 'subject=user:anna&relation=member&resource=organization:acme'
  const wide = 'subject=user:root&relation=docs:export&resource=app:docs'
  for (const question of [export_, member, wide]) {
    const row = await since(question)
    expect(row).toMatch(/<time .*by <bdi class="name">[^<]*admin.*revision \d+/s)
  }
  expect(await since(wide)).toContain('log=environment')
  // Who may not read the log of the environment learns nothing of it.
  const ofAnna = await since(wide, await signedIn('anna'))
  expect(ofAnna).not.toMatch(/<time|log=environment|exporter/)
  expect(ofAnna).toContain('granted where you may not look')
})

test.each([
  'who?org=acme&resource=doc:2&relation=vewer&type=user',
  'what?org=acme&subject=user:bob&relation=vewer&type=doc',
])('a slip in the relation of a list, %s, is named with what there is', async (path) => {
  const { text } = await get(await signedIn('root'), `/console/${path}`)
  expect(text.replaceAll(/<[^>]*>/g, '')).toContain('type doc no relation vewer. It has banned, editor, parent, viewer')
  const right = (await get(await signedIn('root'), `/console/${path.replace('vewer', 'banned')}`)).text
  expect(right).not.toContain('no relation')
})

test.each(['bob', 'tom'] as const)('what lives is as closed to %s as its screens', async (person) => {
  const browser = await signedIn(person)
  for (const path of ['decisions/tail?org=acme', 'ask/watch?org=acme&subject=user:bob&relation=viewer&resource=doc:2'])
    expect((await get(browser, `/console/${path}`)).status).toBe(403)
})

test('lists take a supposition as the question does', async () => {
  const browser = await signedIn('root')
  const { text } = await get(
    browser,
    '/console/who?org=acme&resource=doc:new&relation=viewer&type=user&with=doc:new%23viewer@user:tom',
  )
  expect(text).toContain('user:tom')
  for (const field of ['with', 'without', 'as_of', 'context']) expect(text).toMatch(new RegExp(`id="${field}"`))
  expect((await get(browser, '/console/what?org=acme')).text).toContain('id="as_of"')
})

test.each([
  ['who', 'resource=doc:1&relation=viewer&with=what%20is%20this', 'what is this'],
  ['who', 'resource=doc:1&relation=viewer&as_of=soon', 'is not a time such as'],
  ['what', 'subject=:bob&relation=viewer&type=doc', 'Write type:id'],
  ['what', 'subject=user:bob&relation=viewer&type=doc&context=%7B', 'is not a JSON object'],
])('a list that cannot read its question keeps the form and says what is wrong: %s?%s', async (list, query, said) => {
  const { status, text } = await get(await signedIn('root'), `/console/${list}?org=acme&${query}`)
  expect(status).toBe(200)
  expect(text).toMatch(/<form method="get"[\s\S]*value="viewer"/)
  expect(text.replace(/<form[\s\S]*?<\/form>/g, '')).toContain(said)
})

test('a person has every membership, whatever its status', async () => {
  await world.manage('PUT', '/v1/users/dora', { name: 'Dora' })
  await world.manage('PUT', '/v1/organizations/globex/members/dora', { role: 'member', status: 'suspended' })
  const { text } = await get(await signedIn('root'), '/console/people?org=acme&user=dora')
  expect(text).toMatch(/globex.*suspended/)
})

test('nothing watches a question about the past', async () => {
  const browser = await signedIn('root')
  const query = {
    org: 'acme',
    subject: 'user:bob',
    relation: 'viewer',
    resource: 'doc:2',
    as_of: new Date().toISOString(),
  }
  const response = await browser.send(`/console/ask/watch?${new URLSearchParams(query)}`)
  expect(await response.text()).toBe('retry: 1000\n\n')
})

test('the start names streams that lag, issuers that do not answer and an old key, to those whose business they are', async () => {
  const client = new pg.Client({ connectionString: world.connectionString })
  await client.connect()
  await client.query("update signing_key set created_at = now() - interval '400 days' where state = 'active'")
  await client.query("update signal_stream set status = 'paused' where stream_id = 'stream-of-failing'")
  await client.end()
  const issuer = 'https://login.gone.invalid'
  await world.manage('PUT', `/v1/trusted-issuers/${encodeURIComponent(issuer)}`, {
    jwks_uri: `${issuer}/jwks`,
    algorithms: ['RS256'],
    subject_prefix: 'gone:',
    organizations: ['acme'],
    audience: 'https://docs.example',
  })
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = `${part({ alg: 'RS256', typ: 'at+jwt', kid: 'k' })}.${part({ iss: issuer, sub: 's' })}.${part({})}`
  const asked = await fetch(`${world.issuer}/oauth/decisions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"permissions":[{"relation":"viewer","resource":"doc:1"}]}',
  })
  expect(asked.status).toBe(503)
  const root = (await get(await signedInTo(world, 'root'), '/console?org=acme')).text
  expect(root).toMatch(/The stream of .*failing.* is paused: .*answered 503/)
  expect(root).toMatch(/login\.gone\.invalid.* does not answer since/)
  expect(root).toContain('The key that signs tokens was made 400 days ago')
  const anna = (await get(await signedInTo(world, 'anna'), '/console?org=acme')).text
  expect(anna).not.toMatch(/login\.gone|failing|key that signs/)
})
