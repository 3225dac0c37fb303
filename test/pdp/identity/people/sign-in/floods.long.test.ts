/** One address floods, or many do, and others can still sign in and get tokens. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBrowser } from '../../../../support/browser.ts'
import { cheapHash, slowHash } from '../../../../support/passwords/cheap-hash.ts'
import { openWorld, PASSWORD, postToken, REDIRECT, SECRET, type World } from '../../harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ trustedProxies: ['127.0.0.1'], decoyHash: slowHash('the secret of nobody') })
  const metadata = { grant_types: ['client_credentials'] }
  await world.putClient({ id: 'chosen', metadata, secretHash: slowHash(SECRET) })
  for (const id of ['normal', 'known']) await world.putClient({ id, metadata, secretHash: cheapHash(SECRET) })
})
afterAll(() => world.close())

type Fields = { readonly [name: string]: string }
const from = (address: string): Fields => ({ 'x-forwarded-for': address })
const FLOOD = from('203.0.113.6')
const FLOOD_REQUESTS = 150
/** A busy machine takes long for so many requests. */
const PATIENT = 180_000
const QUERY = new URLSearchParams({
  ...{ client_id: 'web', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid' },
  ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
})

async function token(id: string, secret: string, headers: Fields): Promise<number> {
  return (await postToken(world, { grant_type: 'client_credentials' }, { id, secret, headers })).status
}
/** `browser`: with the cookies that it has. */
async function begin(headers: Fields, browser = createBrowser(world.issuer)) {
  const path = (await browser.send(`/oauth/authorize?${QUERY}`, { headers })).headers.get('location') ?? ''
  return async (email: string, password: string, at = headers): Promise<number> =>
    (await browser.send(path, { form: { action: 'continue', email, password }, headers: at })).status
}
const signIn = async (headers: Fields, email: string, password = PASSWORD) => (await begin(headers))(email, password)

type Try = (i: number) => Promise<number>
const KINDS: readonly (readonly [string, () => Promise<Try>])[] = [
  ['secrets of clients that do not exist', async () => (i) => token(`unknown-${i}`, 'wrong', FLOOD)],
  ['wrong secrets of a client', async () => () => token('chosen', 'wrong', FLOOD)],
  [
    'wrong passwords',
    async () => {
      const tries = await Promise.all(Array.from({ length: FLOOD_REQUESTS }, () => begin(FLOOD)))
      return (i) => tries[i]?.(`nobody-${i}@x.example`, 'wrong') ?? Promise.resolve(0)
    },
  ],
]

describe('while one address floods with', { timeout: PATIENT }, () => {
  test.each(KINDS)('%s, another gets its tokens and signs in', async (_, prepare) => {
    const attempt = await prepare()
    const other = await begin(from('203.0.113.7'))
    const statuses: number[] = []
    const flood = Array.from({ length: FLOOD_REQUESTS }, async (_, i) => void statuses.push(await attempt(i)))
    // The line is full, unless the machine is slower at sending than at checking.
    const isFull = () => statuses.includes(503) || statuses.length === FLOOD_REQUESTS
    await expect.poll(isFull, { timeout: 60_000, interval: 2 }).toBe(true)
    const normal = await Promise.all([
      token('normal', SECRET, from('203.0.113.7')),
      token('chosen', SECRET, from('203.0.113.8')),
      token('nobody', 'wrong', from('203.0.113.9')),
      other('eve@x.example', PASSWORD),
    ])
    expect(normal).toEqual([200, 200, 401, 303])
    await Promise.all(flood)
    for (const status of statuses) expect([400, 401, 503]).toContain(status)
  })

  test('a client that is told to wait is told for how long', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, () =>
        postToken(world, { grant_type: 'client_credentials' }, { id: 'chosen', secret: 'wrong', headers: FLOOD }),
      ),
    )
    const busy = answers.filter(({ status }) => status === 503)
    expect(busy.length).toBeGreaterThan(0)
    for (const { headers, body } of busy) {
      expect(headers.get('retry-after')).toBe('1')
      expect(body).toMatchObject({ error: 'temporarily_unavailable' })
    }
  })
})

