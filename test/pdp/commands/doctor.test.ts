/** `portcullis doctor` on what is broken: it says what is wrong and what to do. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { tmpdir } from 'node:os'
import { afterEach, expect, test } from 'vitest'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
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

type Broken = { readonly token?: number; readonly skewMs?: number; readonly issuer?: string; readonly list?: number }

/** What a PDP in this state answers. */
async function pdp({ token = 200, skewMs = 0, issuer, list = 200 }: Broken): Promise<string> {
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
    const [status, body] = bodies[req.url ?? ''] ?? [list, { items: [] }]
    res.writeHead(status, { 'content-type': 'application/json', date: new Date(Date.now() + skewMs).toUTCString() })
    res.end(JSON.stringify(body))
  }
  origin = `http://127.0.0.1:${await listen(createServer(answer))}`
  return origin
}

const SECRET = { PORTCULLIS_CLIENT_SECRET: 'a-secret-of-the-client' }
async function examined(url: string): Promise<{
  readonly status: unknown
  readonly found: readonly { check: string; state: string; said: string; advice?: string }[]
}> {
  const { status, out } = await runOn({ folder: tmpdir(), url }, 'doctor --json --client-id robot', {
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
