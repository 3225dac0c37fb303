/** Fields in which a service learns the bearer by names of its own choice: what they hold, who can set them, and what is refused. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DOOR_PROFILES, isHttpProfile } from '../../../sidecar/http/door-fields.ts'
import { identityFields } from '../../../sidecar/http/identity-fields.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { startDoors, valuesOf } from '../doors/door-harness.ts'
import { printed } from '../gateways/printed.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

/** As Grafana, Authelia's applications and Kubeflow name them. */
const HEADERS = `identity_headers:
  X-WEBAUTH-USER: {claims.email}
  Remote-Groups: {claims.groups}
  kubeflow-userid: "accounts.google.com:{claims.sub}"
  X-Level: "{claims.user.level}"`

let h: Harness
beforeAll(async () => {
  h = await startHarness({ routes: 'GET /me: signed_in\nGET /open: public', extra: HEADERS, script: tuples([]) })
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
})

const CLAIMS = { email: 'ann@example.com', email_verified: true, groups: ['dev', 'ops'], user: { level: 3 } }
const reach = async (claims: object, fields: readonly string[] = [], line = 'GET /me') => {
  await h.send(line, { token: await h.issuer.token({ ...claims }), fields })
  return h.upstream.reached[0]
}

describe('the service', () => {
  test('gets the claims in the fields that it knows', async () => {
    const reached = await reach(CLAIMS)
    expect(fieldOf(reached, 'x-webauth-user')).toBe('ann@example.com')
    expect(fieldOf(reached, 'remote-groups')).toBe('dev,ops')
    expect(fieldOf(reached, 'kubeflow-userid')).toBe('accounts.google.com:alice')
    expect(fieldOf(reached, 'x-level')).toBe('3')
    expect(fieldOf(reached, 'x-auth-subject')).toBe('alice')
  })

  test.each([
    'X-WEBAUTH-USER',
    'x-webauth-user',
    'X_WEBAUTH_USER',
    'X-Webauth_User',
    'Remote.Groups',
    'KUBEFLOW_USERID',
    'kubeflow-userid',
  ])('never gets %s of a client, by a token without the claims or without a token', async (name) => {
    const lower = name.toLowerCase()
    const values = async (line: string, claims: object) => fieldOf(await reach(claims, [`${name}: root`], line), lower)
    expect(await values('GET /open', {})).toBeNull()
    h.upstream.reached.length = 0
    expect((await values('GET /me', CLAIMS)) ?? '').not.toContain('root')
    h.upstream.reached.length = 0
    expect((await values('GET /me', {})) ?? '').not.toContain('root')
  })

  test('gets no such field on a public route', async () => {
    expect(fieldOf(await reach(CLAIMS, [], 'GET /open'), 'x-webauth-user')).toBeNull()
  })

  test('gets a name of any script as UTF-8', async () => {
    const reached = await reach({ ...CLAIMS, groups: ['Größe', '日本'] })
    const bytes = Buffer.from(fieldOf(reached, 'remote-groups') ?? '', 'latin1')
    expect(bytes.toString()).toBe('Größe,日本')
  })
})

describe('a field is left out', () => {
  const value = (claims: object, claim = 'x'): string | null =>
    identityFields([{ name: 'x-a', parts: [{ claim }] }], Object.assign(Object.create(null), claims))[1] ?? null

  test.each<[why: string, claims: object, claim?: string]>([
    ['the claim is missing', {}],
    ['the claim is null', { x: null }],
    ['the claim is empty', { x: '' }],
    ['the claim is an object', { x: { a: 'b' } }],
    ['the claim is a fraction', { x: 1.5 }],
    ['the claim has a line break', { x: 'a\nb' }],
    ['the claim has a NUL', { x: 'a\0' }],
    ['the claim has a control character of C1', { x: 'a\u0085b' }],
    ['the claim has a line separator', { x: 'a\u2028b' }],
    ['the claim begins with a blank', { x: ' root' }],
    ['the claim ends with a blank of another script', { x: 'root\u3000' }],
    ['the claim has half a character', { x: 'a\ud800' }],
    ['the claim is too long', { x: 'a'.repeat(8_193) }],
    ['a list is empty', { x: [] }],
    ['a list has a name with a comma', { x: ['a', 'b,admin'] }],
    ['a list has a list', { x: ['a', ['b']] }],
    ['a list has an empty name', { x: ['a', ''] }],
    ['the address is not verified', { email: 'a@b.test', email_verified: false }, 'email'],
    ['nobody says that the address is verified', { email: 'a@b.test' }, 'email'],
    [
      'the address of a namespace is not verified',
      { 'https://acme.test/email': 'a@b.test' },
      'https://acme.test/email',
    ],
    ['an address in other letters is not verified', { Emails: 'a@b.test' }, 'Emails'],
    ['another address is verified', { email_verified: true, user: { email: 'a@b.test' } }, 'user.email'],
    ['the address is verified by a number', { email: 'a@b.test', email_verified: 1 }, 'email'],
  ])('when %s', (_, claims, claim) => {
    expect(value(claims, claim)).toBeNull()
  })

  test.each<[what: string, claims: object, expected: string, claim?: string]>([
    ['a number', { x: 7 }, '7'],
    ['a boolean', { x: false }, 'false'],
    ['a list of one', { x: ['a b'] }, 'a b'],
    [
      'an address that is verified by a text, as Cognito says it',
      { email: 'a@b.test', email_verified: 'true' },
      'a@b.test',
      'email',
    ],
    ['a verified address within an object', { u: { email: 'a@b.test', email_verified: true } }, 'a@b.test', 'u.email'],
    ['a claim with dots in its name', { 'https://acme.example/role': 'x' }, 'x', 'https://acme.example/role'],
    ['the most that is sent', { x: 'a'.repeat(8_192) }, 'a'.repeat(8_192)],
  ])('but not %s', (_, claims, expected, claim) => {
    expect(value(claims, claim)).toBe(expected)
  })
})