describe('when strangers at many addresses have used up the tries for a person', { timeout: PATIENT }, () => {
  test('the person signs in from a known device and from a known address, and nobody from elsewhere', async () => {
    const [home, abroad] = [from('198.51.100.1'), from('198.51.100.2')]
    const device = createBrowser(world.issuer)
    expect(await (await begin(home, device))('cy@x.example', PASSWORD)).toBe(303)
    for (let i = 0; i < 30; i += 1) expect(await signIn(from(`192.0.2.${i}`), 'cy@x.example', 'wrong')).toBe(400)
    expect(await signIn(from('192.0.2.99'), 'cy@x.example')).toBe(429)
    expect(await signIn(abroad, 'cy@x.example')).toBe(429)
    expect(await signIn(home, 'cy@x.example')).toBe(303)
    const again = await begin(abroad, device)
    expect(await again('cy@x.example', PASSWORD)).not.toBe(429)
  })

  test('what is known of one address says nothing of another person there', async () => {
    const home = from('198.51.100.3')
    expect(await signIn(home, 'eve@x.example')).toBe(303)
    for (let i = 0; i < 30; i += 1) expect(await signIn(from(`192.0.2.${i}`), 'dan@x.example', 'wrong')).toBe(400)
    expect(await signIn(home, 'dan@x.example')).toBe(429)
    expect(await signIn(home, 'eve@x.example')).toBe(303)
  })
})

describe('requests that nobody has signed in for', { timeout: PATIENT }, () => {
  const countRecords = async (): Promise<number> =>
    (await world.sql.query<{ n: number }>('select count(*)::int as n from oidc_record'))[0]?.n ?? 0
  const post = (path: string, form: Fields, headers: Fields) =>
    fetch(world.issuer + path, { method: 'POST', headers, body: new URLSearchParams(form) })

  test('are bounded for one address, over all ways to make them, and others go on', async () => {
    const flood = from('203.0.113.66')
    const before = await countRecords()
    const ways = [
      () => createBrowser(world.issuer).send(`/oauth/authorize?${QUERY}`, { headers: flood }),
      () => post('/oauth/device_authorization', { client_id: 'public-flows', scope: 'openid' }, flood),
      () => post('/oauth/par', { ...Object.fromEntries(QUERY), client_id: 'spa' }, flood),
      () => createBrowser(world.issuer).send('/oauth/device', { headers: flood }),
    ]
    const statuses: number[] = []
    for (let round = 0; round < 40; round += 1) {
      const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => ways[i % ways.length]?.()))
      statuses.push(...answers.map((answer) => answer?.status ?? 0))
    }
    expect(statuses.filter((status) => status < 400)).toHaveLength(600)
    expect(statuses.filter((status) => status === 429)).toHaveLength(40)
    // An authorization request stores an interaction, and the page of a device its session.
    expect((await countRecords()) - before).toBeLessThanOrEqual(1_200)
    const head = () => fetch(`${world.issuer}/oauth/authorize?${QUERY}`, { method: 'HEAD', headers: flood })
    for (const way of [...ways, head]) {
      const refused = await way()
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    }
    expect(
      (await createBrowser(world.issuer).send(`/oauth/authorize?${QUERY}`, { headers: from('203.0.113.67') })).status,
    ).toBe(303)
    expect(
      (await post('/oauth/device_authorization', { client_id: 'public-flows', scope: 'openid' }, from('203.0.113.67')))
        .status,
    ).toBe(200)
  })

  test('do not count for a client that authenticates, nor when they are refused', async () => {
    const headers = from('203.0.113.70')
    const basic = `Basic ${Buffer.from(`web:${SECRET}`).toString('base64')}`
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(
        Array.from({ length: 16 }, (_, i) =>
          i % 2 === 0
            ? post('/oauth/par', Object.fromEntries(QUERY), { ...headers, authorization: basic })
            : post('/oauth/device_authorization', { client_id: 'nobody' }, headers),
        ),
      )
    }
    const pushed = await post('/oauth/par', Object.fromEntries(QUERY), { ...headers, authorization: basic })
    expect(pushed.status).toBe(201)
    expect((await createBrowser(world.issuer).send(`/oauth/authorize?${QUERY}`, { headers })).status).toBe(303)
  })
})
