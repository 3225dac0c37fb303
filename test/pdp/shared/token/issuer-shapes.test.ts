/** Access tokens as products issue them for their own APIs, and those that cannot be told from ID tokens. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { IssuerTerms } from '../../../../pdp/shared/token/issuer-claims.ts'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { type Claims, createIssuer, type Issuer } from '../../../support/peers/issuer.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const clock = (): number => NOW
const AUDIENCE = 'https://app.test'
const IDP = 'https://idp.test'

let idp: Issuer
beforeAll(async () => {
  idp = await createIssuer({ issuer: IDP, audience: AUDIENCE, clock })
})

async function verify(claims: Claims, foreign: Partial<IssuerTerms>, header: Claims) {
  const external = { audience: AUDIENCE, subject_prefix: 'idp:', organizations: ['acme'], ...foreign }
  const issuer = { issuer: IDP, keys: localKeys(() => idp.jwks.keys, clock), algorithms: ['RS256'] as const, external }
  const verifier = createTokenVerifier({ issuers: [issuer], audience: AUDIENCE, clock })
  return verifier.verify(await idp.token({ org: undefined, ...claims }, header))
}
const refused = (promise: Promise<unknown>, message: RegExp) =>
  expect(promise).rejects.toMatchObject({ code: 'token_invalid', message: expect.stringMatching(message) })

/** As each product issues them for its own APIs. */
const SHAPES: readonly [name: string, foreign: Partial<IssuerTerms>, claims: Claims, expected: object][] = [
  [
    'Keycloak',
    {
      typ: 'JWT',
      audience: 'account',
      claims: { client: 'azp', organization: 'organization', groups: 'groups', roles: 'realm_access.roles' },
    },
    {
      aud: ['account', 'other-api'],
      azp: 'spa',
      client_id: undefined,
      typ: 'Bearer',
      sub: 'f1c9a2d4-0000-4000-8000-000000000001',
      organization: ['acme'],
      groups: ['/engineering', '/Über uns'],
      realm_access: { roles: ['admin', 'offline_access'] },
      scope: 'openid email',
    },
    {
      subject: '~idp:f1c9a2d4-0000-4000-8000-000000000001',
      clientId: '~idp:spa',
      organization: 'acme',
      scopes: new Set(['openid', 'email']),
      groups: ['~idp:group:/engineering', '~idp:group:/%C3%9Cber%20uns', '~idp:role:admin', '~idp:role:offline_access'],
    },
  ],
  [
    'Auth0',
    {
      typ: 'JWT',
      claims: { client: 'azp', organization: 'org_id', roles: 'https://app.test/roles' },
      organization_values: { org_A1b2: 'acme' },
    },
    {
      aud: [AUDIENCE, 'https://acme.auth0.test/userinfo'],
      azp: 'AbCd',
      client_id: undefined,
      jti: undefined,
      sub: 'auth0|507f1f77',
      org_id: 'org_A1b2',
      'https://app.test/roles': ['editor'],
    },
    { subject: '~idp:auth0|507f1f77', clientId: '~idp:AbCd', organization: 'acme', groups: ['~idp:role:editor'] },
  ],
  [
    'Entra v2',
    {
      typ: 'JWT',
      audience: '11111111-2222-3333-4444-555555555555',
      claims: { subject: 'oid', client: 'azp', organization: 'tid', groups: 'groups', roles: 'roles' },
      organization_values: { '72f988bf-0000-0000-0000-000000000000': 'acme' },
      required_claims: { ver: '2.0' },
    },
    {
      aud: '11111111-2222-3333-4444-555555555555',
      azp: '99999999-2222-3333-4444-555555555555',
      azpacr: '0',
      client_id: undefined,
      jti: undefined,
      scope: undefined,
      scp: 'Files.Read Files.Write',
      oid: '00000000-0000-0000-66f3-3332eca7ea81',
      tid: '72f988bf-0000-0000-0000-000000000000',
      ver: '2.0',
      groups: ['0a1b'],
      roles: ['Files.Admin'],
      org_role: 'owner',
    },
    {
      subject: '~idp:00000000-0000-0000-66f3-3332eca7ea81',
      organization: 'acme',
      scopes: new Set(['Files.Read', 'Files.Write']),
      groups: ['~idp:group:0a1b', '~idp:role:Files.Admin'],
    },
  ],
  [
    'Entra v1, for an application without a person',
    { typ: 'JWT', audience: 'api://orders', claims: { client: 'appid' } },
    { aud: 'api://orders', appid: 'daemon', appidacr: '1', client_id: undefined, scope: undefined, sub: 'principal' },
    { subject: '~idp:principal', clientId: '~idp:daemon', scopes: new Set() },
  ],
  [
    'Okta, whose header has no typ',
    { typ: 'JWT', claims: { client: 'cid', groups: 'groups' } },
    { cid: '0oa', client_id: undefined, scope: undefined, scp: ['a', 'b'], sub: 'ann@acme.test', groups: ['Everyone'] },
    { subject: '~idp:ann@acme.test', clientId: '~idp:0oa', scopes: new Set(['a', 'b']) },
  ],
  [
    'PingOne',
    { typ: 'JWT' },
    { aud: [AUDIENCE], client_id: 'b1', scope: 'orders:read', env: 'e1', org: 'theirs', jti: undefined, sid: 's1' },
    { subject: '~idp:alice', clientId: '~idp:b1', organization: 'acme', scopes: new Set(['orders:read']) },
  ],
  [
    'Amazon Cognito, asked for a resource',
    { typ: 'JWT', claims: { groups: 'cognito:groups' } },
    { token_use: 'access', client_id: '1h', username: 'ann', version: 2, scope: undefined, 'cognito:groups': ['g'] },
    { subject: '~idp:alice', clientId: '~idp:1h', groups: ['~idp:group:g'] },
  ],
  [
    'AD FS',
    { typ: 'JWT', audience: 'microsoft:identityserver:o', claims: { subject: 'upn', client: 'appid' } },
    {
      ...{ aud: 'microsoft:identityserver:o', appid: 'c', apptype: 'Public', client_id: undefined, jti: undefined },
      ...{
        sub: 'pairwise=',
        upn: 'ann@corp.test',
        auth_time: '2026-01-01T00:00:00.000Z',
        scope: undefined,
        scp: 'openid',
      },
    },
    { subject: '~idp:ann@corp.test', clientId: '~idp:c', scopes: new Set(['openid']) },
  ],
]

