/** Logout tokens to clients (OpenID Connect Back-Channel Logout 1.0), received by a real server. */
import { createServer, type ServerResponse } from 'node:http'
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { queueLogouts } from '../../../../pdp/engine/store/logouts.ts'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { createFlow } from '../flow.ts'
import { CONTEXT, decode, openWorld, REDIRECT, SECRET, type World } from '../harness.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
let world: World
let url = ''
const got: { readonly token: string; readonly type: string | undefined }[] = []
let answer = (res: ServerResponse): void => void res.writeHead(200).end()
const receiver = createServer(async (req, res) => {
  let body = ''
  for await (const piece of req) body += String(piece)
  got.push({ token: new URLSearchParams(body).get('logout_token') ?? '', type: req.headers['content-type'] })
  answer(res)
})
beforeAll(async () => {
  world = await openWorld()
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
  const address = receiver.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/out?tenant=a`
})
afterAll(async () => {
  await world.close()
  receiver.closeAllConnections()
  receiver.close()
})
beforeEach(async () => {
  await world.sql.query('delete from attempt')
  got.length = 0
  answer = (res) => void res.writeHead(200).end()
})

async function signedIn({ session = true, uri = url }: { session?: boolean; uri?: string | null } = {}) {
  await world.directory.putClient(
    {
      ...{ id: 'told', app: null, organization: null, secretHash: hashGeneratedSecret(SECRET) },
      metadata: {
        ...{ redirect_uris: [REDIRECT], scope: 'openid', backchannel_logout_session_required: session },
        ...(uri !== null && { backchannel_logout_uri: uri }),
      },
    },
    CONTEXT,
  )
  const flow = createFlow(world)
  const found = await flow.authorize({ client_id: 'told' }, 'eve')
  const { body } = await flow.redeem(found.searchParams.get('code') ?? '', {}, 'told')
  return decode(String(body.id_token)).payload
}
const end = () => world.identity.sessions.revokeUser('eve', CONTEXT)
const received = async (count: number) => {
  await expect.poll(() => got.length).toBeGreaterThanOrEqual(count)
  return got
}
const pending = () => world.sql.query('select attempts_count as attempts from logout_pending')
const dueNow = () => world.sql.query('update logout_pending set next_attempt_at = now()')
const verified = async (token: string): Promise<JWTPayload> => {
  const keys = createLocalJWKSet({ keys: [...world.identity.publicKeys()] })
  return (await jwtVerify(token, keys, { issuer: world.issuer, audience: 'told', typ: 'logout+jwt' })).payload
}

test('the client gets one signed token that names the session as its ID token did', async () => {
  const { sid } = await signedIn()
  await end()
  const [first] = await received(1)
  const payload = await verified(first?.token ?? '')
  expect(payload).toMatchObject({ sub: 'eve', sid, events: { [EVENT]: {} }, jti: expect.any(String) })
  expect([typeof sid, Number(payload.exp) - Number(payload.iat), 'nonce' in payload]).toEqual(['string', 120, false])
  expect(first?.type).toBe('application/x-www-form-urlencoded')
  await expect.poll(pending).toEqual([])
  // The session has ended: its end is not told again.
  await end()
  expect(await pending()).toEqual([])
})

test('a client that does not need the session gets the person alone', async () => {
  expect(await signedIn({ session: false })).not.toHaveProperty('sid')
  await end()
  const [first] = await received(1)
  expect(await verified(first?.token ?? '')).not.toHaveProperty('sid')
})

test('nothing is queued for a client without an address, or whose session has expired', async () => {
  await signedIn({ uri: null })
  await end()
  expect(await pending()).toEqual([])
  await signedIn()
  await world.sql.query("update oidc_record set expires_at = now() where kind = 'Session'")
  await world.sql.transaction((tx) => queueLogouts(tx, { by: 'user', id: 'eve' }))
  expect(await pending()).toEqual([])
})

test('a client that is away gets a new token at the next attempt, and a redirect is no answer', async () => {
  await signedIn()
  for (const away of [503, 302]) {
    answer = (res) => void res.writeHead(away, { location: `${url}&elsewhere` }).end()
    if (away === 503) await end()
    else await dueNow()
    await received(away === 503 ? 1 : 2)
    await expect.poll(pending).toEqual([{ attempts: away === 503 ? 1 : 2 }])
  }
  await expect.poll(() => world.log.join('')).toContain('answered 302')
  answer = (res) => void res.writeHead(204).end()
  await expect.poll(async () => [await dueNow(), await pending()][1]).toEqual([])
  const tokens = got.map(({ token }) => decode(token).payload.jti)
  expect(tokens.length).toBeGreaterThanOrEqual(3)
  expect(new Set(tokens).size).toBe(tokens.length)
})

test('a client that refuses the token is not asked again, and one that is away for a day is given up', async () => {
  await signedIn()
  answer = (res) => void res.writeHead(400).end(JSON.stringify({ error: 'invalid_request', error_description: 'no\n' }))
  await end()
  await received(1)
  await expect.poll(pending).toEqual([])
  expect(world.log.join('')).toContain('"outcome":"refused","reason":"400 invalid_request: no?"')
  answer = (res) => void res.writeHead(500).end()
  await signedIn()
  await end()
  await received(2)
  await world.sql.query("update logout_pending set ended_at = now() - interval '25 hours'")
  await expect.poll(async () => [await dueNow(), await pending()][1]).toEqual([])
  expect(world.log.join('')).toContain('logout_given_up')
})

test('an address that is taken away, or the whole client, ends what waits', async () => {
  answer = (res) => void res.writeHead(500).end()
  await signedIn()
  await end()
  await received(1)
  await world.putClient({ id: 'told', metadata: { redirect_uris: [REDIRECT] } })
  await expect.poll(async () => [await dueNow(), await pending()][1]).toEqual([])
})

test.each([
  'http://example.com/out',
  'https://user:secret@example.com/out',
  'https://example.com/out#part',
  'https://10.0.0.1/out',
  'https://[::1]/out',
  'https://169.254.169.254/latest/meta-data',
  'https://0x0a000001/out',
  'https://metadata.internal/out',
  'https://localhost/out',
  'https://postgres/out',
  'file:///etc/passwd',
  'out',
])('a registration with the address %s is refused', async (uri) => {
  const metadata = { redirect_uris: [REDIRECT], backchannel_logout_uri: uri }
  const client = { id: 'hostile', app: null, organization: null, metadata, secretHash: null }
  const refused = await world.identity.validateClient(client).catch((err: unknown) => err)
  expect(refused).toBeInstanceOf(PdpError)
  expect(String(refused)).toContain('/backchannel_logout_uri')
})

test('what was stored before is refused at the call, and nothing is sent', async () => {
  await signedIn({ uri: 'http://10.0.0.1/out' })
  await end()
  await expect.poll(() => world.log.join('')).toContain('the endpoint must use https')
  expect(got).toEqual([])
  await world.sql.query('delete from logout_pending')
})

test('the metadata of the issuer says that it sends them', async () => {
  const metadata = await (await fetch(`${world.issuer}/.well-known/openid-configuration`)).json()
  expect(metadata).toMatchObject({ backchannel_logout_supported: true, backchannel_logout_session_supported: true })
})
