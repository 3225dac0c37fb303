import { beforeAll, describe, expect, test } from 'vitest'
import { EXTERNAL } from '../../../../pdp/shared/domain/names.ts'
import { EXTERNAL_MARK, type IssuerTerms } from '../../../../pdp/shared/token/issuer-claims.ts'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { type Claims, createIssuer, type Issuer } from '../../../support/peers/issuer.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => NOW
const AUDIENCE = 'https://app.test'
const IDP = 'https://idp.test'
const OTHER = 'https://other.test'
const PLAIN = { alg: 'RS256', typ: 'JWT' }

let idp: Issuer
let own: Issuer
beforeAll(async () => {
  idp = await createIssuer({ issuer: IDP, audience: AUDIENCE, clock })
  own = await createIssuer({ issuer: 'https://pdp.test', audience: AUDIENCE, clock })
})

const FOREIGN: IssuerTerms = { audience: AUDIENCE, subject_prefix: 'idp:', organizations: ['acme'] }
const verifier = (foreign: Partial<IssuerTerms> = {}) =>
  createTokenVerifier({
    issuers: [
      { issuer: own.issuer, keys: localKeys(() => own.jwks.keys, clock), algorithms: ['RS256'] },
      {
        issuer: IDP,
        keys: localKeys(() => idp.jwks.keys, clock),
        algorithms: ['RS256'],
        external: { ...FOREIGN, ...foreign },
      },
      // Two issuers may have the same keys, as tenants of one vendor do.
      {
        issuer: OTHER,
        keys: localKeys(() => idp.jwks.keys, clock),
        algorithms: ['RS256'],
        external: { ...FOREIGN, subject_prefix: 'other:', organizations: ['beta'] },
      },
    ],
    audience: AUDIENCE,
    clock,
  })
const verify = async (claims: Claims = {}, foreign: Partial<IssuerTerms> = {}, header: Claims = {}) =>
  verifier(foreign).verify(await idp.token({ org: undefined, ...claims }, header))
const refused = (promise: Promise<unknown>, message: RegExp | string) =>
  expect(promise).rejects.toMatchObject({ code: 'token_invalid', message: expect.stringMatching(message) })

test('another issuer’s typ changes nothing for our own tokens', async () => {
  await refused(verifier({ typ: 'JWT' }).verify(await own.token({}, { typ: 'JWT' })) as Promise<unknown>, /typ/)
})

describe('an ID token or another JWT is no access token', () => {
  const open: Partial<IssuerTerms> = { typ: 'JWT', audience: 'spa', claims: { client: 'azp' } }
  const idToken = { aud: 'spa', azp: 'spa', client_id: undefined, scope: undefined, jti: undefined }
  test.each<[string, Claims, Claims]>([
    ['with a nonce', { nonce: 'n' }, {}],
    ['with a nonce and a scope', { nonce: 'n', scope: 'openid' }, {}],
    ['without a nonce', {}, {}],
    ['with at_hash and a scope', { at_hash: 'h', scope: 'openid' }, {}],
    ['with c_hash', { c_hash: 'h', scope: 'openid' }, {}],
    ['of Keycloak', { typ: 'ID', scope: 'openid' }, {}],
    ['of Cognito', { token_use: 'id', scope: 'openid' }, {}],
    ['of Keycloak that is a refresh token', { typ: 'Refresh', scope: 'openid' }, {}],
    ['that is a logout token', { events: {}, scope: 'openid' }, {}],
    ['with the type of a security event', { scope: 'openid' }, { typ: 'secevent+jwt' }],
    ['with the type of a proof', { scope: 'openid' }, { typ: 'dpop+jwt' }],
    ['with a type that is no text', { scope: 'openid' }, { typ: 5 }],
    ['with a kind that is no text', { typ: ['Bearer'], scope: 'openid' }, {}],
  ])('%s', async (_, claims, header) => {
    await refused(verify({ ...idToken, ...claims }, open, { ...PLAIN, ...header }), /./)
  })
})