describe('a route file', () => {
  const load = (extra: string) =>
    loadFile(
      routeFile('GET /x: public', { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'),
    )

  test.each<[headers: string, says: RegExp]>([
    ['{Host: {claims.a}}', /set by the sidecar/],
    ['{X-Forwarded-For: {claims.a}}', /set by the sidecar/],
    ['{X-Real-IP: {claims.a}}', /set by the sidecar or by a gateway/],
    ['{X-Original-URI: {claims.a}}', /by a gateway/],
    ['{X-Portcullis-Caller: {claims.a}}', /set by the sidecar/],
    ['{X-Auth-Subject: {claims.a}}', /set by the sidecar/],
    ['{Authorization: {claims.a}}', /set by the sidecar/],
    ['{Connection: {claims.a}}', /one connection/],
    ['{Cookie: {claims.a}}', /meaning in HTTP/],
    ['{Content-Type: {claims.a}}', /meaning in HTTP/],
    ['{Sec-Fetch-Mode: {claims.a}}', /meaning in HTTP/],
    ['{X_User: {claims.a}}', /letters, digits and dashes/],
    ['{"X User": {claims.a}}', /letters, digits and dashes/],
    ['{"": {claims.a}}', /letters, digits and dashes/],
    ['{X-A: {claims.a}, x-a: {claims.b}}', /twice/],
    ['{X-A: {query.a}}', /not a claim/],
    ['{X-A: {claims.}}', /not a claim/],
    ['{X-A: "a{claims.b"}', /not a claim/],
    ['{X-A: "é{claims.b}"}', /no ASCII text/],
    ['{X-A: fixed}', /names no claim/],
    ['{X-A: [a]}', /must be a claim/],
    ['{X-A: 1}', /must be a claim/],
    ['{}', /at least one/],
    ['{X-A: {claims.a}}\npass_headers: [x_a]', /pass_headers|cannot be passed/],
  ])('with identity_headers: %s is refused', (headers, says) => {
    expect(() => load(`identity_headers: ${headers}`)).toThrow(says)
  })

  test('cannot have a check on a field that names the bearer', () => {
    expect(() =>
      loadFile(
        routeFile('GET /x: {equals: {header.x-team: a}}', { extra: 'identity_headers: {X-Team: {claims.team}}' }),
      ),
    ).toThrow(/header.x-team is removed/)
  })
})

test.each(DOOR_PROFILES)(
  'the door of %s gives the same fields, and refuses or removes those of a client',
  async (profile) => {
    const doors = await startDoors({
      routes: 'GET /me: signed_in',
      extra: `hosts: [app.test]\n${HEADERS}`,
      script: tuples([]),
    })
    try {
      const bearer = ['authorization', `Bearer ${await doors.inner.issuer.token(CLAIMS)}`] as const
      const honest = await doors.ask(profile, { target: '/me', fields: [bearer] })
      expect(honest.status).toBe(200)
      expect(valuesOf(honest, 'x-webauth-user')).toEqual(['ann@example.com'])
      expect(valuesOf(honest, 'remote-groups')).toEqual(['dev,ops'])
      const plain = ['authorization', `Bearer ${await doors.inner.issuer.token({})}`] as const
      const forged = await doors.ask(profile, {
        target: '/me',
        fields: [plain, ['kubeflow-userid', 'root'], ['x-level', '9']],
      })
      expect(valuesOf(forged, 'x-level').join()).toBe('')
      if (isHttpProfile(profile)) expect(forged.status).not.toBe(200)
    } finally {
      await doors.close()
    }
  },
)

test.each(['nginx', 'traefik', 'caddy'] as const)('the configuration of %s names the fields', (profile) => {
  const text = printed(profile, { top: `${HEADERS}\n` })
    .map((file) => file.text)
    .join('\n')
  for (const name of ['x-webauth-user', 'remote-groups', 'kubeflow-userid', 'x-level'])
    expect(text.toLowerCase()).toContain(name)
})
