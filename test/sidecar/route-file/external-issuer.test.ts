import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { routeFile } from '../support/harness.ts'

const ready = (routes: string): string =>
  routeFile(routes).replace('UPSTREAM', 'http://127.0.0.1:8080').replace('PDP', '127.0.0.1:9090')
const issues = (source: string): string[] => parseRouteFile(source).issues.map(({ message }) => message)
const withIssuers = (externals: readonly string[], more = ''): string =>
  ready('GET /a: public').replace(
    /issuers: .*/,
    `issuers: [${externals.map((external, at) => `{issuer: "https://as${at}.test", external: ${external}, ${more}}`).join(', ')}]`,
  )

test('an external issuer has the resource of the file as its audience, unless it says otherwise', () => {
  const audiences = ['', ', audience: account'].map((more) => {
    const external = `external: {subject_prefix: "idp:", organizations: [acme]${more}}`
    const { file } = parseRouteFile(
      ready('GET /a: public').replace('https://as.test}', `https://as.test, ${external}}`),
    )
    return file?.issuers[0]?.external?.audience
  })
  expect(audiences).toEqual(['https://app.test', 'account'])
})

describe('a mistake is', () => {
  test.each<[string, string]>([
    ...(
      [
        ['{subject_prefix: p}', 'external needs organizations'],
        ['{subject_prefix: "a#", organizations: [acme]}', 'subject_prefix must be 1 to 64 visible'],
        ['{subject_prefix: p, organizations: [acme], typ: jwt}', 'typ must be at+jwt or JWT'],
        ['{subject_prefix: p, organizations: [acme], claims: {azp: x}}', 'claims has the unknown key "azp"'],
        [
          '{subject_prefix: p, organizations: [acme], organization_values: {t: acme}}',
          'organization_values needs claims.organization',
        ],
        [
          '{subject_prefix: p, organizations: [acme], claims: {organization: tid}, organization_values: {t: beta}}',
          'beta is not one of organizations',
        ],
        ['true', 'external must be a map'],
      ] as const
    ).map(([external, message]): [string, string] => [
      ready('GET /a: public').replace('https://as.test}', `https://as.test, external: ${external}}`),
      message,
    ]),
    [
      withIssuers(['{subject_prefix: idp, organizations: [a]}', '{subject_prefix: "idp:", organizations: [a]}']),
      'the subject_prefix idp: begins with idp, that of another issuer',
    ],
    [
      withIssuers(
        ['a', 'b'].map((name) => `{subject_prefix: ${name}, organizations: [a]}`),
        'introspection: {endpoint: https://as.test/i, client_id: c, client_secret_file: s}',
      ),
      'only one issuer may have introspection',
    ],
    [
      ready('GET /a: public').replace(
        'https://as.test}',
        'https://as.test, introspection: {endpoint: https://as.test/i, client_id: c, client_secret_file: s}}',
      ),
      'introspection is for an external issuer',
    ],
  ])('%s', (source, message) => {
    expect(issues(source).join('\n')).toContain(message)
  })
})

describe('one issuer under an old and a new name', () => {
  const two = (former: string, prefixes = ['"idp:"', '"idp:"']): string[] =>
    issues(
      ready('GET /a: public').replace(
        /issuers: .*/,
        `issuers: [{issuer: https://old.test, external: {subject_prefix: ${prefixes[0]}, organizations: [a]}}, {issuer: https://new.test, external: {subject_prefix: ${prefixes[1]}, organizations: [a]${former}}}]`,
      ),
    )

  test('has the same subjects where the new one says so', () => {
    expect(two(', renamed_from: https://old.test')).toEqual([])
  })

  test.each<[string, string, string[]?]>([
    ['', 'two names of one issuer, say so by renamed_from'],
    [', renamed_from: https://old.test/', 'two names of one issuer, say so by renamed_from'],
    [', renamed_from: https://new.test', 'two names of one issuer, say so by renamed_from'],
    [', renamed_from: [https://old.test]', 'renamed_from must be a string'],
    [', renamed_from: https://old.test', 'the subject_prefix idp:x begins with idp:, that', ['"idp:"', '"idp:x"']],
  ])('has not with %j', (former, message, prefixes) => {
    expect(two(former, prefixes).join('\n')).toContain(message)
  })
})

describe('two names at a time', () => {
  const named = (resource: string): string => ready('GET /a: public').replace(/resource: .*/, `resource: ${resource}`)

  test('may be those of the resource, the first of which clients are told', () => {
    const { file } = parseRouteFile(named('[https://new.test, https://old.test]'))
    expect([file?.resource, file?.resources]).toEqual(['https://new.test', ['https://new.test', 'https://old.test']])
    expect(file?.hosts).toEqual(['new.test', 'old.test'])
  })

  test.each([
    '[]',
    '[1]',
    '[https://a.test, "no uri"]',
    '{a: b}',
    `[${Array.from({ length: 9 }, (_, n) => `https://a${n}.test`)}]`,
  ])('cannot be %s', (resource) => {
    expect(issues(named(resource))).not.toEqual([])
  })

  test('may be those of an audience, which is the resources unless it says otherwise', () => {
    const audiences = ['', ', audience: [a, b]', ', audience: [a, a]'].map((more) => {
      const external = `external: {subject_prefix: "idp:", organizations: [acme]${more}}`
      const source = named('[https://new.test, https://old.test]').replace(
        'https://as.test}',
        `https://as.test, ${external}}`,
      )
      return parseRouteFile(source).file?.issuers[0]?.external?.audience
    })
    expect(audiences).toEqual([['https://new.test', 'https://old.test'], ['a', 'b'], 'a'])
  })
})

test('the audience of workloads cannot be a client at which people sign in', () => {
  const source = (client: string): string =>
    ready('GET /a: signed_in').replace(
      /issuers: .*/,
      `issuers: [{issuer: https://as.test, external: {subject_prefix: "w:", organizations: [acme], workloads: true, audience: [api, web]}}]
sign_in: {keys_file: k, providers: [{issuer: https://as.test, client_id: ${client}}]}`,
    )
  expect(issues(source('web')).join()).toMatch(/people sign in at the client web/)
  expect(issues(source('other'))).toEqual([])
})
