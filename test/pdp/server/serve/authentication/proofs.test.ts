/** Tokens that are bound to a DPoP key, at the management API and where a token asks about others. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Claims, ecKeys, type KeyPair, proof, thumbprint } from '../../../../support/peers/issuer.ts'
import { type Answer, ISSUER, type Served, seedAcme, serve } from '../harness.ts'

const MANAGED = '/v1/organizations/acme/relationships'
const DECISIONS = '/oauth/decisions'
const QUESTION = { subject: { type: 'user', id: 'bob' }, permissions: [{ relation: 'viewer', resource: 'invoice:2' }] }

let served: Served
let keys: KeyPair
let jkt: string
let manager: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  keys = ecKeys()
  jkt = await thumbprint(keys.publicKey)
  await served.manager({ client: 'keyed' })
  manager = serviceToken()
})
afterAll(() => served.close())

const serviceToken = (state: Parameters<Served['token']>[0] = {}) =>
  served.token({
    subject: { type: 'service', id: 'keyed' },
    clientId: 'keyed',
    scopes: new Set(['decisions:read', 'relationships:read', 'relationships:write']),
    audiences: [ISSUER],
    jkt,
    ...state,
  })
type Proof = { method?: string; url?: string; token?: string; keys?: KeyPair; claims?: Claims; header?: Claims }
const prove = (over: Proof = {}) =>
  proof({ keys, method: 'GET', url: `${ISSUER}${MANAGED}`, token: manager, clock: Date.now, ...over })
type Call = { method?: string; path?: string; token?: string; scheme?: string; body?: unknown; headers?: Claims }
async function send(dpop: string | null, call: Call = {}): Promise<Answer> {
  const { method = 'GET', path = MANAGED, token = manager, scheme = 'DPoP', body, headers } = call
  return served.send(method, path, {
    headers: { authorization: `${scheme} ${token}`, ...(dpop === null ? {} : { dpop }), ...headers },
    ...(body === undefined ? {} : { body }),
  })
}
const challengeOf = ({ headers }: Answer) => headers.get('www-authenticate') ?? ''

describe('a bound token with a proof', () => {
  test('manages', async () => {
    expect((await send(await prove())).status).toBe(200)
    expect((await send(await prove(), { path: `${MANAGED}?page_size=1` })).status).toBe(200)
    const write = { write: ['invoice:9#viewer@user:bob'] }
    expect((await send(await prove({ method: 'POST' }), { method: 'POST', body: write })).status).toBe(200)
    expect((await send(await prove({ method: 'HEAD' }), { method: 'HEAD' })).status).toBe(200)
  })

  test('asks about other subjects, and for reasons', async () => {
    for (const body of [QUESTION, { ...QUESTION, explain: true }]) {
      const dpop = await prove({ method: 'POST', url: ISSUER + DECISIONS })
      const answer = await send(dpop, { method: 'POST', path: DECISIONS, body })
      expect(answer).toMatchObject({ status: 200, body: { permissions: [{ allowed: true }] } })
    }
  })

  test('may name the address as equivalent text, and may write the path with escapes', async () => {
    const path = '/v1/users/a%2Fb~c'
    const token = serviceToken({ scopes: new Set(['directory:write']), organization: null })
    const urls = [
      `${ISSUER}${path}`,
      `HTTPS://ID.example.test:443${path}?x=1#y`,
      `${ISSUER}${path.replace('%2F', '%2f').replace('~', '%7e')}`,
    ]
    for (const url of urls) {
      const answer = await send(await prove({ token, url }), { path, token })
      expect([answer.body.code, url]).toEqual(['not_found', url])
    }
  })

  test('is looked at again when its body has arrived, without a second proof', async () => {
    const token = serviceToken()
    const begun = served.asked.length
    const text = JSON.stringify({ write: ['invoice:late#viewer@user:bob'] })
    const body = new ReadableStream<Uint8Array>({
      async start(pieces) {
        pieces.enqueue(Buffer.from(text.slice(0, 5)))
        while (!served.asked.slice(begun).includes(token)) await new Promise((done) => setTimeout(done, 5))
        served.setState(token, { active: false })
        pieces.enqueue(Buffer.from(text.slice(5)))
        pieces.close()
      },
    })
    const dpop = await prove({ token, method: 'POST' })
    const headers = { authorization: `DPoP ${token}`, dpop, 'content-type': 'application/json' }
    const answer = await fetch(served.url + MANAGED, { method: 'POST', headers, body, duplex: 'half' })
    expect(answer.status).toBe(401)
  })
})

const seconds = () => Math.floor(Date.now() / 1_000)
const BAD: { readonly [why: string]: () => Proof } = {
  'for another method': () => ({ method: 'PUT' }),
  'with the method in lower case': () => ({ method: 'get' }),
  'for another path': () => ({ url: `${ISSUER}${MANAGED}/x` }),
  'for the path with a slash more': () => ({ url: `${ISSUER}${MANAGED}/` }),
  'for the address that the server listens at': () => ({ url: served.url + MANAGED }),
  'for another host': () => ({ url: `https://evil.test${MANAGED}` }),
  'for another scheme': () => ({ url: `${ISSUER.replace('https', 'http')}${MANAGED}` }),
  'for the path alone': () => ({ url: MANAGED }),
  'for another token': () => ({ token: 'another' }),
  'without ath': () => ({ claims: { ath: undefined } }),
  'without htu': () => ({ claims: { htu: undefined } }),
  'without htm': () => ({ claims: { htm: undefined } }),
  'without jti': () => ({ claims: { jti: undefined } }),
  'with an empty jti': () => ({ claims: { jti: '' } }),
  'with a list as jti': () => ({ claims: { jti: ['a'] } }),
  'with a huge jti': () => ({ claims: { jti: 'x'.repeat(1_025) } }),
  'without iat': () => ({ claims: { iat: undefined } }),
  'with iat as text': () => ({ claims: { iat: String(seconds()) } }),
  'that is older than a minute': () => ({ claims: { iat: seconds() - 61 } }),
  'from the future': () => ({ claims: { iat: seconds() + 30 } }),
  'of another type': () => ({ header: { typ: 'JWT' } }),
  'of the type of access tokens': () => ({ header: { typ: 'at+jwt' } }),
  'without a key': () => ({ header: { jwk: undefined } }),
  'with a symmetric key': () => ({ header: { jwk: { kty: 'oct', k: 'AAAA' } } }),
  'without an algorithm': () => ({ header: { alg: 'none' } }),
  'with an algorithm that is not its key’s': () => ({ header: { alg: 'ES384' } }),
  'with an unknown critical member': () => ({ header: { crit: ['x'], x: 1 } }),
  'that another key signed': () => ({ keys: ecKeys(), header: { jwk: keys.publicKey.export({ format: 'jwk' }) } }),
  'that shows its private key': () => ({ header: { jwk: keys.privateKey.export({ format: 'jwk' }) } }),
}

describe.each([
  ['management', 'GET', MANAGED, undefined],
  ['naming a subject', 'POST', DECISIONS, QUESTION],
  ['asking for reasons', 'POST', DECISIONS, { explain: true }],
])('%s refuses', (_name, method, path, body) => {
  const call = { method, path, body }
  const own = (over: Proof) => prove({ method, url: ISSUER + path, ...over })

  test.each(Object.entries(BAD))('a proof %s', async (why, over) => {
    // Those about the address are written for the first route.
    const moved = Object.fromEntries(
      Object.entries(over()).map(([k, v]) => [k, typeof v === 'string' ? v.replace(MANAGED, path) : v]),
    )
    const answer = await send(await own(why.includes('lower case') ? { method: method.toLowerCase() } : moved), call)
    expect([answer.status, answer.body.code]).toEqual([401, 'proof_invalid'])
    expect(challengeOf(answer)).toMatch(/^DPoP error="invalid_dpop_proof", resource_metadata="[^"]+", algs="ES256 /)
  })

  test('no proof, two of them, and something else', async () => {
    const missing = await send(null, call)
    expect([missing.status, missing.body.code]).toEqual([401, 'proof_missing'])
    expect(challengeOf(missing)).toContain('error="invalid_dpop_proof"')
    for (const dpop of ['x', 'a.b.c', `${await own({})}, ${await own({})}`, 'x'.repeat(9_000)]) {
      expect((await send(dpop, call)).body.code).toBe('proof_invalid')
    }
  })

  test('a proof by another key than the token names', async () => {
    const answer = await send(await own({ keys: ecKeys() }), call)
    expect([answer.status, answer.body.code]).toEqual([401, 'token_invalid'])
    expect(challengeOf(answer)).toMatch(/^DPoP error="invalid_token"/)
  })

  test('a bound token as a bearer token, with and without a good proof', async () => {
    for (const dpop of [null, await own({})]) {
      const answer = await send(dpop, { ...call, scheme: 'Bearer' })
      expect([answer.status, answer.body.code]).toEqual([401, 'proof_missing'])
      expect(challengeOf(answer)).toMatch(/^DPoP error="invalid_token"/)
    }
  })

  test('an unbound token as a bound one', async () => {
    const token = serviceToken({ jkt: null })
    const answer = await send(await own({ token }), { ...call, token })
    expect([answer.status, answer.body.code]).toEqual([401, 'token_invalid'])
    expect(challengeOf(answer)).toMatch(/^Bearer error="invalid_token"/)
  })

  test('a proof that was used before, of 20 at the same time all but one', async () => {
    const once = await own({})
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(once, call)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body: { code } }) => code === 'proof_replayed')).toHaveLength(19)
  })

  test('a proof that was used before it was refused for something else', async () => {
    const once = await own({})
    const weak = serviceToken({ scopes: new Set() })
    const dpop = await own({ token: weak })
    expect((await send(dpop, { ...call, token: weak })).body.code).toMatch(/scope_insufficient|proof_replayed/)
    expect((await send(once, call)).status).toBe(200)
    expect((await send(once, call)).body.code).toBe('proof_replayed')
  })
})

describe('without a proof', () => {
  test('a bound token still asks about its own bearer, as whoever it was forwarded to does', async () => {
    const token = served.token({ jkt })
    const body = { permissions: [{ relation: 'viewer', resource: 'invoice:1' }] }
    const answer = await send(null, { method: 'POST', path: DECISIONS, token, scheme: 'Bearer', body })
    expect(answer).toMatchObject({ status: 200, body: { permissions: [{ allowed: true }] } })
  })

  test('an inactive token is denied everything, whatever its scheme', async () => {
    const body = { permissions: [{ relation: 'viewer', resource: 'invoice:1' }] }
    const answer = await send(null, { method: 'POST', path: DECISIONS, token: 'unknown', body })
    expect(answer).toMatchObject({ status: 200, body: { subject: null, permissions: [{ allowed: false }] } })
  })

  test('nobody learns whether an organization or a scope would have been there', async () => {
    for (const path of ['/v1/organizations/nowhere/relationships', '/v1/users', '/v1/clients/nobody']) {
      expect((await send(null, { path })).body.code).toBe('proof_missing')
      expect((await send(null, { path, scheme: 'Bearer' })).body.code).toBe('proof_missing')
    }
  })
})

test('neither Host nor a forwarded address has a say in what a proof names', async () => {
  const headers = { 'x-forwarded-host': 'evil.test', 'x-forwarded-proto': 'http', forwarded: 'host=evil.test' }
  expect((await send(await prove(), { headers })).status).toBe(200)
  for (const url of [`https://evil.test${MANAGED}`, `http://evil.test${MANAGED}`]) {
    expect((await send(await prove({ url }), { headers })).body.code).toBe('proof_invalid')
  }
})

test('a proof that was dated ahead is remembered until it is too old', async () => {
  const ahead = await prove({ claims: { iat: seconds() + 9 } })
  expect((await send(ahead)).status).toBe(200)
  const { now } = Date
  const later = vi.spyOn(Date, 'now').mockImplementation(() => now() + 65_000)
  const answer = await send(ahead)
  later.mockRestore()
  expect(answer.body.code).toBe('proof_replayed')
})
