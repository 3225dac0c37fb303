/** Tokens that no authorization server gave to a client: of Kubernetes, SPIFFE, CI systems and clouds. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { IssuerTerms } from '../../../../pdp/shared/token/issuer-claims.ts'
import { localKeys } from '../../../../pdp/shared/token/keys.ts'
import { createTokenVerifier } from '../../../../pdp/shared/token/verify.ts'
import { type Claims, createIssuer, type Issuer } from '../../../support/peers/issuer.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const SECONDS = NOW / 1_000
const clock = (): number => NOW
const ISSUER = 'https://kubernetes.default.svc'

let issuer: Issuer
beforeAll(async () => {
  issuer = await createIssuer({ issuer: ISSUER, audience: 'my-api', clock })
})

const WORKLOADS: IssuerTerms = {
  audience: 'my-api',
  subject_prefix: 'k8s:',
  organizations: ['acme'],
  workloads: true,
}
/** What these tokens lack of ours. */
const BARE = { scope: undefined, client_id: undefined, jti: undefined, org: undefined }
const verify = async (claims: Claims, foreign: IssuerTerms = WORKLOADS, header: Claims = { typ: undefined }) =>
  createTokenVerifier({
    issuers: [
      { issuer: ISSUER, keys: localKeys(() => issuer.jwks.keys, clock), algorithms: ['RS256'], external: foreign },
    ],
    audience: 'https://app.test',
    clock,
  }).verify(await issuer.token({ ...BARE, ...claims }, header))

const SERVICE_ACCOUNT = {
  aud: ['my-api'],
  sub: 'system:serviceaccount:shop:checkout',
  'kubernetes.io': { namespace: 'shop' },
  nbf: SECONDS,
}

describe('a token is a credential', () => {
  test.each<[what: string, claims: Claims, header?: Claims]>([
    ['of a ServiceAccount', SERVICE_ACCOUNT],
    ['of SPIFFE', { aud: ['my-api'], sub: 'spiffe://example.org/ns/shop/sa/checkout' }, { typ: 'JWT' }],
    ['of SPIFFE without iat', { aud: ['my-api'], sub: 'spiffe://example.org/a', iat: undefined, nbf: SECONDS }],
    [
      'of a CI system',
      { aud: 'my-api', sub: 'repo:octo-org/octo-repo:ref:refs/heads/main', ref: 'refs/heads/main' },
      { typ: 'JWT' },
    ],
    [
      'of a service account of Google',
      { aud: 'my-api', azp: '1093', sub: '1093', email: 'a@b.test', email_verified: true },
      { typ: 'JWT' },
    ],
  ])('%s, with workloads', async (_, claims, header) => {
    const verified = await verify(claims, WORKLOADS, header)
    expect(verified.subject).toBe(`~k8s:${claims.sub}`)
    expect(verified.clientId).toBe(verified.subject)
    await expect(
      verify(claims, { ...WORKLOADS, workloads: false, typ: 'JWT', claims: { client: 'sub' } }, header),
    ).rejects.toMatchObject({
      code: 'token_invalid',
    })
  })

  test('without aud, where another claim names the audience', async () => {
    const cognito = { aud: undefined, client_id: 'pool-client', token_use: 'access', sub: 'b1' }
    const foreign = {
      ...WORKLOADS,
      workloads: false,
      typ: 'JWT' as const,
      audience: 'pool-client',
      claims: { audience: 'client_id', client: 'client_id' },
    }
    expect((await verify(cognito, foreign)).audiences).toEqual(['pool-client'])
    await expect(verify({ ...cognito, client_id: 'other' }, foreign)).rejects.toThrow(/aud does not name/)
    await expect(verify({ ...cognito, token_use: 'id' }, foreign)).rejects.toThrow(/ID token/)
    await expect(verify({ ...cognito, aud: 'pool-client', client_id: 'other' }, foreign)).rejects.toThrow(
      /aud does not name/,
    )
  })

  test.each(['old-api', 'new-api'])('for %s, where both names are good', async (aud) => {
    const both = { ...WORKLOADS, audience: ['new-api', 'old-api'] }
    expect((await verify({ ...SERVICE_ACCOUNT, aud }, both)).audiences).toEqual([aud])
  })
})

describe('a token is refused', () => {
  test.each<[what: string, claims: Claims, header?: Claims]>([
    ['for another audience', { ...SERVICE_ACCOUNT, aud: ['vault'] }],
    ['without an audience', { ...SERVICE_ACCOUNT, aud: undefined }],
    ['for an audience that only begins like ours', { ...SERVICE_ACCOUNT, aud: ['my-api2'] }],
    ['of a sign-in, with a nonce', { ...SERVICE_ACCOUNT, nonce: 'n' }],
    ['of a sign-in, with at_hash', { ...SERVICE_ACCOUNT, at_hash: 'h' }],
    ['of a sign-in without a nonce, with its time', { ...SERVICE_ACCOUNT, auth_time: SECONDS }],
    ['of a sign-in without a nonce, with its session', { ...SERVICE_ACCOUNT, sid: 's' }],
    ['that is a logout token', { ...SERVICE_ACCOUNT, events: {} }],
    ['that is an ID token of Cognito', { ...SERVICE_ACCOUNT, token_use: 'id' }],
    ['that is an ID token of Keycloak', { ...SERVICE_ACCOUNT, typ: 'ID' }],
    ['with the type of a security event', SERVICE_ACCOUNT, { typ: 'secevent+jwt' }],
    ['without a subject', { ...SERVICE_ACCOUNT, sub: undefined }],
    ['without an end', { ...SERVICE_ACCOUNT, exp: undefined }],
    ['without a beginning', { ...SERVICE_ACCOUNT, iat: undefined, nbf: undefined }],
  ])('%s', async (_, claims, header) => {
    await expect(verify(claims, WORKLOADS, header)).rejects.toMatchObject({ code: 'token_invalid' })
  })
})
