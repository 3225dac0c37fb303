/** Key sets over the network: found through the issuer's metadata, bounded, and kept while the issuer is away. */
import { beforeAll, describe, expect, test } from 'vitest'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { remoteKeys } from '../../../../pdp/shared/token/remote-keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { createIssuer, type Issuer, issuerFetch } from '../../../support/peers/issuer.ts'

const ISSUER = 'https://as.test'
const AUDIENCE = 'https://app.test'
let now = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => now

let issuer: Issuer
beforeAll(async () => {
  issuer = await createIssuer({ issuer: ISSUER, audience: AUDIENCE, clock })
})
const verifier = () =>
  createTokenVerifier({
    issuers: [{ issuer: ISSUER, keys: localKeys(() => issuer.jwks.keys, clock), algorithms: ['RS256'] }],
    audience: AUDIENCE,
    clock,
  })

describe('keys over the network', () => {
  function source(
    options: { fetch?: Parameters<typeof remoteKeys>[0]['fetch']; asked?: string[]; timeoutMs?: number } = {},
  ) {
    const fetch = options.fetch ?? issuerFetch([issuer], options.asked)
    return remoteKeys({
      issuer: ISSUER,
      fetch,
      clock,
      cooldownMs: 10_000,
      ageMaxMs: 600_000,
      refreshAfterMs: 300_000,
      timeoutMs: options.timeoutMs ?? 5_000,
    })
  }
  const wanted = { kid: 'k1', algorithm: 'RS256' as const }

  test('are found through the issuer’s metadata, once for many questions', async () => {
    const asked: string[] = []
    const keys = source({ asked })
    await Promise.all([keys.find(wanted), keys.find(wanted)])
    await keys.find(wanted)
    expect(asked).toEqual([`${ISSUER}/.well-known/openid-configuration`, `${ISSUER}/jwks`])
  })

  test('are asked for again for an unknown kid, but not more often than the cooldown allows', async () => {
    const asked: string[] = []
    const keys = source({ asked })
    await keys.find(wanted)
    expect(await keys.find({ ...wanted, kid: 'unknown' })).toEqual([])
    expect(asked.length).toBe(2)
    now += 10_000
    await keys.find({ ...wanted, kid: 'unknown' })
    await keys.find({ ...wanted, kid: 'unknown2' })
    expect(asked.length).toBe(4)
  })

  test('stay good while the issuer is down, until their maximum age', async () => {
    let up = true
    const answer = issuerFetch([issuer])
    const keys = source({ fetch: async (url, init) => (up ? answer(url, init) : Promise.reject(new Error('down'))) })
    const [key] = await keys.find(wanted)
    if (key === undefined) throw new Error('no key')
    up = false
    now += 599_999
    expect(keys.holds(key)).toBe(true)
    expect(await keys.find(wanted)).toEqual([key])
    now += 1
    expect(keys.holds(key)).toBe(false)
    await expect(keys.find(wanted)).rejects.toMatchObject({ code: 'keys_unavailable' })
    up = true
    now += 1_000
    expect(await keys.find(wanted)).toEqual([key])
  })

  const METADATA = `${ISSUER}/.well-known/openid-configuration`
  test.each<[string, (url: string) => Response | Promise<Response>, string]>([
    [
      'a redirect',
      () => new Response(null, { status: 302, headers: { location: 'http://evil.test' } }),
      `${METADATA} answered 302, and redirects are not followed`,
    ],
    ['an error', () => new Response('no', { status: 500 }), `${METADATA} answered 500`],
    ['what is not JSON', () => new Response('<html>'), `${METADATA} is not JSON`],
    ['a list', () => Response.json([]), `${METADATA} is not a JSON object`],
    [
      'metadata of another issuer',
      () => Response.json({ issuer: 'https://evil.test', jwks_uri: `${ISSUER}/jwks` }),
      'is the metadata of another issuer',
    ],
    [
      'a key URL without TLS',
      () => Response.json({ issuer: ISSUER, jwks_uri: 'http://as.test/jwks' }),
      'a jwks_uri without TLS (http://as.test/jwks): set jwks_uri to its https address',
    ],
    [
      'a key URL of another kind',
      () => Response.json({ issuer: ISSUER, jwks_uri: 'file:///etc/passwd' }),
      'a jwks_uri without TLS',
    ],
    ['too many bytes', () => new Response('x'.repeat(256 * 1024 + 1)), 'is larger than 262144 bytes'],
    [
      'too many keys',
      (url) =>
        url.endsWith('/jwks')
          ? Response.json({ keys: Array.from({ length: 65 }, () => ({})) })
          : Response.json({ issuer: ISSUER, jwks_uri: `${ISSUER}/jwks` }),
      'more than the limit of 64',
    ],
  ])('are not taken from %s, and the error says what came from where', async (_why, answer, message) => {
    const errors: unknown[] = []
    const keys = remoteKeys({
      ...{ issuer: ISSUER, clock, fetch: async (url) => answer(url) },
      onError: (err) => void errors.push(err),
    })
    await expect(keys.find(wanted)).rejects.toMatchObject({ code: 'keys_unavailable' })
    expect(String(errors)).toContain(message)
  })

  test('of an issuer that differs by a slash alone: the refusal says so', async () => {
    const token = await issuer.token({ iss: `${ISSUER}/` })
    await expect(verifier().verify(token)).rejects.toThrow(`it ends with a slash, but ${ISSUER} does not`)
  })

  test.each([
    [`${ISSUER}/`, `it ends with a slash, but ${ISSUER} does not`],
    ['https://evil.test', 'is the metadata of another issuer'],
  ])('of issuer %s: the error says what differs', async (said, message) => {
    const errors: string[] = []
    const fetch = async (): Promise<Response> => Response.json({ issuer: said, jwks_uri: `${ISSUER}/jwks` })
    const onError = (err: unknown): void => void errors.push(err instanceof Error ? err.message : '')
    await expect(remoteKeys({ issuer: ISSUER, fetch, clock, onError }).find(wanted)).rejects.toMatchObject({
      code: 'keys_unavailable',
    })
    expect(errors.at(0)).toContain(message)
  })

  test('are not waited for longer than the time limit', async () => {
    const fetch = (_url: string, { signal }: { signal: AbortSignal }): Promise<Response> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await expect(source({ fetch, timeoutMs: 20 }).find(wanted)).rejects.toMatchObject({ code: 'keys_unavailable' })
  })

  test('that cannot verify for us are passed over', async () => {
    const [good] = issuer.jwks.keys
    const useless = [
      { kty: 'oct', k: 'AAAA', kid: 'k1' },
      { ...Object(good), use: 'enc' },
      { ...Object(good), key_ops: ['sign'] },
      { ...Object(good), alg: 'HS256' },
      null,
      7,
    ]
    expect(await localKeys(() => useless, clock).find(wanted)).toEqual([])
    expect((await localKeys(() => [...useless, good], clock).find(wanted)).length).toBe(1)
  })
})