describe('an access token of the shape of', () => {
  test.each(SHAPES)('%s is read as its issuer’s entry says', async (name, foreign, claims, expected) => {
    const header = name.startsWith('Okta') ? { typ: undefined } : { typ: 'JWT' }
    expect(await verify(claims, foreign, header)).toMatchObject(expected)
  })

  test.each(SHAPES)(
    '%s is refused with the header typ JWT where the entry does not allow it',
    async (_, foreign, claims) => {
      await refused(verify(claims, { ...foreign, typ: 'at+jwt' }, { typ: 'JWT' }), /typ is not at\+jwt/)
    },
  )

  test.each(SHAPES)('%s is refused without an expiry', async (_, foreign, claims) => {
    await refused(verify({ ...claims, exp: undefined }, foreign, { typ: 'JWT' }), /claim exp/)
  })
})

test.each<[string, Claims, RegExp]>([
  ['Amazon Cognito without a resource', { aud: undefined, token_use: 'access' }, /claim aud is missing/],
  ['Zitadel', { scope: undefined, nbf: NOW / 1_000 }, /nothing in the token says that it is an access token/],
  ['Dex', { aud: AUDIENCE, scope: undefined, jti: undefined }, /nothing in the token says that it is an access token/],
  ['Authentik', { azp: 'web', uid: 'u', nonce: 'n' }, /is an ID token or another JWT that is not an access token/],
])('an access token of the shape of %s is refused with the reason, as the book says', async (_, claims, reason) => {
  await refused(verify(claims, { typ: 'JWT' }, { typ: 'JWT' }), reason)
})
