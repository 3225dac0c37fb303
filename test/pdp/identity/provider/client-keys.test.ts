/** Clients that publish their keys at a `jwks_uri`, served by a real server. */
import { createServer, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openWorld, postToken, REDIRECT, type World } from '../harness.ts'

type Signer = {
  readonly kid: string
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
  readonly jwk: object
}
let world: World
let url = ''
let hits = 0
let answer: (res: ServerResponse) => void
const server = createServer((_req, res) => {
  hits += 1
  answer(res)
})
const serving =
  (...keys: readonly object[]) =>
  (res: ServerResponse) =>
    void res.end(JSON.stringify({ keys }))
let first: Signer
let next: Signer
async function signer(kid: string): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' } }
}
beforeAll(async () => {
  ;[world, first, next] = await Promise.all([openWorld(), signer('first'), signer('next')])
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(async () => {
  await world.close()
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  hits = 0
  world.time.offsetMs = 0
})

let count = 0
/** A client of its own, so that nothing of its keys is known. */
async function client(uri = url): Promise<string> {
  const id = `keyed-${++count}`
  const metadata = {
    ...{ jwks_uri: uri, token_endpoint_auth_method: 'private_key_jwt' },
    ...{ grant_types: ['client_credentials'], scope: 'orders:read' },
  }
  await world.putClient({ id, metadata })
  return id
}
async function asks(
  id: string,
  { kid, privateKey }: Pick<Signer, 'kid' | 'privateKey'>,
  as = id,
): Promise<'taken' | 'refused'> {
  const seconds = Math.floor((Date.now() + world.time.offsetMs) / 1_000)
  const jti = crypto.randomUUID()
  const assertion = await new SignJWT({ iss: as, sub: as, aud: world.issuer, jti, iat: seconds, exp: seconds + 60 })
    .setProtectedHeader({ alg: 'ES256', kid })
    .sign(privateKey)
  const { status } = await postToken(world, {
    ...{ grant_type: 'client_credentials', client_id: id, client_assertion: assertion },
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  })
  expect([200, 400, 401]).toContain(status)
  return status === 200 ? 'taken' : 'refused'
}

test('its keys are fetched once, and a new one counts when the set has it', async () => {
  answer = serving(first.jwk)
  const id = await client()
  expect([await asks(id, first), await asks(id, first), hits]).toEqual(['taken', 'taken', 1])
  // An unknown key has the set fetched again, at most so often.
  expect([await asks(id, next), await asks(id, next)]).toEqual(['refused', 'refused'])
  expect(hits).toBe(1)
  answer = serving(next.jwk)
  world.time.offsetMs += 31_000
  expect([await asks(id, next), await asks(id, next), hits]).toEqual(['taken', 'taken', 2])
  expect([await asks(id, first), hits]).toEqual(['refused', 2])
})

test('a key that left the set ends, and a set that is away counts for an hour', async () => {
  answer = serving(first.jwk)
  const id = await client()
  expect(await asks(id, first)).toBe('taken')
  answer = serving(next.jwk)
  world.time.offsetMs += 301_000
  // The set is fetched beside the first request after five minutes.
  await asks(id, first)
  await expect.poll(() => asks(id, first)).toBe('refused')
  answer = (res) => void res.writeHead(503).end()
  world.time.offsetMs += 1_800_000
  expect(await asks(id, next)).toBe('taken')
  world.time.offsetMs += 1_900_000
  expect(await asks(id, next)).toBe('refused')
  expect(world.log.join('')).toContain('client_keys_failed')
})

test.each<[string, (res: ServerResponse) => void]>([
  ['a redirect', (res) => void res.writeHead(302, { location: `${url}/else` }).end()],
  ['an error', (res) => void res.writeHead(500).end()],
  ['no JSON', (res) => void res.end('<html>')],
  ['no set', (res) => void res.end('{"keys":"none"}')],
  ['an empty set', serving()],
  ['more than 64 keys', (res) => serving(...Array.from({ length: 65 }, () => first.jwk))(res)],
  ['more than 256 KiB', (res) => void res.end(`{"keys":[],"x":"${'x'.repeat(300_000)}"}`)],
  ['a shared secret', serving({ kty: 'oct', kid: 'first', k: 'c2VjcmV0', alg: 'HS256' })],
  ['nothing in time', () => undefined],
])('%s is no key set, and the client is refused', async (_, badly) => {
  answer = badly
  expect(await asks(await client(), first)).toBe('refused')
})

test('an address that may not be called is not called', async () => {
  answer = serving(first.jwk)
  for (const uri of [
    'http://10.0.0.1/keys',
    'https://169.254.169.254/',
    'https://metadata.internal/',
    'file:///etc/keys',
  ])
    expect(await asks(await client(uri), first)).toBe('refused')
  expect(hits).toBe(0)
})

test('neither another client’s assertion nor a request without one fetches anything', async () => {
  answer = serving(first.jwk)
  const id = await client()
  expect(await asks(id, first, 'robot')).toBe('refused')
  const form = { grant_type: 'client_credentials', client_id: id }
  expect((await postToken(world, form)).status).toBe(401)
  expect((await postToken(world, { ...form, client_assertion: 'x.y.z' })).status).toBeGreaterThanOrEqual(400)
  expect(hits).toBe(0)
})

test.each(['http://example.com/keys', 'https://[fd00::1]/', 'https://localhost/', 'keys'])(
  'a registration with the address %s is refused',
  async (uri) => {
    const metadata = { redirect_uris: [REDIRECT], jwks_uri: uri, token_endpoint_auth_method: 'private_key_jwt' }
    const refused = world.identity.validateClient({
      id: 'h',
      app: null,
      organization: null,
      metadata,
      secretHash: null,
    })
    await expect(refused).rejects.toThrow('/jwks_uri')
  },
)
