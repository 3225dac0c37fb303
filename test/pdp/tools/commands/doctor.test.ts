/** `portcullis doctor` on what is broken: it says what is wrong and what to do. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'
import { runOn } from './served-pdp.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return address === null || typeof address === 'string' ? 0 : address.port
}

type Broken = {
  readonly token?: number
  readonly skewMs?: number
  readonly issuer?: string
  readonly list?: number
  /** What the PDP knows of the trusted issuer. */
  readonly trusted?: readonly [number, object]
}

/** What a PDP in this state answers. */
async function pdp({ token = 200, skewMs = 0, issuer, list = 200, trusted = [404, {}] }: Broken): Promise<string> {
  let origin = ''
  const answer: RequestListener = (req, res) => {
    const bodies: { readonly [path: string]: readonly [number, object] } = {
      '/.well-known/openid-configuration': [
        200,
        { issuer: issuer ?? origin, jwks_uri: `${issuer ?? origin}/oauth/jwks` },
      ],
      '/oauth/jwks': [200, { keys: [] }],
      '/oauth/token': [
        token,
        token === 200 ? { access_token: 'x' } : { error: token === 503 ? 'temporarily_unavailable' : 'invalid_client' },
      ],
    }
    const other: readonly [number, object] = req.url?.startsWith('/v1/trusted-issuers/')
      ? trusted
      : [list, { items: [] }]
    const [status, body] = bodies[req.url ?? ''] ?? other
    res.writeHead(status, { 'content-type': 'application/json', date: new Date(Date.now() + skewMs).toUTCString() })
    res.end(JSON.stringify(body))
  }
  origin = `http://127.0.0.1:${await listen(createServer(answer))}`
  return origin
}

const SECRET = { PORTCULLIS_CLIENT_SECRET: 'a-secret-of-the-client' }
async function examined(
  url: string,
  words = '',
): Promise<{
  readonly status: unknown
  readonly found: readonly { check: string; state: string; said: string; advice?: string }[]
}> {
  const { status, out } = await runOn({ folder: tmpdir(), url }, `doctor --json --client-id robot${words}`, {
    env: SECRET,
  })
  return { status, found: JSON.parse(out) }
}

test.each<[string, Broken, string, RegExp, RegExp]>([
  ['its database is down, so nobody gets a token', { token: 503 }, 'database', /cannot reach it/, /DATABASE_URL/],
  ['its database goes down', { list: 503 }, 'database', /cannot reach it/, /is PostgreSQL up/],
  ['its clock is ahead', { skewMs: 60_000 }, 'clock', /differs by (59|60) s/, /NTP/],
  ['its clock is behind', { skewMs: -3_600_000 }, 'clock', /differs by 360\d s/, /NTP/],
  [
    'its issuer leads nowhere',
    { issuer: 'http://127.0.0.1:9' },
    'issuer',
    /127\.0\.0\.1:9.* cannot be read/,
    /PORTCULLIS_ISSUER/,
  ],
  ['the client lacks the scope', { list: 403 }, 'database', /answers 403/, /directory:read/],
  ['the client is refused', { token: 401 }, 'credentials', /got no token/, /--client-secret-file/],
])('says so when %s', async (_, broken, check, said, advice) => {
  const { status, found } = await examined(await pdp(broken))
  expect(status).toBe(2)
  const wrong = found.filter(({ state }) => state === 'failed')
  expect(wrong).toEqual([
    { check, state: 'failed', said: expect.stringMatching(said), advice: expect.stringMatching(advice) },
  ])
})

test('does not send one whose certificate nobody trusts to start the PDP', async () => {
  const [key, cert] = ['key', 'pem'].map((end) => readFileSync(`test/support/certificates/server-1.${end}`))
  const port = await listen(createTlsServer({ key, cert }, (_, res) => res.end()))
  const { status, found } = await examined(`https://127.0.0.1:${port}`)
  expect([status, found.map(({ check, state }) => [check, state])]).toEqual([
    2,
    [
      ['PDP', 'failed'],
      ['certificate', 'failed'],
      ['route file', 'skipped'],
    ],
  ])
  expect(found[0]?.advice).toContain('certificate')
  expect(found[1]?.advice).toContain('NODE_EXTRA_CA_CERTS')
})

test('says that a certificate has expired, and when', async () => {
  const made = await makeCertificate({ names: ['localhost'], days: 10, nowMs: Date.parse('2020-01-01T00:00:00Z') })
  const { key, certificate: cert } = made
  const port = await listen(createTlsServer({ key, cert }, (_, res) => res.end()))
  const { status, found } = await examined(`https://127.0.0.1:${port}`)
  expect(status).toBe(2)
  expect(found).toContainEqual({
    check: 'certificate',
    state: 'failed',
    said: 'it expired on 2020-01-11',
    advice: 'renew it',
  })
})

