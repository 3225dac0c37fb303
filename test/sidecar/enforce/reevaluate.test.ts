/** Tables of `reevaluate()`: an open exchange under changed rules. */
import { describe, expect, test } from 'vitest'
import { reevaluate } from '../../../sidecar/enforce/reevaluate.ts'
import type { PdpAnswer } from '../../../sidecar/pdp-client/question.ts'
import { ALLOW, BOUND, type Case, depsFor, NOW_MS, run, tokenError } from '../support/enforcing.ts'

const ORIGIN = { address: '192.0.2.1', scheme: 'https', host: null, fault: null } as const

describe('by changed rules, an open exchange', () => {
  async function changed(next: Case, first: Case = {}, upgrade = false) {
    const { outcome } = await run(first)
    if (outcome.kind !== 'permit') throw new Error('the first rules must permit')
    let proofs = 0
    const deps = depsFor(next, [], () => {
      proofs += 1
    })
    return { result: await reevaluate(outcome, { upgrade, origin: ORIGIN }, deps), proofs }
  }
  const VIEWER = 'GET /docs/{id}: viewer doc:{id}'
  test.each<[string, string, Case, Case, boolean]>([
    ['without its route', 'route_unknown', { routes: 'GET /x: public' }, {}, false],
    ['without its method', 'method_unsupported', { routes: 'PUT /docs/{id}: public' }, {}, false],
    ['that takes no WebSocket', 'route_unknown', { routes: VIEWER }, {}, true],
    ['whose token is not trusted now', 'token_invalid', { token: tokenError('token_invalid') }, {}, false],
    ['whose body was not kept', 'request_invalid', { routes: 'GET /docs/{id}: viewer doc:{body.id}' }, {}, false],
    [
      'that was public, without a proof',
      'proof_missing',
      { ...BOUND, proof: tokenError('proof_missing'), routes: 'GET /public: viewer doc:1' },
      { ...BOUND, line: 'GET /public' },
      false,
    ],
  ])('is denied %s: %s', async (_name, code, next, first, upgrade) => {
    expect((await changed(next, first, upgrade)).result).toEqual({ kind: 'denied', code })
  })

  test('does not need its proof a second time', async () => {
    const { result, proofs } = await changed({ ...BOUND, proof: tokenError('proof_replayed') }, BOUND)
    expect(result).toMatchObject({ kind: 'permitted', basis: { question: { subject: 'alice' } } })
    expect(proofs).toBe(0)
  })

  test.each([
    ['public', { routes: 'GET /docs/{id}: public' }],
    ['shadowed', { shadow: true }],
    ['shadowed, and the token not trusted now', { shadow: true, token: tokenError('token_invalid') }],
  ])('rests on nothing when its route is now %s', async (_name, next) => {
    expect((await changed(next)).result).toEqual({ kind: 'permitted', basis: null })
  })

  const STRONG = 'GET /docs/{id}: {check: "viewer doc:{id}", step_up: {acr_values: [strong]}}'
  const weak: PdpAnswer = { ...ALLOW, signIn: { acr: 'weak', authTime: null } }
  const evaluateOf = async (next: Case, first: Case = {}) => {
    const { result } = await changed(next, first)
    return result.kind === 'permitted' && result.basis !== null ? result.basis.evaluate : () => 'no basis'
  }

  test('must satisfy a new rule of step-up with the next answer, and with no later one', async () => {
    const evaluate = await evaluateOf({ routes: STRONG })
    expect(evaluate(weak)).toBe('step_up_required')
    expect(evaluate(weak)).toBe('step_up_required')
    expect(evaluate(ALLOW)).toBeNull()
    expect(evaluate(weak)).toBeNull()
  })

  test('does not satisfy an unchanged rule of step-up again', async () => {
    const evaluate = await evaluateOf({ routes: STRONG }, { routes: STRONG })
    expect(evaluate(weak)).toBeNull()
  })

  test('ends with its token, as before', async () => {
    const { result } = await changed({ claims: { exp: NOW_MS / 1_000 + 42 } })
    expect(result).toMatchObject({ basis: { expiresAtMs: NOW_MS + 42_000 } })
  })
})
