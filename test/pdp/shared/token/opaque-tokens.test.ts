import { beforeEach, describe, expect, test } from 'vitest'
import { NO_KEYS } from '../../../../pdp/shared/token/keys.ts'
import { createIntrospect, INTROSPECTED_MS } from '../../../../pdp/shared/token/opaque-tokens.ts'
import type { Fetch } from '../../../../pdp/shared/token/remote-keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'

const ISSUER = 'https://idp.test'
const external = { audience: 'https://api.test', subject_prefix: 'idp:', organizations: ['acme'] }
let now = 0
let asked: { url: string; init: Parameters<Fetch>[1] }[] = []
let failures: unknown[] = []
let answer: () => Promise<Response> | Response
const active = () => ({ active: true, sub: 'ann', client_id: 'spa', aud: 'https://api.test', exp: now / 1_000 + 300 })
beforeEach(() => {
  now = Date.parse('2026-01-01T00:00:00Z')
  asked = []
  failures = []
  answer = () => Response.json(active())
})

function verifier() {
  const introspect = createIntrospect({
    issuer: ISSUER,
    endpoint: `${ISSUER}/introspect`,
    clientId: 'the gateway',
    clientSecret: () => 'a:b%c',
    async fetch(url, init) {
      asked.push({ url, init })
      return answer()
    },
    clock: () => now,
    onError: (err) => failures.push(err),
  })
  return createTokenVerifier({
    issuers: [{ issuer: ISSUER, keys: NO_KEYS, algorithms: [], external, introspect }],
    audience: null,
    clock: () => now,
  })
}
const refused = (promise: unknown, code: string) => expect(Promise.resolve(promise)).rejects.toMatchObject({ code })

test('an opaque token is what its issuer says of it', async () => {
  const claims = await verifier().verify('opaque')
  expect(claims).toMatchObject({ issuer: ISSUER, subject: '~idp:ann', clientId: '~idp:spa', organization: 'acme' })
  const [question] = asked
  expect(question).toMatchObject({ url: `${ISSUER}/introspect`, init: { method: 'POST', redirect: 'manual' } })
  expect(new URLSearchParams(question?.init.body).get('token')).toBe('opaque')
  const basic = Buffer.from((question?.init.headers.authorization ?? '').slice('Basic '.length), 'base64').toString()
  expect(basic).toBe('the+gateway:a%3Ab%25c')
})

test('an answer counts for ten seconds, and a token that was revoked is refused from then on', async () => {
  const { verify } = verifier()
  await verify('opaque')
  answer = () => Response.json({ active: false })
  now += INTROSPECTED_MS - 1
  expect(await verify('opaque')).toMatchObject({ subject: '~idp:ann' })
  now += 1
  await refused(verify('opaque'), 'token_invalid')
  answer = () => Response.json(active())
  now += INTROSPECTED_MS - 1
  await refused(verify('opaque'), 'token_invalid')
  expect(asked).toHaveLength(2)
  now += 1
  expect(await verify('opaque')).toMatchObject({ subject: '~idp:ann' })
})

test('an answer does not outlive its token', async () => {
  const { verify } = verifier()
  const exp = now / 1_000 + 2
  answer = () => Response.json({ ...active(), exp })
  await verify('opaque')
  now += 8_000
  await refused(verify('opaque'), 'token_expired')
})

test('those who show one token at the same time ask once', async () => {
  const { verify } = verifier()
  await Promise.all(Array.from({ length: 20 }, () => verify('opaque')))
  expect(asked).toHaveLength(1)
})

test('made-up tokens cannot keep more than 64 questions open', async () => {
  const { verify } = verifier()
  const { promise, resolve } = Promise.withResolvers<Response>()
  answer = () => promise.then((response) => response.clone())
  const outcomes = Array.from({ length: 70 }, (_, i) =>
    Promise.resolve(verify(`made-up-${i}`)).then(
      () => 'good',
      (err: { code: string }) => err.code,
    ),
  )
  expect(await Promise.all(outcomes.slice(64))).toEqual(Array.from({ length: 6 }, () => 'issuer_unavailable'))
  resolve(Response.json({ active: false }))
  expect(new Set(await Promise.all(outcomes.slice(0, 64)))).toEqual(new Set(['token_invalid']))
})

describe('a token is refused', () => {
  test.each<[string, object]>([
    ['that is not active', { active: false }],
    ['without an expiry', { ...active(), exp: undefined }],
    ['without an audience', { ...active(), aud: undefined }],
    ['for another audience', { ...active(), aud: 'https://other.test' }],
    ['without a subject', { ...active(), sub: undefined }],
    ['without a client', { ...active(), client_id: undefined }],
    ['of another issuer', { ...active(), iss: 'https://other.test' }],
    ['that is a refresh token', { ...active(), token_type: 'refresh_token' }],
    ['that Hydra calls a refresh token', { ...active(), token_use: 'refresh_token' }],
    ['that Keycloak calls an ID token', { ...active(), typ: 'ID' }],
  ])('%s', async (_, body) => {
    answer = () => Response.json({ exp: now / 1_000 + 300, ...body })
    await refused(verifier().verify('opaque'), 'token_invalid')
  })

  test.each<[string, () => Promise<Response> | Response]>([
    ['the credentials are refused', () => new Response('', { status: 401 })],
    ['the endpoint redirects', () => new Response('', { status: 302, headers: { location: 'https://evil.test' } })],
    ['the endpoint fails', () => new Response('', { status: 500 })],
    ['the answer is not JSON', () => new Response('<html>')],
    ['the answer is a list', () => Response.json([true])],
    ['active is a text', () => Response.json({ ...active(), active: 'true' })],
    ['active is missing', () => Response.json({ sub: 'ann' })],
    ['the answer is too long', () => Response.json({ ...active(), padding: 'x'.repeat(300_000) })],
    ['nobody answers', () => Promise.reject(new Error('ECONNREFUSED'))],
  ])('as issuer_unavailable when %s', async (_, respond) => {
    answer = respond
    const { verify } = verifier()
    await refused(verify('opaque'), 'issuer_unavailable')
    expect(failures).toHaveLength(1)
    answer = () => Response.json(active())
    expect(await verify('opaque')).toMatchObject({ subject: '~idp:ann' })
  })

  test('that is longer than any token, without a question', async () => {
    const tooLong = verifier().verify('x'.repeat(16_385))
    await expect(tooLong).rejects.toThrow('the token has more than 16384 characters')
    await refused(tooLong, 'token_invalid')
    expect(asked).toEqual([])
  })
})

test('two issuers with introspection are refused, because an opaque token names neither', () => {
  const introspect = async () => Object.create(null)
  const issuers = ['https://a.test', 'https://b.test'].map((issuer) => ({
    issuer,
    keys: NO_KEYS,
    algorithms: [],
    external,
    introspect,
  }))
  expect(() => createTokenVerifier({ issuers, audience: null, clock: () => now })).toThrow(TypeError)
})
