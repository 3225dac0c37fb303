/** The header fields of a forwarded request as a table: what of the client's stays, and what the sidecar adds. */
import { describe, expect, test } from 'vitest'
import { createHeaderRules, type Identity, type OwnFields, upstreamFields } from '../../../sidecar/http/fields.ts'
import { foldName } from '../../../sidecar/http/folding.ts'

const IDENTITY: Identity = {
  subject: 'alice',
  subjectType: 'user',
  claims: {},
  organization: 'acme',
  client: 'web',
  actor: null,
  issuer: 'https://id.test',
  scopes: new Set(['docs:read', 'docs:write']),
}
const OWN: OwnFields = {
  version: '1.1',
  host: 'app.test',
  forwarded: { for: '192.0.2.1', host: 'app.test', proto: 'https' },
  requestId: 'r1',
  traceparent: null,
  identity: IDENTITY,
}
const SET = [
  ['host', 'app.test'],
  ['via', '1.1 portcullis'],
  ['x-request-id', 'r1'],
  ['x-forwarded-for', '192.0.2.1'],
  ['x-forwarded-host', 'app.test'],
  ['x-forwarded-proto', 'https'],
]
const IDENTITY_FIELDS = [
  ['x-auth-subject', 'alice'],
  ['x-auth-subject-type', 'user'],
  ['x-auth-client', 'web'],
  ['x-auth-issuer', 'https://id.test'],
  ['x-auth-organization', 'acme'],
  ['x-auth-scope', 'docs:read docs:write'],
]

type Options = {
  own?: Partial<OwnFields>
  forwardToken?: boolean
  strip?: string[]
  pass?: string[]
  listed?: string[]
}
function fieldsFor(
  raw: readonly string[],
  { own, forwardToken = false, strip = [], pass = [], listed = [] }: Options = {},
) {
  const fields = upstreamFields({
    raw,
    names: raw.filter((_, at) => at % 2 === 0).map(foldName),
    connectionListed: new Set(listed),
    rules: createHeaderRules({ strip, pass }),
    forwardToken,
    own: { ...OWN, ...own },
  })
  return fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : []))
}

test('are the client’s, then ours in a fixed order', () => {
  expect(fieldsFor(['Accept', 'a/b', 'Cookie', 'c=1'])).toEqual([
    ['Accept', 'a/b'],
    ['Cookie', 'c=1'],
    ...SET,
    ...IDENTITY_FIELDS,
  ])
})

describe('of the client', () => {
  test.each<[string, string]>([
    ['Host', 'evil.test'],
    ['X-Request-Id', 'mine'],
    ['X-Forwarded-For', '127.0.0.1'],
    ['X_Forwarded_For', '127.0.0.1'],
    ['Forwarded', 'for=127.0.0.1'],
    ['X-Auth-Subject', 'admin'],
    ['x_auth_subject', 'admin'],
    ['X-Auth-Anything', 'admin'],
    ['Authorization', 'Bearer t'],
    ['DPoP', 'proof'],
    ['Connection', 'close'],
    ['Content-Length', '5'],
    ['Transfer-Encoding', 'chunked'],
    ['Upgrade', 'h2c'],
  ])('%s is not forwarded', (name, value) => {
    expect(fieldsFor([name, value])).toEqual([...SET, ...IDENTITY_FIELDS])
  })

  test.each<[string, string[], Options]>([
    ['a proxy’s Via stays before ours', ['Via', '1.1 edge'], {}],
    ['the token stays on a route that forwards it', ['Authorization', 'Bearer t', 'DPoP', 'p'], { forwardToken: true }],
    ['a name that the route file passes stays', ['X-Access-Token', 't'], { pass: ['x-access-token'] }],
  ])('%s', (_name, raw, options) => {
    expect(fieldsFor(raw, options).slice(0, raw.length / 2)).toEqual(
      raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1]]] : [])),
    )
  })

  test.each<[string, string[], Options]>([
    ['a name that the route file strips', ['X-Own', '1'], { strip: ['x-own'] }],
    ['a name that Connection lists', ['X-Hop', '1'], { listed: ['x-hop'] }],
    [
      'the token, where Connection lists it',
      ['Authorization', 'Bearer t'],
      { forwardToken: true, listed: ['authorization'] },
    ],
    ['identity fields, even if the file passes others', ['X-Auth-Subject', 'admin'], { pass: ['x-access-token'] }],
  ])('%s is removed', (_name, raw, options) => {
    expect(fieldsFor(raw, options)).toEqual([...SET, ...IDENTITY_FIELDS])
  })
})

describe('of the sender', () => {
  test('are none on a public route, whatever the client sends', () => {
    expect(fieldsFor(['X-Auth-Subject', 'admin', 'X-Auth-Scope', 'all'], { own: { identity: null } })).toEqual(SET)
  })

  test('omit an organization and scopes that the token lacks', () => {
    const identity: Identity = { ...IDENTITY, subjectType: 'service', organization: null, scopes: new Set() }
    expect(fieldsFor([], { own: { identity } })).toEqual([
      ...SET,
      ['x-auth-subject', 'alice'],
      ['x-auth-subject-type', 'service'],
      ['x-auth-client', 'web'],
      ['x-auth-issuer', 'https://id.test'],
    ])
  })
})
