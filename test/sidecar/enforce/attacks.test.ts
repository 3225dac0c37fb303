import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readFixture } from '../../attacks/case-format.ts'
import { readCase, readCases } from '../../attacks/case-reader.ts'
import { createKeyring } from '../../attacks/credentials.ts'
import { type Outcome, play } from '../../attacks/play.ts'

const fileOf = (name: string): string => fileURLToPath(new URL(`../../attacks/data/${name}`, import.meta.url))
const fixture = readFixture(fileOf('fixture.json'))
const keyring = createKeyring()
const TIMEOUT_MS = 120_000

describe('our own attacks', () => {
  const cases = readCases(fileOf('own-cases.jsonl')).map((read) => {
    if (read.kind === 'broken') throw new Error(`${read.id} ${read.why}`)
    return [`${read.attack.id}: ${read.attack.setup.note}`, read] as const
  })
  test.concurrent.each(cases)('%s', { timeout: TIMEOUT_MS }, async (_name, read) => {
    expect(await play(read, fixture, keyring)).toEqual({ kind: 'passed' })
  })
})

// A test of the tool that plays them.
describe('the runner', () => {
  const ANN = { Host: 'app.test', Authorization: 'Bearer {{tok:ann}}' }
  const GOOD = { method: 'GET', target: '/docs/1', headers: ANN }
  const playLine = (line: string): Promise<Outcome> => play(readCase(line, 7), fixture, keyring)
  const playCase = (members: object): Promise<Outcome> =>
    playLine(JSON.stringify({ id: 'X-1', class: 'x', ...members }))
  const reached = { status: 200, upstream: 'reached' }
  const refused = { status: 401, upstream: 'not_reached' }
  /** A good request but for a token that is made otherwise. */
  const tokenOf = (delta: object): { request: object; setup: object } => ({
    request: { ...GOOD, headers: { ...GOOD.headers, Authorization: 'Bearer {{tok:t}}' } },
    setup: { tokens: { t: { base: 'ann', ...delta } } },
  })
  const proofOf = (delta: object, config: object = {}): { request: object; setup: object } => ({
    request: { ...GOOD, headers: { Host: 'app.test', Authorization: 'DPoP {{tok:bound}}', DPoP: '{{proof:p}}' } },
    setup: { proofs: { p: { base: 'client1', ...delta } }, config },
  })
  const tokenHeaders = (name: string): object => ({ ...GOOD.headers, Authorization: `Bearer {{tok:${name}}}` })
  const LOW = { ann: { base: 'ann' }, low: { base: 'ann', claims: { acr: 'urn:pwd' } } }

  test.each([
    ['no JSON', '{', 'is not JSON'],
    ['no object', '[]', 'is not an object'],
    ['no request', '{"id":"X"}', 'has no request'],
    ['neither target nor bytes', '{"request":{"method":"GET"}}', 'neither raw bytes nor method and target'],
    [
      'headers that are none',
      '{"request":{"method":"GET","target":"/","headers":[["a"]]}}',
      'are not names and values',
    ],
    ['a setup that is none', '{"request":{"method":"GET","target":"/"},"setup":[]}', 'is not an object'],
  ])('fails a line with %s, and says why', async (_what, line, why) => {
    expect(await playLine(line)).toMatchObject({ kind: 'failed', why: expect.stringContaining(why) })
  })

  test.each<[string, object, string]>([
    ['a member of the expectation', { request: GOOD, expect: { ...reached, phase: 'full' } }, 'expect.phase'],
    ['a word for the upstream', { request: GOOD, expect: { upstream: 'admired' } }, 'expect.upstream admired'],
    ['a member of the request', { request: { ...GOOD, sni: 'x' }, expect: reached }, 'request.sni'],
    ['a setting', { request: GOOD, setup: { config: { weather: 1 } } }, 'the setting weather: 1'],
    ['a fault of the PDP', { request: GOOD, setup: { config: { pdp: 'sings' } } }, 'the PDP fault "sings"'],
    ['a fault of the key set', { request: GOOD, setup: { config: { jwks: 'sings' } } }, 'the key set fault "sings"'],
    ['a step', { request: { ...GOOD, steps: ['dance', 'send'] } }, 'the step "dance"'],
    ['a placeholder', { request: { ...GOOD, target: '/docs/{{moon:1}}' } }, 'the placeholder moon'],
    [
      'a token based on nothing but itself',
      {
        request: { ...GOOD, headers: { Authorization: 'Bearer {{tok:eve}}' } },
        setup: { tokens: { eve: { base: 'eve' } } },
      },
      'by itself',
    ],
    ['a token', { request: { ...GOOD, headers: { Authorization: 'Bearer {{tok:eve}}' } } }, 'the token eve'],
    [
      'a way to make a token',
      { request: GOOD, setup: { tokens: { ann: { base: 'ann', ink: 'red' } } }, expect: { upstream: 'any' } },
      'ann.ink',
    ],
    ['a last step', { request: { ...GOOD, steps: ['send 1000 tokens in Morse code'] } }, 'in Morse code'],
    ['a word in a step', { request: { ...GOOD, steps: ['send with a hat', 'send'] } }, 'with a hat'],
    ['a count', { request: { ...GOOD, target: '/docs/{{repeat:a:lots}}' } }, 'is not known'],
    ['a placeholder that is cut off', { request: { ...GOOD, target: '/docs/{{rand:' } }, '/docs/{{rand:'],
    ['a placeholder in a list', tokenOf({ claims: { groups: ['{{moon}}'] } }), 'the placeholder moon'],
    ['a placeholder in a payload', tokenOf({ rawPayload: '{{moon}}' }), 'the placeholder moon'],
    ['a nonce', proofOf({ claims: { nonce: '{{nonce:borrowed}}' } }), 'the nonce borrowed'],
    ['a time', { request: { ...GOOD, target: '/docs/{{now:soon}}' } }, 'the time soon'],
    ['a key', tokenOf({ key: 'skeleton' }), 'the key skeleton'],
    ['a half of a key', proofOf({ header: { jwk: 'client1.middle' } }), 'the jwk client1.middle'],
    ['a JWE', tokenOf({ jwe: 'dir/ROT13' }), 'dir/ROT13'],
    ['a mutation', tokenOf({ mutate: 'make it blush' }), 'make it blush'],
    ['a fault of the service', { request: GOOD, setup: { config: { upstream: 'sings' } } }, 'the upstream "sings"'],
    ['half a fault', { request: GOOD, setup: { config: { pdp: 'sleep while singing' } } }, 'sleep while singing'],
    ['a wait within the deadline', { request: GOOD, setup: { config: { pdp: 'sleep 10ms' } } }, 'sleep 10ms'],
    ['a clock', { request: GOOD, setup: { config: { clock: 'noon' } } }, 'the clock "noon"'],
    ['a route', { request: GOOD, setup: { config: { route: '/nowhere', acr: 'x' } } }, 'the route "/nowhere"'],
    ['an issuer', { request: GOOD, setup: { config: { issuers: ['https://x.test'] } } }, 'the issuer "https://x.test"'],
    ['a context', { request: GOOD, expect: { decision_ctx: { mood: 'good' } } }, 'the context {"mood":"good"}'],
    ['an environment', { request: GOOD, setup: { config: { env: 'HOT' } } }, 'the environment "HOT"'],
    ['an injection', { class: 'injection-bypass', request: GOOD }, 'no suite plays'],
  ])('fails a case with %s that it does not know, and names it', async (_what, members, why) => {
    expect(await playCase(members)).toMatchObject({ kind: 'failed', why: expect.stringContaining(why) })
  })

  test.each<[string, object]>([
    ['one status, and headers by name', { request: GOOD, expect: reached }],
    ['a boolean for the upstream', { request: GOOD, expect: { upstream: true } }],
    ['a value of a header', { request: GOOD, expect: { upstream_headers_present: { 'x-auth-subject': 'ann' } } }],
    ['nothing expected', { request: GOOD }],
    [
      'a body that is an object',
      { request: { ...GOOD, method: 'POST', target: '/docs', body: { folder: 'a' } }, expect: reached },
    ],
    [
      'a step that is a request',
      { request: { ...GOOD, steps: [{ method: 'GET', target: '/docs/2' }, 'send'] }, expect: reached },
    ],
    [
      'a tuple that is revoked before',
      {
        request: { ...GOOD, steps: ['send', 'revoke ann viewer doc:1', 'send again'] },
        expect: { status: 403, upstream: false },
      },
    ],
    [
      'a PDP that is stopped before',
      { request: { ...GOOD, steps: ['stop PDP', 'send'] }, expect: { status: 503, upstream: false } },
    ],
    [
      'key ids that are made up',
      {
        ...tokenOf({ key: 'evil' }),
        request: {
          ...GOOD,
          headers: tokenHeaders('t'),
          steps: ['send 200 tokens with random kid; JWKS fetched at most 4 times'],
        },
        expect: refused,
      },
    ],
    [
      'a key that is replaced under its kid',
      {
        request: { ...GOOD, steps: ['send', 'replace key under the same kid', 'wait max_age', 'send'] },
        expect: refused,
      },
    ],
    [
      'an issuer that is gone',
      { request: { ...GOOD, steps: ['send -> 200', 'AS down', 'wait 5 min', 'send'] }, expect: reached },
    ],
    ['a proof that shows its private key', { ...proofOf({ header: { jwk: 'client1.private' } }), expect: refused }],
    [
      'a proof by a weak key',
      { ...proofOf({ header: { alg: 'RS256', jwk: 'rsa1024.public' }, key: 'rsa1024' }), expect: refused },
    ],
    [
      'a proof without the nonce that is asked for',
      {
        ...proofOf({}, { nonce: 'required' }),
        expect: {
          ...refused,
          www_authenticate: 'DPoP error="use_dpop_nonce"',
          response_headers_present: ['dpop-nonce'],
        },
      },
    ],
    ['a nonce of a replica', { ...proofOf({ claims: { nonce: '{{nonce:A}}' } }), expect: reached }],
    ['a nonce that is too old', { ...proofOf({ claims: { nonce: '{{nonce:old}}' } }), expect: refused }],
    ['a sidecar whose clock is behind', { request: GOOD, setup: { config: { clock: '-3600' } }, expect: refused }],
    [
      'a sidecar whose clock jumps',
      { request: { ...GOOD, steps: ['send -> 200', 'clock jumps forward by 1h', 'send'] }, expect: refused },
    ],
    [
      'a service with a certificate of nobody',
      {
        request: GOOD,
        setup: { config: { upstream: 'self-signed' } },
        expect: { status: 502, upstream: 'not_reached' },
      },
    ],
    ['a service with a good certificate', { request: GOOD, setup: { config: { upstream: 'tls' } }, expect: reached }],
    [
      'a PDP with a certificate of nobody',
      { request: GOOD, setup: { config: { pdp: 'self-signed' } }, expect: { status: 503, upstream: 'not_reached' } },
    ],
    ['a PDP with a good certificate', { request: GOOD, setup: { config: { pdp: 'tls' } }, expect: reached }],
    [
      'shadow mode',
      { request: { ...GOOD, target: '/docs/2' }, setup: { config: { mode: 'shadow' } }, expect: reached },
    ],
    ['SIGTERM while it is under way', { request: { ...GOOD, steps: ['send', 'SIGTERM'] }, expect: reached }],
    [
      'a PDP that comes back',
      { request: { ...GOOD, steps: ['stop PDP', 'send -> 503', 'start PDP', 'send'] }, expect: { status: [200, 503] } },
    ],
    [
      'a sign-in that is not good enough',
      {
        request: { ...GOOD, headers: tokenHeaders('low'), steps: ['GET /docs/1 as ann -> 200', 'GET /docs/1 as low'] },
        setup: { tokens: LOW },
        expect: refused,
      },
    ],
    ['a token whose payload is text', { ...tokenOf({ rawPayload: '{{repeat:{"a"::50}}' }), expect: refused }],
    [
      'a token that ends',
      {
        ...tokenOf({ claims: { exp: '+4' } }),
        request: { ...GOOD, headers: tokenHeaders('t'), steps: ['send at t0 -> 200', 'send at t0+30s'] },
        expect: refused,
      },
    ],
  ])('plays a case with %s', { timeout: TIMEOUT_MS }, async (_what, members) => {
    expect(await playCase(members)).toEqual({ kind: 'passed' })
  })

  test.each<[string, object, object, string]>([
    ['another status', GOOD, { status: 403 }, 'status 200, not 403'],
    ['an upstream that was reached', GOOD, { upstream: 'not_reached' }, 'the upstream got GET /docs/1'],
    ['an upstream that was not', { ...GOOD, target: '/docs/2' }, { upstream: 'reached' }, 'was not reached'],
    [
      'another value of a header',
      GOOD,
      { upstream_headers_present: { 'x-auth-subject': 'ben' } },
      'x-auth-subject: ann',
    ],
    [
      'a header that came through',
      GOOD,
      { upstream_headers_absent: ['via'], upstream_headers_present: ['nope'] },
      'did not get nope',
    ],
    ['no challenge', GOOD, { www_authenticate: 'Bearer error="invalid_token"' }, 'challenge missing'],
    ['two answers', { ...GOOD, target: '/docs/2' }, { note2: 'connection closed' }, 'the connection stays open'],
    ['a status that a step names', { ...GOOD, steps: ['send -> 403', 'send'] }, {}, 'step 1 got 200, not 403'],
    ['the keys asked for', { ...GOOD, steps: ['send; JWKS fetched at most 0 times'] }, {}, 'fetches: 4, not 0'],
    ['a text in the answer', GOOD, { body_absent: 'GET' }, 'the answer says "GET"'],
    ['a header of the answer', GOOD, { response_headers_present: ['x-nope'] }, 'answered with x-nope: null'],
  ])('fails a case for %s', async (_what, request, expected, why) => {
    expect(await playCase({ request, expect: expected })).toMatchObject({
      kind: 'failed',
      why: expect.stringContaining(why),
    })
  })
})
