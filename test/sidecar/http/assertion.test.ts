/** The signed assertion: that a service can verify it by the key set alone, also across replicas and restarts, and what is refused. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { createAssertion } from '../../../sidecar/http/assertion.ts'
import { DOOR_PROFILES } from '../../../sidecar/http/door-fields.ts'
import type { Identity } from '../../../sidecar/http/fields.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { startDoors, valuesOf } from '../doors/door-harness.ts'
import { printed } from '../gateways/printed.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const NOW_MS = Date.parse('2026-01-01T00:00:00Z')
const EXTRA = 'assertion: {header: X-Assertion, audience: billing, keys_file: a.keys, claims: [email, groups, u.level]}'
const KEYS = [Buffer.from('k'.repeat(32)), Buffer.from('old'.repeat(12))] as const
const certificates = { ...NO_CERTIFICATES, assertion: KEYS }
const CLAIMS = { email: 'ann@example.com', email_verified: true, groups: ['dev', 'a,b'], u: { level: 3 } }
const IDENTITY: Identity = {
  subject: 'alice',
  subjectType: 'user',
  organization: null,
  client: 'c',
  actor: null,
  issuer: 'https://as.test',
  scopes: new Set(),
  claims: {},
}
const made = (keys: readonly [Buffer, ...Buffer[]], claims: readonly string[] = [], clock = () => NOW_MS) =>
  createAssertion(
    { header: 'x-assertion', audience: 'billing', claims, keysFile: '' },
    { keys, issuer: 'https://app.test', clock },
  )

let h: Harness
let nowMs = NOW_MS
beforeAll(async () => {
  const clock = (): number => nowMs
  h = await startHarness({
    ...{ routes: 'GET /me: signed_in\nGET /open: public\nGET /**: public', extra: EXTRA },
    ...{ script: tuples([]), certificates, clock },
  })
})
afterAll(() => h.close())
beforeEach(() => {
  nowMs = NOW_MS
  h.upstream.reached.length = 0
})

const reach = async (claims: object, fields: readonly string[] = [], line = 'GET /me') => {
  h.upstream.reached.length = 0
  await h.send(line, { token: await h.issuer.token({ ...claims }), fields })
  return fieldOf(h.upstream.reached[0], 'x-assertion')
}
const keySet = (text: string): JSONWebKeySet => JSON.parse(text)
const verified = (token: string | null, keys: string, at = nowMs) =>
  jwtVerify(token ?? '', createLocalJWKSet(keySet(keys)), {
    ...{ issuer: 'https://app.test', audience: 'billing', algorithms: ['ES256'], typ: 'JWT' },
    currentDate: new Date(at),
  })

describe('the service', () => {
  test('verifies who calls by the key set of the data port, which any Host gets', async () => {
    const answer = await h.send('GET /.portcullis/assertion-keys', { token: null, host: '127.0.0.1:15080' })
    expect(answer.status).toBe(200)
    expect(answer.body).toBe(h.sidecar.assertionKeys())
    const { payload } = await verified(await reach(CLAIMS), answer.body)
    expect(payload).toEqual({
      ...{ iss: 'https://app.test', sub: 'alice', aud: 'billing', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 60 },
      ...{ client_id: expect.any(String), org: expect.any(String), scope: expect.any(String) },
      ...{ email: 'ann@example.com', groups: ['dev', 'a,b'], 'u.level': 3 },
    })
  })

  test('learns no address that is not verified', async () => {
    const token = await reach({ ...CLAIMS, email_verified: false })
    expect((await verified(token, h.sidecar.assertionKeys() ?? '')).payload.email).toBeUndefined()
  })

  test.each(['X-Assertion', 'x-assertion', 'X_Assertion', 'X.ASSERTION'])('never gets %s of a client', async (name) => {
    expect(await reach({}, [`${name}: forged`], 'GET /open')).toBeNull()
    expect(await reach({}, [`${name}: forged`])).not.toContain('forged')
    expect(h.upstream.reached[0]?.rawHeaders.join()).not.toContain('forged')
  })

  test('gets an assertion that is good for half a minute at least, and another token another one', async () => {
    const token = await h.issuer.token({ ...CLAIMS })
    const next = async (bearer = token) => {
      h.upstream.reached.length = 0
      await h.send('GET /me', { token: bearer })
      return fieldOf(h.upstream.reached[0], 'x-assertion')
    }
    const first = await next()
    nowMs += 29_000
    expect(await next()).toBe(first)
    expect(await next(await h.issuer.token({ ...CLAIMS, sub: 'bob' }))).not.toBe(first)
    nowMs += 1_000
    expect(await next()).not.toBe(first)
    await expect(verified(first, h.sidecar.assertionKeys() ?? '', NOW_MS + 61_000)).rejects.toThrow(/exp/)
  })

  test.each(['POST', 'PUT', 'DELETE'])('gets %s of that path itself', async (method) => {
    expect((await h.send(`${method} /.portcullis/assertion-keys`, { token: null })).status).toBe(405)
  })
})

describe('the key set', () => {
  test('is the same of the same file, at each replica and after a restart', () => {
    expect(made(KEYS).keySet).toBe(made([...KEYS]).keySet)
  })

  test('still verifies what was signed before the keys were rotated', async () => {
    const [next, former] = [Buffer.from('n'.repeat(40)), KEYS[0]]
    const before = made([former]).sign(IDENTITY)
    await verified(before, made([next, former]).keySet)
    await verified(made([next, former]).sign(IDENTITY), made([former, next]).keySet)
    await expect(verified(before, made([next]).keySet)).rejects.toThrow(/no applicable key/)
  })

  test('has public keys only', () => {
    for (const key of keySet(made(KEYS).keySet).keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    }
    expect(decodeProtectedHeader(made(KEYS).sign(IDENTITY) ?? '').kid).toBe(keySet(made(KEYS).keySet).keys[0]?.kid)
  })

  test('is nothing without assertion', async () => {
    h.apply('GET /open: public', '')
    expect(h.sidecar.assertionKeys()).toBeNull()
    expect((await h.send('GET /.portcullis/assertion-keys', { token: null })).status).toBe(404)
    h.apply('GET /me: signed_in\nGET /open: public', EXTRA)
  })
})

describe('in Authorization', () => {
  const bearer = EXTRA.replace('X-Assertion', 'authorization')

  test('the assertion is a bearer token in place of the client’s, which never arrives', async () => {
    h.apply('GET /me: signed_in\nGET /open: public', bearer)
    const token = await h.issuer.token({ ...CLAIMS })
    h.upstream.reached.length = 0
    for (const path of ['/me', '/open']) await h.send(`GET ${path}`, { token })
    const [field, none] = h.upstream.reached.map((reached) => fieldOf(reached, 'authorization'))
    await verified(field?.replace(/^Bearer /, '') ?? '', h.sidecar.assertionKeys() ?? '')
    expect([field?.includes(token), none]).toEqual([false, null])
    h.apply('GET /me: signed_in\nGET /open: public', EXTRA)
  })

  test('a door of Envoy gives it, too', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-assertion-'))
    writeFileSync(join(folder, 'a.keys'), KEYS.join('\n'))
    const extra = `hosts: [app.test]\n${bearer.replace('a.keys', join(folder, 'a.keys'))}`
    const doors = await startDoors({ routes: 'GET /me: signed_in', extra, script: tuples([]), profiles: ['envoy'] })
    try {
      const sent = `Bearer ${await doors.inner.issuer.token(CLAIMS)}`
      const [value] = valuesOf(
        await doors.ask('envoy', { target: '/me', fields: [['authorization', sent]] }),
        'authorization',
      )
      expect(value).toMatch(/^Bearer ey/)
      expect(value).not.toBe(sent)
    } finally {
      await doors.close()
      rmSync(folder, { recursive: true })
    }
  })

  test.each([
    ['GET /x: signed_in', 'forward_token: true', /GET \/x has forward_token/],
    ['GET /x: {check: signed_in, forward_token: true}', '', /GET \/x has forward_token/],
    ['GET /x: signed_in', 'doors: [{profile: caddy, listen: "unix:/run/door"}]', /behind caddy/],
  ])('it cannot be with %s, %s', (routes, more, says) => {
    const source = routeFile(routes, { extra: `${bearer}\n${more}` })
    const load = () => loadFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
    expect(load).toThrow(says)
  })
})

test('an assertion that servers would not take is left out', () => {
  const long = { ...IDENTITY, claims: { name: 'a'.repeat(8_192) } }
  expect(made(KEYS, ['name']).sign(long)).toBeNull()
  expect(made(KEYS).sign(long)).not.toBeNull()
})

test('every door gives the assertion too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-assertion-'))
  const keysFile = join(folder, 'a.keys')
  writeFileSync(keysFile, `${KEYS.join('\n')}\n`)
  const extra = `hosts: [app.test]\n${EXTRA.replace('a.keys', keysFile)}`
  const doors = await startDoors({ routes: 'GET /me: signed_in', extra, script: tuples([]) })
  try {
    for (const profile of DOOR_PROFILES) {
      const bearer = ['authorization', `Bearer ${await doors.inner.issuer.token(CLAIMS)}`] as const
      const [token] = valuesOf(await doors.ask(profile, { target: '/me', fields: [bearer] }), 'x-assertion')
      const { payload } = await jwtVerify(token ?? '', createLocalJWKSet(keySet(made(KEYS).keySet)))
      expect(payload).toMatchObject({ sub: 'alice', aud: 'billing' })
    }
  } finally {
    await doors.close()
    rmSync(folder, { recursive: true })
  }
})

test.each(['nginx', 'traefik', 'caddy'] as const)('the configuration of %s names the field', (profile) => {
  const text = printed(profile, { top: `${EXTRA}\n` }).map((file) => file.text)
  expect(text.join('\n').toLowerCase()).toContain('x-assertion')
})

describe('a route file', () => {
  test.each<[assertion: string, says: RegExp]>([
    ['{audience: a, keys_file: k}', /assertion needs header/],
    ['{header: X-A, keys_file: k}', /assertion needs audience/],
    ['{header: X-A, audience: a}', /assertion needs keys_file/],
    ['{header: X-A, audience: "", keys_file: k}', /audience must not be empty/],
    ['{header: X-A, audience: a, keys_file: ""}', /keys_file must not be empty/],
    ['{header: X_A, audience: a, keys_file: k}', /letters, digits and dashes/],
    ['{header: DPoP, audience: a, keys_file: k}', /set by the sidecar/],
    ['{header: Proxy-Authorization, audience: a, keys_file: k}', /set by the sidecar/],
    ['{header: Cookie, audience: a, keys_file: k}', /meaning in HTTP/],
    ['{header: X-Auth-Subject, audience: a, keys_file: k}', /set by the sidecar/],
    ['{header: X-A, audience: a, keys_file: k, claims: []}', /at least one/],
    ['{header: X-A, audience: a, keys_file: k, claims: [sub]}', /sub says what the sidecar knows/],
    ['{header: X-A, audience: a, keys_file: k, claims: [exp]}', /exp says what the sidecar knows/],
    ['{header: X-A, audience: a, keys_file: k, claims: ["a b"]}', /not the name of a claim/],
    ['{header: X-A, audience: a, keys_file: k}\nidentity_headers: {x-a: {claims.a}}', /also in identity_headers/],
    ['{header: X-A, audience: a, keys_file: k}\npass_headers: [X_A]', /also in pass_headers|cannot be passed/],
    ['X-A', /must be a map/],
  ])('with assertion: %s is refused', (assertion, says) => {
    expect(() => loadFile(routeFile('GET /x: public', { extra: `assertion: ${assertion}` }))).toThrow(says)
  })

  test('cannot have a check on the field', () => {
    const routes = 'GET /x: {equals: {header.x-assertion: a}}'
    expect(() => loadFile(routeFile(routes, { extra: EXTRA }))).toThrow(/header.x-assertion is removed/)
  })
})
