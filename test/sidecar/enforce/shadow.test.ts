/** Tables of `enforce()` on routes in shadow mode: which denials it only records. */
import { describe, expect, test } from 'vitest'
import { denialStatus, isShadowed } from '../../../sidecar/enforce/denial-response.ts'
import { PdpUnavailable } from '../../../sidecar/request/errors.ts'
import { BOUND, type Case, DENIED, run, tokenError } from '../support/enforcing.ts'

describe('on a route in shadow mode, enforce()', () => {
  const REPLACED = new Set([401, 403, 503])
  test('replaces denials of 401, 403 and 503, except for load and draining', () => {
    for (const [, , code] of DENIED as readonly (readonly [string, Case, Parameters<typeof isShadowed>[0], unknown])[])
      expect([code, isShadowed(code)]).toEqual([code, REPLACED.has(denialStatus(code)) && code !== 'busy'])
    expect([isShadowed('busy'), isShadowed('draining'), isShadowed('internal')]).toEqual([false, false, false])
  })

  test.each(DENIED.filter(([, one, , [routed]]) => routed && !/public|open-socket/.test(one.line ?? '')))(
    'forwards or denies by the table: %s',
    async (_name, one, code) => {
      const { outcome } = await run({ ...one, shadow: true })
      if (isShadowed(code as Parameters<typeof isShadowed>[0]))
        expect(outcome).toMatchObject({ kind: 'permit', basis: null, shadowed: { kind: 'denial', code } })
      else expect(outcome).toMatchObject({ kind: 'denial', code })
    },
  )

  test.each<[string, Case, string | null]>([
    ['no identity without a token', { authorization: null }, null],
    ['no identity of a token that is not verified', { token: tokenError('token_invalid') }, null],
    ['no identity without a proof', { ...BOUND, proof: tokenError('proof_missing') }, null],
    ['no identity of a revoked token', { pdp: { active: false } }, null],
    ['the identity of a denied sender', { pdp: { permissions: ['denied'] } }, 'alice'],
    ['the identity while no PDP answers', { pdp: new PdpUnavailable('none') }, 'alice'],
    ['the identity of an allowed sender', {}, 'alice'],
  ])('forwards %s', async (_name, one, subject) => {
    const { outcome } = await run({ ...one, shadow: true })
    expect(outcome.kind === 'permit' && (outcome.identity?.subject ?? null)).toBe(subject)
    expect(outcome).toMatchObject({ basis: null })
  })

  test.each([
    ['a user', {}, 'user'],
    ['a service, whose subject is its client', { claims: { sub: 'c1' } }, 'service'],
  ])('names %s as such while no PDP answers', async (_name, one, subjectType) => {
    const { outcome } = await run({ ...one, pdp: new PdpUnavailable('none'), shadow: true })
    expect(outcome).toMatchObject({ identity: { subjectType } })
  })

  test('keeps the body that it has read, also when the request is denied', async () => {
    const one = { line: 'POST /docs', body: '{"id":"7"}', pdp: { permissions: ['denied'] }, shadow: true } as const
    expect((await run(one)).outcome).toMatchObject({ kind: 'permit', body: Buffer.from('{"id":"7"}') })
  })
})