describe('an external issuer', () => {
  test('puts its mark before ids as the domain names it', () => expect(EXTERNAL_MARK).toBe(EXTERNAL))

  test('names none of our users and clients in any claim that a check can read', async () => {
    const { all } = await verify({
      sub: 'alice',
      client_id: 'admin',
      org: 'acme',
      org_role: 'owner',
      roles: 'admin',
      permissions: ['x'],
      ent: {},
      act: { sub: 'bob' },
    })
    expect(all.sub).toBe('~idp:alice')
    expect(all.client_id).toBe('~idp:admin')
    for (const name of ['org_role', 'roles', 'permissions', 'ent', 'act']) expect(all[name]).toBeUndefined()
  })

  test('has the organization of its entry, whatever org says', async () => {
    expect(await verify({ org: 'beta' })).toMatchObject({ organization: 'acme', all: { org: 'acme' } })
    const several = { organizations: ['acme', 'beta'] }
    expect(await verify({ org: 'acme' }, several)).toMatchObject({ organization: null })
    const mapped = { ...several, claims: { organization: 'tid' }, organization_values: { t1: 'acme' } }
    for (const tid of ['acme', 'T1', 'constructor', ['t1', 't1'], { t1: 'acme' }, 1, null])
      expect(await verify({ tid }, mapped)).toMatchObject({ organization: null })
    expect(await verify({ tid: ['t1'] }, mapped)).toMatchObject({ organization: 'acme' })
  })

  test('is the one that the token names, by its own keys and entry', async () => {
    const other = await verifier().verify(await idp.token({ iss: OTHER }))
    expect(other).toMatchObject({ subject: '~other:alice', organization: 'beta' })
    await refused(verify({ iss: own.issuer }), /signature/)
    await refused(verify({ iss: 'https://idp.test/' }), /ends with a slash/)
  })

  test.each<[string, Claims, Partial<IssuerTerms>, RegExp]>([
    ['an audience of another API', { aud: ['https://else.test'] }, {}, /aud does not name/],
    [
      'our resource as audience, when the entry has another',
      {},
      { audience: 'api://x' },
      /aud does not name api:\/\/x/,
    ],
    ['no audience', { aud: undefined }, {}, /claim aud/],
    ['no subject', { sub: undefined }, {}, /claim sub/],
    ['an empty subject', { sub: '' }, {}, /claim sub is missing, empty or no text/],
    ['a subject that is a number', { sub: 7 }, {}, /claim sub is missing, empty or no text/],
    ['a subject that is not Unicode', { sub: 'a\ud800' }, {}, /claim sub is missing, empty or no text/],
    ['a subject that is too long', { sub: 'a'.repeat(252) }, {}, /claim sub makes an id of 257 .* at most 256/],
    ['a subject that is too long as an id', { sub: 'é'.repeat(42) }, {}, /claim sub makes an id of 257 characters/],
    ['no client', { client_id: undefined, azp: 'x' }, {}, /claim client_id/],
    ['no client of the claim that the entry names', { azp: 'x' }, { claims: { client: 'appid' } }, /claim appid/],
    ['a required claim of another value', { ver: '1.0' }, { required_claims: { ver: '2.0' } }, /claim ver/],
    ['no required claim', {}, { required_claims: { ver: '2.0' } }, /claim ver/],
    ['a required claim that is no text', { ver: 2 }, { required_claims: { ver: '2' } }, /claim ver/],
    ['groups that are an object', { groups: {} }, { claims: { groups: 'groups' } }, /not a list of names/],
    ['a group that is no text', { groups: ['a', 1] }, { claims: { groups: 'groups' } }, /not a list of names/],
    ['a group that is not Unicode', { groups: ['\ud800'] }, { claims: { groups: 'groups' } }, /not a list of names/],
    [
      'groups that were left out because there are too many',
      { _claim_names: { groups: 'src1' } },
      { claims: { groups: 'groups' } },
      /too long/,
    ],
    ['groups that were left out', { hasgroups: true }, { claims: { groups: 'groups' } }, /too long/],
    [
      'more groups than a question may have',
      { groups: Array.from({ length: 501 }, (_, i) => `g${i}`) },
      { claims: { groups: 'groups' } },
      /more than 500/,
    ],
  ])('has no token with %s', async (_, claims, foreign, message) => {
    await refused(verify(claims, foreign), message)
  })

  test.each([
    ['auth0|abc', 'auth0|abc'],
    ['ann@example.com', 'ann@example.com'],
    ['repo:o/r:environment:prod%3Ablue', 'repo:o/r:environment:prod%3Ablue'],
    ['50%', '50%'],
    ['Ann Lee', 'Ann%20Lee'],
    ['Ann%20Lee', 'Ann%2520Lee'],
    ['Ann%2520Lee', 'Ann%252520Lee'],
    ['a#member', 'a%23member'],
    ['jürgen', 'j%C3%BCrgen'],
    ['j\u0075\u0308rgen', 'ju%CC%88rgen'],
    ['j%C3%BCrgen', 'j%25C3%25BCrgen'],
    ['%é', '%%C3%A9'],
    ['%%20', '%%2520'],
    ['a\r\nX-Admin: 1\u0000', 'a%0D%0AX-Admin:%201%00'],
    ['a'.repeat(251), 'a'.repeat(251)],
  ])('has the subject and the client %j as an id of its own', async (name, id) => {
    expect(await verify({ sub: name, client_id: name })).toMatchObject({
      subject: `~idp:${id}`,
      clientId: `~idp:${id}`,
    })
    const read = id.replace(/(?:%(?:[01][0-9A-F]|2[035]|7F|[89A-F][0-9A-F]))+/g, decodeURIComponent)
    expect(read).toBe(name)
  })

  test.each(['none', 'HS256', 'ES256', 'RS512'])('has no token of the algorithm %s', async (alg) => {
    await refused(verify({}, {}, { alg }), /alg is not accepted/)
  })

  test('keeps groups and roles of the same name apart, and takes a required value out of a list', async () => {
    const entry = { claims: { groups: 'g', roles: 'r' }, required_claims: { amr: 'mfa' } }
    const { groups } = await verify({ g: ['role:admin', '50%'], r: 'admin', amr: ['pwd', 'mfa'] }, entry)
    expect(groups).toEqual(['~idp:group:role:admin', '~idp:group:50%25', '~idp:role:admin'])
  })

  test('finds a claim whose name has dots, or that dots lead to, and refuses a token that has it in two ways', async () => {
    const roles = async (claims: Claims) => (await verify(claims, { claims: { roles: 'a.b.c' } })).groups
    expect(await roles({ 'a.b.c': ['whole'] })).toEqual(['~idp:role:whole'])
    expect(await roles({ 'a.b': { c: ['longest'] } })).toEqual(['~idp:role:longest'])
    expect(await roles({ a: { 'b.c': ['shortest'] } })).toEqual(['~idp:role:shortest'])
    expect(await roles({ a: { b: { c: ['parts'] } } })).toEqual(['~idp:role:parts'])
    expect(await roles({ a: { b: 'c' }, 'a.b': 'c' })).toEqual([])
    const parts = { a: { b: { c: ['parts'] } } }
    await refused(roles({ 'a.b.c': ['whole'], ...parts }), /claim a\.b\.c is in the token in two ways/)
    await refused(roles({ 'a.b': { c: ['parts'] }, ...parts }), /in two ways/)
  })
})

test('our own issuer cannot name a subject of an external one', async () => {
  const forged = verifier().verify(await own.token({ sub: '~idp:alice' }))
  await refused(Promise.resolve(forged), /sub begins with ~/)
})
