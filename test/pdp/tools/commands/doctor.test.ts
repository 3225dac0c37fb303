/** `portcullis doctor` on what is broken: it says what is wrong and what to do. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttp2Server, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'
import { runOn } from './served-pdp.ts'

const servers: Server[] = []
const closing: (() => void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) close()
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
  /** What lists have, by path; else they end in the middle. */
  readonly items?: { readonly [path: string]: readonly object[] }
  /** What the PDP knows of the trusted issuer. */
  readonly trusted?: readonly [number, object]
}

/** What a PDP in this state answers. */
async function pdp({
  token = 200,
  skewMs = 0,
  issuer,
  list = 200,
  items,
  trusted = [404, {}],
}: Broken): Promise<string> {
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
      : [
          list,
          items === undefined
            ? { items: [], next_page_token: 'more' }
            : { items: items[req.url?.split('?')[0] ?? ''] ?? [] },
        ]
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
      { state: 'failed', said: 'what listens there does not speak gRPC' },
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

  type Peer = {
    readonly pdp: string
    readonly upstream?: string
    readonly resource?: string
    readonly issuers?: string
  }
  const peers = async (url: string, { pdp, upstream, resource = 'https://app.example.com', issuers = '[]' }: Peer) => {
    const file = join(folder, 'peers.yaml')
    const service = upstream === undefined ? '' : `upstream: ${upstream}\n`
    writeFileSync(file, `resource: ${resource}\npdp: ${pdp}\n${service}issuers: ${issuers}\n`)
    const { found } = await examined(url, ` --route-file ${file}`)
    return found.filter(({ check }) => /^(pdp|upstream|resource|organization) /.test(check))
  }
  async function grpc(
    answer: (stream: ServerHttp2Stream) => void,
    tls?: { key: Buffer; cert: Buffer },
  ): Promise<number> {
    const server = tls === undefined ? createHttp2Server() : createSecureServer(tls)
    server.on('stream', answer)
    const sessions = new Set<{ destroy(): void }>()
    server.on('session', (session) => sessions.add(session))
    closing.push(() => {
      for (const session of sessions) session.destroy()
      server.close()
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    return (server.address() as AddressInfo).port
  }
  const decides = (status: string) => (stream: ServerHttp2Stream) =>
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status }, { endStream: true })
  const [key = Buffer.alloc(0), cert = Buffer.alloc(0)] = ['key', 'pem'].map((end) =>
    readFileSync(`test/support/certificates/server-1.${end}`),
  )

  test('asks each PDP over gRPC as the sidecar does, with and without TLS', async () => {
    const url = await pdp({})
    const [plain, secure] = [await grpc(decides('16')), await grpc(decides('16'), { key, cert })]
    writeFileSync(join(folder, 'ca.pem'), readFileSync('test/support/certificates/ca.pem'))
    const ok = (port: number, host = '127.0.0.1') => [
      { check: `pdp ${host}:${port}`, state: 'ok', said: 'a PDP answers there' },
    ]
    expect(await peers(url, { pdp: `{address: "127.0.0.1:${plain}", insecure: true}` })).toMatchObject(ok(plain))
    const found = await peers(url, { pdp: `{address: "localhost:${secure}", ca_file: ca.pem}` })
    expect(found).toMatchObject(ok(secure, 'localhost'))
  })

  test.each<[string, (ports: Record<string, number>) => string, RegExp]>([
    ['TLS to a plain port', ({ plain }) => `{address: "127.0.0.1:${plain}"}`, /does not speak TLS/],
    [
      'no TLS to a port that has it',
      ({ secure }) => `{address: "127.0.0.1:${secure}", insecure: true}`,
      /does not speak gRPC/,
    ],
    ['the HTTP port', ({ http }) => `{address: "127.0.0.1:${http}", insecure: true}`, /does not speak gRPC/],
    ['another gRPC service', ({ other }) => `{address: "127.0.0.1:${other}", insecure: true}`, /another gRPC service/],
    ['a web server with HTTP/2', ({ web }) => `{address: "127.0.0.1:${web}", insecure: true}`, /does not speak gRPC/],
    [
      'a certificate that is not trusted',
      ({ secure }) => `{address: "localhost:${secure}"}`,
      /certificate is not accepted/,
    ],
    [
      'an authority that is not there',
      ({ secure }) => `{address: "localhost:${secure}", ca_file: no.pem}`,
      /ca_file: no\.pem does not exist/,
    ],
    ['a port without anybody', () => '{address: "127.0.0.1:9", insecure: true}', /ECONNREFUSED/],
  ])('says so of %s', async (_, written, said) => {
    const url = await pdp({})
    const ports = {
      plain: await grpc(decides('16')),
      secure: await grpc(decides('16'), { key, cert }),
      other: await grpc(decides('12')),
      web: await grpc((stream) => stream.respond({ ':status': 404, 'content-type': 'text/html' }, { endStream: true })),
      http: Number(new URL(url).port),
    }
    expect(await peers(url, { pdp: written(ports) })).toMatchObject([
      { state: 'failed', said: expect.stringMatching(said), advice: expect.any(String) },
    ])
  })

  test('says that nothing listens at the address of the service, and is content with what does', async () => {
    const url = await pdp({})
    const alive = { pdp: `{address: "127.0.0.1:${await grpc(decides('16'))}", insecure: true}` }
    expect(await peers(url, { ...alive, upstream: 'http://127.0.0.1:9' })).toMatchObject([
      { state: 'ok' },
      { check: 'upstream http://127.0.0.1:9', state: 'failed', said: expect.stringContaining('ECONNREFUSED') },
    ])
    expect(await peers(url, { ...alive, upstream: `{url: "${url}"}` })).toMatchObject([
      { state: 'ok' },
      { state: 'ok' },
    ])
    expect(
      await peers(url, { ...alive, upstream: `{url: "http://a", socket: ${join(folder, 'none')}}` }),
    ).toMatchObject([{ state: 'ok' }, { state: 'failed', said: expect.stringContaining('ENOENT') }])
  })

  test('says which resource no app declares, and which organization is not there, with what was meant', async () => {
    const items = { '/v1/apps': [{ audiences: ['https://app.example.com'] }], '/v1/organizations': [{ id: 'acme' }] }
    const url = await pdp({ items })
    const alive = { pdp: `{address: "127.0.0.1:${await grpc(decides('16'))}", insecure: true}` }
    const issuers = '[{issuer: "http://127.0.0.1:9", external: {organizations: [acmee, acme]}}]'
    expect(await peers(url, { ...alive, resource: 'https://ap.example.com', issuers })).toMatchObject([
      { state: 'ok' },
      {
        check: 'resource https://ap.example.com',
        said: expect.stringContaining('did you mean "https://app.example.com"?'),
      },
      { check: 'organization acmee', state: 'failed', said: expect.stringContaining('did you mean "acme"?') },
    ])
    expect(await peers(url, alive)).toMatchObject([{ state: 'ok' }])
  })
})