test('does not send one with a wrong name to start the PDP', async () => {
  const { found } = await examined('https://pdp.invalid')
  expect(found[0]).toMatchObject({ check: 'PDP', state: 'failed', advice: expect.stringContaining('--url') })
})

describe('of a route file', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'doctor-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  type Written = { readonly url: string; readonly issuers: string; readonly address?: string }
  function write({ url, issuers, address }: Written): string {
    const file = join(folder, 'portcullis.yaml')
    const pdp = `pdp: {address: "${address ?? new URL(url).host}", insecure: true}`
    writeFileSync(file, `resource: https://app.example.com\n${pdp}\nissuers: ${issuers}\n`)
    return ` --route-file ${file}`
  }
  const about = async (broken: Broken, written: Omit<Written, 'url'>): Promise<readonly object[]> => {
    const url = await pdp(broken)
    const { found } = await examined(url, write({ url, ...written }))
    return found.filter(({ check }) => /^(issuer|pdp) \S/.test(check))
  }
  async function provider(keys: object | null = { keys: [{ kty: 'RSA' }] }): Promise<string> {
    let origin = ''
    const server = createServer((req, res) => {
      res.writeHead(keys === null ? 500 : 200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(req.url === '/keys' ? keys : { jwks_uri: `${origin}/keys` }))
    })
    origin = `http://127.0.0.1:${await listen(server)}`
    return origin
  }
  const entry = (issuer: string): string =>
    `[{issuer: "${issuer}", external: {subject_prefix: "kc:", organizations: [acme], claims: {client: azp}}}]`
  const KNOWN = {
    subject_prefix: 'kc:',
    audience: 'https://app.example.com',
    organizations: ['acme', 'other'],
    algorithms: ['RS256'],
    claims: { subject: 'sub', client: 'azp' },
  }

  test('is content with an issuer whose keys are there and which the PDP trusts', async () => {
    const issuer = await provider()
    const trusted = [200, { ...KNOWN, jwks_uri: `${issuer}/keys` }] as const
    expect(await about({ trusted }, { issuers: entry(issuer) })).toMatchObject([
      { state: 'ok', said: 'something listens there' },
      { check: `issuer ${issuer}`, state: 'ok', said: 'its key can be read, and the PDP trusts it' },
    ])
  })

  test.each<[string, Partial<typeof KNOWN> | null, string]>([
    ['does not trust it', null, 'but the PDP does not trust it'],
    ['reads another claim', { claims: { subject: 'sub', client: 'client_id' } }, 'other values of claims'],
    ['has another prefix', { subject_prefix: 'k:' }, 'other values of subject_prefix'],
    ['lacks the organization', { organizations: ['other'] }, 'other values of organizations'],
  ])('sends to setup when the PDP %s', async (_, differing, said) => {
    const issuer = await provider()
    const known = { ...KNOWN, ...differing, jwks_uri: `${issuer}/keys` }
    const [, finding] = await about(
      { trusted: differing === null ? [404, {}] : [200, known] },
      { issuers: entry(issuer) },
    )
    expect(finding).toMatchObject({
      state: 'failed',
      said: expect.stringContaining(said),
      advice: expect.stringContaining('portcullis setup ORGANIZATION'),
    })
  })

  test.each<[string, object | null, string]>([
    ['has no keys', { keys: [] }, 'has no keys (status 200)'],
    ['answers with something else', ['keys'], 'has no keys (status 200)'],
    ['fails', null, 'has no keys (status 500)'],
  ])('says so when the issuer %s', async (_, keys, said) => {
    const [, finding] = await about({}, { issuers: entry(await provider(keys)) })
    expect(finding).toMatchObject({ state: 'failed', said: expect.stringContaining(said) })
  })

  test('says so when nobody answers for the issuer, and nothing listens at the address of the PDP', async () => {
    expect(await about({}, { issuers: entry('http://127.0.0.1:9'), address: '127.0.0.1:9' })).toMatchObject([
      { check: 'pdp 127.0.0.1:9', state: 'failed', said: expect.stringContaining('ECONNREFUSED') },
      { state: 'failed', said: expect.stringContaining('cannot be read') },
    ])
  })

  test('does not say that the PDP lacks an issuer when it could not ask', async () => {
    const found = await about({ token: 401 }, { issuers: entry(await provider()) })
    expect(found[1]).toMatchObject({ state: 'skipped', said: expect.stringContaining('is not known') })
  })

  test('knows the PDP under another name', async () => {
    const [, finding] = await about({}, { issuers: '[{issuer: "https://id.example.com"}]' })
    expect(finding).toMatchObject({ state: 'failed', advice: expect.stringMatching(/^write issuer: http/) })
  })
})
