/** `sign_in` of a route file: what is refused with its place, and what `check` warns of. */
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { fileWarnings } from '../../../sidecar/route-file/warnings.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const PROVIDER = '{issuer: https://as.test, client_id: web}'
const ready = (signIn: string, { routes = 'GET /a: signed_in', extra = '' } = {}): string =>
  routeFile(routes, { extra: `${signIn}\n${extra}` })
    .replace('UPSTREAM', 'http://127.0.0.1:8080')
    .replace('PDP', '127.0.0.1:9090')
const usual = (more = '', provider = PROVIDER): string => `sign_in: {keys_file: k, providers: [${provider}]${more}}`
const issues = (source: string): string[] => parseRouteFile(source).issues.map(({ message }) => message)

test('a file signs nobody in unless it says so', () => {
  expect(loadFile(ready('')).signIn).toBeNull()
})

test('sign_in has defaults for everything but keys and providers', () => {
  expect(loadFile(ready(usual())).signIn).toEqual({
    keysFile: 'k',
    sessionMaxMs: 43_200_000,
    idleMaxMs: 3_600_000,
    pages: { branding: {}, ask: null },
    providers: [
      {
        issuer: 'https://as.test',
        clientId: 'web',
        clientSecretFile: null,
        clientKeyFile: null,
        name: '',
        label: 'as.test',
        scope: 'openid',
        parameters: {},
      },
    ],
  })
})

describe('refused is', () => {
  test.each<[string, string, string]>([
    ['a file without keys', `sign_in: {providers: [${PROVIDER}]}`, 'sign_in needs keys_file'],
    ['an empty path of the keys', `sign_in: {keys_file: "", providers: [${PROVIDER}]}`, 'keys_file must not be empty'],
    [
      'a client with a secret and a key',
      'sign_in: {keys_file: k, providers: [{issuer: https://as.test, client_id: web, client_secret_file: s, client_key_file: k}]}',
      'a client has either client_secret_file or client_key_file',
    ],
    ['a file without providers', 'sign_in: {keys_file: k}', 'sign_in needs providers'],
    ['an empty list of providers', 'sign_in: {keys_file: k, providers: []}', 'providers must have at least one item'],
    [
      'an issuer that is not trusted',
      usual('', '{issuer: https://evil.test, client_id: web}'),
      'is not one of issuers',
    ],
    ['a provider without a client', usual('', '{issuer: https://as.test}'), 'a provider needs client_id'],
    [
      'scopes without openid',
      usual('', '{issuer: https://as.test, client_id: web, scope: email}'),
      'must contain openid',
    ],
    [
      'a name that is no part of a path',
      usual('', '{issuer: https://as.test, client_id: w, name: a/b}'),
      'name must be',
    ],
    ['two providers without names', usual('', `${PROVIDER}, ${PROVIDER}`), 'each of several providers needs a name'],
    [
      'two providers of one name',
      usual('', '{issuer: https://as.test, client_id: a, name: x}, {issuer: https://as.test, client_id: b, name: x}'),
      'two providers have the same name',
    ],
    [
      'a parameter that the sidecar sets',
      usual('', '{issuer: https://as.test, client_id: web, parameters: {redirect_uri: https://evil.test}}'),
      'redirect_uri is set by the sidecar',
    ],
    ['an idle time beyond the session', usual(', session_max: 60, idle_max: 61'), 'must not be more than session_max'],
    ['a session of a second', usual(', session_max: 1'), 'session_max must be a whole number from 60'],
    ['a misspelt key', usual(', session_maxx: 60'), 'did you mean session_max?'],
    ['pages that are no map', usual(', pages: blue'), 'pages must be a map'],
    ['a word that pages do not have', usual(', pages: {colour: "#000000"}'), 'did you mean color?'],
    ['nobody to ask', usual(', pages: {ask: " "}'), 'ask must have 1 to 300 characters'],
    ['a long story to ask by', usual(`, pages: {ask: ${'a'.repeat(301)}}`), 'ask must have 1 to 300 characters'],
    ['an address that runs a script', usual(', pages: {support: "javascript:alert(1)"}'), 'pages needs a support that'],
    ['a picture over plain http', usual(', pages: {logo: "http://cdn.test/a.svg"}'), 'pages needs a logo that'],
    ['a colour that would end the style', usual(', pages: {color: "red}body{"}'), 'pages needs a color such as'],
    ['a name without end', usual(`, pages: {name: ${'a'.repeat(81)}}`), 'pages needs a name of 1 to 80'],
  ])('%s', (_, signIn, message) => {
    expect(issues(ready(signIn))).toEqual([expect.stringContaining(message)])
  })

  test('http that is not loopback, because browsers drop the cookie there', () => {
    expect(issues(ready(usual(), { extra: 'public_url: http://app.test' }))).toEqual([
      expect.stringContaining('needs a public_url with https'),
    ])
    for (const url of ['http://localhost:15080', 'http://127.0.0.1', 'https://app.test/below'])
      expect(issues(ready(usual(), { extra: `public_url: ${url}` }))).toEqual([])
  })

  test.each(['nginx', 'traefik', 'caddy', 'istio', 'gateway-api'])(
    'a door of %s, which would pass the cookie on',
    (profile) => {
      const door = `doors: [{profile: ${profile}, listen: "unix:/tmp/door.sock"}]`
      expect(issues(ready(usual(), { extra: door }))).toEqual([
        expect.stringContaining('sign_in works behind a door of the profile envoy only'),
      ])
      expect(issues(ready('', { extra: door }))).toEqual([])
    },
  )

  test('no door of envoy', () => {
    expect(issues(ready(usual(), { extra: 'doors: [{profile: envoy, listen: "unix:/tmp/door.sock"}]' }))).toEqual([])
  })
})

describe('check warns of', () => {
  test.each<[string, string, string]>([
    [
      'hosts where nobody can sign in',
      ready(usual(), { extra: 'hosts: [app.test, admin.test]' }),
      'browsers sign in at app.test only, as public_url says, and get 401 at admin.test',
    ],
    [
      'a public host that is not served',
      ready(usual(), { extra: 'hosts: [other.test]' }),
      'needs the host of public_url',
    ],
    [
      'a route below the paths of the sidecar',
      ready(usual(), { routes: 'GET /.portcullis/callback: public\nGET /a: signed_in' }),
      'GET /.portcullis/callback never matches',
    ],
    [
      'a file whose routes send nobody to sign in',
      ready(usual(), { routes: 'GET /a: public\nGET /b: {check: signed_in, sign_in: false}' }),
      'sign_in has no effect',
    ],
    [
      'an option of a route without sign_in',
      ready('', { routes: 'GET /a: {check: signed_in, sign_in: false}' }),
      'the file has no sign_in',
    ],
  ])('%s', (_, source, warning) => {
    expect(fileWarnings(loadFile(source))).toContainEqual(expect.stringContaining(warning))
  })

  test('nothing in a usual file', () => {
    expect(fileWarnings(loadFile(ready(usual(), { routes: 'GET /**: signed_in' })))).toEqual([])
  })
})

test('people cannot sign in at an issuer without TLS, although tokens of it may be accepted', () => {
  const trusted = '{issuer: "http://as.test", jwks_uri: "https://as.test/jwks"}'
  const source = ready(usual('', '{issuer: "http://as.test", client_id: web}'))
  expect(issues(source.replace(/^issuers:.*$/m, `issuers: [${trusted}]`))).toEqual([
    expect.stringMatching(
      /^people can sign in only at an issuer with an https URL \(http on loopback\): .*public https address.*SSL_CERT_FILE/,
    ),
  ])
})
