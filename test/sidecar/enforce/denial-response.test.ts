/** The answer to each denial as a table: status, challenges and gRPC status. */
import { describe, expect, test } from 'vitest'
import { PROBLEM_TITLES, type ProblemCode } from '../../../pdp/shared/base/problems.ts'
import {
  type DenialAnswer,
  type DenialMembers,
  denialStatus,
  describeDenial,
  describeGrpcDenial,
  isShadowed,
} from '../../../sidecar/enforce/denial-response.ts'

const CONTEXT = { requestId: 'r1', metadataUrl: 'https://app.test/.well-known/oauth-protected-resource', nonce: 'n1' }
const METADATA = `resource_metadata="${CONTEXT.metadataUrl}"`
const valuesOf = ({ fields }: DenialAnswer, name: string): string[] =>
  fields.flatMap((field, at) => (at % 2 === 0 && field === name ? [fields[at + 1] ?? ''] : []))

/** Code, HTTP status, gRPC status, whether shadow mode replaces it. */
const TABLE: readonly (readonly [code: ProblemCode, http: number, grpc: number, shadowed: boolean])[] = [
  ['request_invalid', 400, 3, false],
  ['path_too_complex', 400, 3, false],
  ['route_ambiguous', 400, 3, false],
  ['target_too_long', 414, 3, false],
  ['request_timeout', 408, 4, false],
  ['request_too_large', 413, 8, false],
  ['media_type_unsupported', 415, 3, false],
  ['headers_too_large', 431, 8, false],
  ['route_unknown', 404, 12, false],
  ['method_unsupported', 405, 12, false],
  ['host_unknown', 421, 14, false],
  ['token_missing', 401, 16, true],
  ['token_invalid', 401, 16, true],
  ['token_expired', 401, 16, true],
  ['proof_missing', 401, 16, true],
  ['proof_invalid', 401, 16, true],
  ['proof_replayed', 401, 16, true],
  ['proof_nonce_required', 401, 16, true],
  ['step_up_required', 401, 16, true],
  ['scope_insufficient', 403, 7, true],
  ['permission_denied', 403, 7, true],
  ['origin_refused', 403, 7, true],
  ['entitlement_required', 403, 7, true],
  ['pdp_unavailable', 503, 14, true],
  ['condition_failed', 503, 9, true],
  ['evaluation_limit', 503, 8, true],
  ['overloaded', 503, 14, true],
  ['keys_unavailable', 503, 14, true],
  ['replay_memory_unavailable', 503, 14, true],
  ['session_unavailable', 503, 14, true],
  ['issuer_unavailable', 503, 14, true],
  ['draining', 503, 14, false],
  ['busy', 503, 14, false],
  ['upstream_unavailable', 502, 14, false],
  ['upstream_timeout', 504, 4, false],
  ['internal', 500, 13, false],
]

describe.each(TABLE)('%s', (code, http, grpc, shadowed) => {
  test(`is ${http}, as a problem that no cache may keep`, () => {
    const answer = describeDenial(code, {}, CONTEXT)
    expect([answer.status, denialStatus(code)]).toEqual([http, http])
    expect(JSON.parse(answer.body)).toMatchObject({
      type: `urn:portcullis:problem:${code}`,
      title: PROBLEM_TITLES[code],
      status: http,
      code,
      instance: 'urn:portcullis:request:r1',
    })
    expect(valuesOf(answer, 'content-type')).toEqual(['application/problem+json'])
    expect(valuesOf(answer, 'content-length')).toEqual([String(Buffer.byteLength(answer.body))])
    expect([valuesOf(answer, 'cache-control'), valuesOf(answer, 'x-request-id')]).toEqual([['no-store'], ['r1']])
    expect(valuesOf(answer, 'retry-after')).toEqual(http === 503 && grpc === 14 ? ['1'] : [])
  })

  test(`is ${grpc} to a gRPC call, with the code beside it`, () => {
    const answer = describeGrpcDenial(code, {}, CONTEXT)
    expect([answer.status, answer.body, valuesOf(answer, 'content-type')]).toEqual([200, '', ['application/grpc']])
    expect([valuesOf(answer, 'grpc-status'), valuesOf(answer, 'portcullis-problem')]).toEqual([[String(grpc)], [code]])
  })

  test(`is ${shadowed ? '' : 'not '}replaced in shadow mode`, () => {
    expect(isShadowed(code)).toBe(shadowed)
  })

  test('has a challenge and a nonce exactly where a client can authenticate otherwise', () => {
    const answer = describeDenial(code, {}, CONTEXT)
    const isChallenged = http === 401 || code === 'scope_insufficient'
    expect([valuesOf(answer, 'www-authenticate').length > 0, valuesOf(answer, 'dpop-nonce')]).toEqual([
      isChallenged,
      isChallenged ? ['n1'] : [],
    ])
  })
})

