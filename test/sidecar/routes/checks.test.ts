/** Checks as a table: which questions a route asks, and how the PDP's results decide. */
import { describe, expect, test } from 'vitest'
import type { PdpAnswer } from '../../../sidecar/pdp-client/question.ts'
import {
  buildQuestions,
  type Check,
  type CheckValues,
  describeQuestions,
  usesBody,
} from '../../../sidecar/routes/checks.ts'
import type { Source } from '../../../sidecar/routes/template.ts'

const CLAIM: Source = { from: 'claims', name: 'tenant' }
const BODY: Source = { from: 'body', path: ['org'], parts: ['org'] }
const VALUES: CheckValues = {
  read: (source) => (source === CLAIM ? 't1' : null),
  readTyped: (source) => (source.from === 'body' ? 'b1' : null),
  claim: (name) => (name === 'tenant' ? 't1' : undefined),
  fill: (template) => (template.includes(CLAIM) ? null : template.join('')),
  scopes: new Set(['docs:read']),
  organization: 'acme',
  isGuest: false,
}
const viewer = (id: string): Check => ({ kind: 'relation', relation: 'viewer', type: 'doc', id: [id] })
const paid: Check = { kind: 'entitlement', key: 'feature.docs' }
const key: Check = { kind: 'permission', key: 'docs:approve' }
const all = (...of: Check[]): Check => ({ kind: 'all', of })
const any = (...of: Check[]): Check => ({ kind: 'any', of })
const plain = (check: Check) => ({ check, context: [] })
type Result = PdpAnswer['permissions'][number]

function answer(permissions: readonly Result[], entitlements: readonly [string, boolean][] = []): PdpAnswer {
  const signIn = { acr: null, authTime: null }
  return {
    active: true,
    subjectType: 'user',
    permissions,
    reasons: [],
    entitlements: new Map(entitlements),
    revision: '',
    signIn,
  }
}
const outcome = (check: Check, given: PdpAnswer, values = VALUES): string =>
  buildQuestions(plain(check), values).evaluate(given)?.code ?? 'allowed'

describe('the questions of a check', () => {
  test.each<[string, Check, readonly string[]]>([
    ['a relation', viewer('1'), ['viewer doc:1']],
    ['a permission on the organization of the token', key, ['docs:approve organization:acme']],
    ['an entitlement', paid, ['entitlement feature.docs']],
    [
      'the same relation twice, asked once',
      all(viewer('1'), any(viewer('1'), viewer('2'))),
      ['viewer doc:1', 'viewer doc:2'],
    ],
    ['the same entitlement twice, asked once', all(paid, paid), ['entitlement feature.docs']],
    ['a scope, which the token answers', { kind: 'scope', name: 'docs:read' }, []],
    ['an equal claim, which the token answers', { kind: 'equals', source: CLAIM, value: 't1' }, []],
    ['a missing claim, which denies', { kind: 'relation', relation: 'viewer', type: 'doc', id: [CLAIM] }, []],
  ])('%s', (_name, check, asked) => {
    expect(describeQuestions(buildQuestions(plain(check), VALUES))).toEqual(asked)
  })

  test('a permission is not asked without an organization, and denies', () => {
    const values = { ...VALUES, organization: null }
    expect(describeQuestions(buildQuestions(plain(key), values))).toEqual([])
    expect(outcome(key, answer(['allowed']), values)).toBe('permission_denied')
  })

  test.each<[string, Check, boolean]>([
    ['of a relation', { kind: 'relation', relation: 'viewer', type: 'doc', id: [BODY] }, true],
    ['of a comparison', { kind: 'equals', source: BODY, value: 'x' }, true],
    ['of a part', any(viewer('1'), all({ kind: 'equals', source: BODY, value: 'x' })), true],
    ['of nothing', all(viewer('1'), paid, key), false],
  ])('need the body %s: %#', (_name, check, needed) => {
    expect(usesBody(plain(check))).toBe(needed)
  })
})

describe('the results decide', () => {
  const two = (combine: typeof all, ...results: Result[]) => outcome(combine(viewer('1'), viewer('2')), answer(results))
  test.each<[typeof all, readonly Result[], string]>([
    [all, ['allowed', 'allowed'], 'allowed'],
    [all, ['allowed', 'denied'], 'permission_denied'],
    [all, ['denied', 'allowed'], 'permission_denied'],
    [all, ['allowed', 'undecided'], 'pdp_unavailable'],
    [all, ['undecided', 'denied'], 'permission_denied'],
    [all, ['allowed'], 'pdp_unavailable'],
    [any, ['denied', 'allowed'], 'allowed'],
    [any, ['undecided', 'allowed'], 'allowed'],
    [any, ['denied', 'denied'], 'permission_denied'],
    [any, ['denied', 'undecided'], 'pdp_unavailable'],
    [any, ['undecided', 'denied'], 'pdp_unavailable'],
    [any, [], 'pdp_unavailable'],
    [all, ['allowed', 'condition_failed'], 'condition_failed'],
    [all, ['evaluation_limit', 'allowed'], 'evaluation_limit'],
    [all, ['condition_failed', 'denied'], 'permission_denied'],
    [any, ['condition_failed', 'allowed'], 'allowed'],
    [any, ['denied', 'condition_failed'], 'condition_failed'],
    [any, ['evaluation_limit', 'denied'], 'evaluation_limit'],
  ])('%o of %j: %s', (combine, results, expected) => {
    expect(two(combine, ...results)).toBe(expected)
  })

  test.each<[string, Check, PdpAnswer, string]>([
    ['an entitlement that is true', paid, answer([], [['feature.docs', true]]), 'allowed'],
    ['an entitlement that is false', paid, answer([], [['feature.docs', false]]), 'entitlement_required'],
    ['an entitlement that is missing', paid, answer([]), 'entitlement_required'],
    ['another entitlement', paid, answer([], [['feature.other', true]]), 'entitlement_required'],
    ['a scope of the token', { kind: 'scope', name: 'docs:read' }, answer([]), 'allowed'],
    ['a scope that the token lacks', { kind: 'scope', name: 'docs:write' }, answer([]), 'scope_insufficient'],
    ['a part of a scope', { kind: 'scope', name: 'docs' }, answer([]), 'scope_insufficient'],
    ['another value of a claim', { kind: 'equals', source: CLAIM, value: 't2' }, answer([]), 'permission_denied'],
    ['a missing value', { kind: 'equals', source: BODY, value: 'x' }, answer([]), 'permission_denied'],
    ['no check of all', all(), answer([]), 'allowed'],
    ['no check of any', any(), answer([]), 'permission_denied'],
    [
      'a missing claim beside an allow',
      all({ kind: 'relation', relation: 'viewer', type: 'doc', id: [CLAIM] }, viewer('1')),
      answer(['allowed']),
      'permission_denied',
    ],
    [
      'a denial before an undecided scope',
      all({ kind: 'scope', name: 'x' }, viewer('1')),
      answer(['undecided']),
      'scope_insufficient',
    ],
  ])('%s', (_name, check, given, expected) => {
    expect(outcome(check, given)).toBe(expected)
  })

  test('with each check its own result', () => {
    const check = all(viewer('1'), viewer('2'), key)
    expect(buildQuestions(plain(check), VALUES).evaluate(answer(['allowed', 'denied', 'allowed']))).toEqual({
      code: 'permission_denied',
      check: 'viewer doc:2',
      question: { relation: 'viewer', resource: 'doc:2' },
    })
  })
})
