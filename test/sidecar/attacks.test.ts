import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readFixture } from '../attacks/cases.ts'
import { createKeyring } from '../attacks/credentials.ts'
import { type Outcome, play } from '../attacks/play.ts'
import { readCase, readCases } from '../attacks/shape.ts'

const fileOf = (name: string): string => fileURLToPath(new URL(`../attacks/${name}`, import.meta.url))
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

describe('the runner', () => {
  const ANN = { Host: 'app.test', Authorization: 'Bearer {{tok:ann}}' }
  const GOOD = { method: 'GET', target: '/docs/1', headers: ANN }
  const playLine = (line: string): Promise<Outcome> => play(readCase(line, 7), fixture, keyring)
  const playCase = (members: object): Promise<Outcome> =>
    playLine(JSON.stringify({ id: 'X-1', class: 'x', ...members }))
  const reached = { status: 200, upstream: 'reached' }

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
    ['a step', { request: { ...GOOD, steps: ['dance', 'send'] } }, 'a step is prose'],
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
  ])('skips a case with %s that it does not know, and names it', async (_what, members, why) => {
    expect(await playCase(members)).toMatchObject({ kind: 'skipped', why: expect.stringContaining(why) })
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
  ])('plays a case with %s', async (_what, members) => {
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
  ])('fails a case for %s', async (_what, request, expected, why) => {
    expect(await playCase({ request, expect: expected })).toMatchObject({
      kind: 'failed',
      why: expect.stringContaining(why),
    })
  })
})