describe('the challenge', () => {
  const challengesFor = (code: ProblemCode, members: DenialMembers): string[] =>
    valuesOf(describeDenial(code, members, CONTEXT), 'www-authenticate')

  test('names both schemes and no error without credentials (RFC 6750 section 3.1)', () => {
    const [bearer = '', dpop = '', ...others] = challengesFor('token_missing', {})
    expect([others, bearer]).toEqual([[], `Bearer ${METADATA}`])
    expect(dpop).toMatch(/^DPoP algs="ES256 [^"]+"/)
    expect(dpop).not.toContain('error')
  })

  test.each<[ProblemCode, DenialMembers, RegExp]>([
    ['token_invalid', { scheme: 'Bearer' }, /^Bearer error="invalid_token"/],
    ['token_expired', { scheme: 'DPoP' }, /^DPoP error="invalid_token".*algs="ES256/],
    ['proof_invalid', { scheme: 'DPoP' }, /^DPoP error="invalid_dpop_proof"/],
    ['proof_nonce_required', { scheme: 'DPoP' }, /^DPoP error="use_dpop_nonce"/],
    ['scope_insufficient', { scope: 'docs:write' }, /^Bearer error="insufficient_scope", scope="docs:write"/],
    [
      'step_up_required',
      { stepUp: { acrValues: ['mfa', 'hwk'], maxAgeSeconds: 60 } },
      /acr_values="mfa hwk", max_age="?60"?/,
    ],
    [
      'step_up_required',
      { stepUp: { acrValues: [], maxAgeSeconds: null } },
      /^Bearer error="insufficient_user_authentication", resource/,
    ],
    ['request_invalid', { malformedCredentials: true }, /^Bearer error="invalid_request"/],
  ])('of %s with %j', (code, members, expected) => {
    const [challenge = '', ...others] = challengesFor(code, members)
    expect(others).toEqual([])
    expect(challenge).toMatch(expected)
    expect(challenge).toContain(METADATA)
  })

  test('has no metadata and no nonce where there are none', () => {
    const answer = describeDenial('token_invalid', {}, { requestId: 'r1', metadataUrl: null, nonce: null })
    expect(valuesOf(answer, 'www-authenticate')).toEqual(['Bearer error="invalid_token"'])
    expect(valuesOf(answer, 'dpop-nonce')).toEqual([])
  })
})

test('lists the methods of a path, and details only where they were given', () => {
  const answer = describeDenial('method_unsupported', { allow: ['GET', 'HEAD'], detail: 'why' }, CONTEXT)
  expect([valuesOf(answer, 'allow'), JSON.parse(answer.body).detail]).toEqual([['GET, HEAD'], 'why'])
  expect(JSON.parse(describeDenial('permission_denied', {}, CONTEXT).body)).not.toHaveProperty('detail')
  const paid = JSON.parse(describeDenial('entitlement_required', { entitlement: 'feature.x' }, CONTEXT).body)
  expect(paid.entitlement).toBe('feature.x')
})
