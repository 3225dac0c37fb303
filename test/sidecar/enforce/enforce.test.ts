/** Tables of `enforce()` with fake dependencies: the outcome of each stage of a request. */
import { describe, expect, test } from 'vitest'
import { TOKEN_ERROR_CODES, TokenError, type TokenErrorCode } from '../../../pdp/shared/token/errors.ts'
import { NO_ADMISSION } from '../../../sidecar/enforce/admission.ts'
import { PdpUnavailable } from '../../../sidecar/request/errors.ts'
import { ALLOW, BOUND, busy, type Case, DENIED, NOW_MS, run, tokenError } from '../support/enforcing.ts'

describe('enforce() denies', () => {
  test.each(DENIED)('%s', async (_name, one, code, reached) => {
    const { outcome, asked } = await run(one)
    expect(outcome).toMatchObject({ kind: 'denial', code })
    if (outcome.kind !== 'denial') return
    expect([outcome.route !== null, outcome.subject === 'alice', asked.length === 1]).toEqual(reached)
  })

  test('with each code of a token error', () => {
    const errors = DENIED.flatMap(([, { token, proof }]) => [token, proof]).filter((err) => err instanceof TokenError)
    const others: TokenErrorCode[] = ['token_missing', 'authorization_invalid']
    expect(new Set([...errors.map(({ code }) => code), ...others])).toEqual(new Set(TOKEN_ERROR_CODES))
  })

  test.each([
    ['Bearer', {}, 'token_invalid'],
    ['DPoP', { authorization: 'DPoP t' }, 'token_invalid'],
  ])('with a %s challenge when the token is not verified', async (scheme, one, code) => {
    const { outcome } = await run({ ...one, token: tokenError('token_invalid') })
    expect(outcome).toMatchObject({ code, members: { scheme } })
  })

  test.each<[string, Case]>([
    ['of the client', { arrive: busy }],
    ['of a public route', { line: 'GET /public', enter: busy }],
    ['of the subject', { enter: busy }],
    ['that ask the PDP', { turn: busy }],
  ])('too many requests %s, after a wait for a place, and asks nobody', async (_name, one) => {
    const { outcome, asked, endedTurns } = await run({ ...one, later: true })
    expect([outcome, asked, endedTurns]).toMatchObject([{ kind: 'denial', code: 'busy' }, [], 0])
  })

  test.each<[string, Case]>([
    ['an answer', {}],
    ['an answer that denies', { pdp: { permissions: ['denied'] } }],
    ['no answer', { pdp: new PdpUnavailable('silent') }],
  ])('or permits, and gives the turn at the PDP back, with %s', async (_name, one) => {
    expect((await run(one)).endedTurns).toBe(1)
  })

  const NAMED = { acr: 'strong', auth_time: NOW_MS / 1_000 }
  const WEAK = { signIn: { acr: 'weak', authTime: null } }
  test.each<[string, Case]>([
    ['a token of ours, whatever it says of its sign-in', { claims: NAMED, pdp: WEAK }],
    ['a token of an external issuer, whatever the PDP knows', { external: true }],
  ])('for a weak sign-in %s', async (_name, one) => {
    expect((await run({ ...one, line: 'GET /strong' })).outcome).toMatchObject({ code: 'step_up_required' })
  })

  test('not a token of an external issuer that names a strong sign-in', async () => {
    const one = { line: 'GET /strong', external: true, claims: NAMED, pdp: WEAK }
    expect((await run(one)).outcome).toMatchObject({ kind: 'permit' })
  })

  test('with a DPoP challenge a bound token that was sent as a bearer token', async () => {
    const { outcome } = await run({ ...BOUND, authorization: 'Bearer t' })
    expect(outcome).toMatchObject({ members: { scheme: 'DPoP' } })
  })

  test('with the hint of a wrong clock only where times are compared', async () => {
    const clockHint = 'this clock is behind'
    const timed = await run({ token: tokenError('token_expired'), clockHint })
    expect(timed.outcome).toMatchObject({ members: { detail: clockHint } })
    const other = await run({ token: tokenError('keys_unavailable'), clockHint })
    expect(JSON.stringify(other.outcome)).not.toContain(clockHint)
  })
})

describe('enforce() permits', () => {
  test('a public route without a token and without identity', async () => {
    const { outcome, asked } = await run({ line: 'GET /public', token: tokenError('token_invalid') })
    expect(outcome).toMatchObject({ kind: 'permit', identity: null, basis: null, body: null, shadowed: null })
    expect(asked).toEqual([])
  })

  test.each([
    ['a bearer token', {}, []],
    ['a bound token with its proof for the URL without its query', BOUND, ['https://app.test/docs/1']],
  ])('%s', async (_name, one, proofs) => {
    const permitted = await run({ ...one, line: 'GET /docs/1?page=2', pdp: { subjectType: 'service' } })
    const identity = { subject: 'alice', subjectType: 'service', organization: 'acme', client: 'c1' }
    expect(permitted.outcome).toMatchObject({ kind: 'permit', identity, shadowed: null })
    expect(permitted.proofs).toEqual(proofs)
    expect(permitted.asked).toMatchObject([
      { token: 't', digest: 'digest', subject: 'alice', organization: 'acme', permissions: [{ resource: 'doc:1' }] },
    ])
    // For the PDP's decision log.
    expect(permitted.asked.map(({ clientAddress }) => clientAddress)).toEqual(['192.0.2.1'])
    expect(permitted.asked.map(({ route }) => route)).toEqual(['GET /docs/{id}'])
  })

  test('until the token expires', async () => {
    const { outcome } = await run({ claims: { exp: NOW_MS / 1_000 + 42 } })
    expect(outcome).toMatchObject({ basis: { expiresAtMs: NOW_MS + 42_000 } })
  })

  test('an exchange whose later answers need no fresh sign-in, because its age counts only at the beginning', async () => {
    const { outcome } = await run({ line: 'GET /strong' })
    const evaluate = outcome.kind === 'permit' ? outcome.basis?.evaluate : undefined
    expect(evaluate?.({ ...ALLOW, signIn: { acr: null, authTime: null } })).toBeNull()
    expect(evaluate?.({ ...ALLOW, permissions: ['denied'] })).toBe('permission_denied')
    expect(evaluate?.({ ...ALLOW, active: false })).toBe('token_invalid')
  })

  test('a body that was read, and keeps it', async () => {
    const { outcome } = await run({ line: 'POST /docs', body: '{"id":"7"}' })
    expect(outcome).toMatchObject({ kind: 'permit', body: Buffer.from('{"id":"7"}') })
  })
})

test.each([
  ['OPTIONS /docs/1', { kind: 'options', allow: ['GET', 'HEAD', 'OPTIONS'], fields: [] }],
  ['GET /.well-known/oauth-protected-resource', { kind: 'metadata' }],
])('enforce() answers %s by itself, without a token', async (line, outcome) => {
  expect((await run({ line, authorization: null })).outcome).toEqual(outcome)
})

test('an imagined request takes no place', () => {
  expect([NO_ADMISSION.arrive(), NO_ADMISSION.enter({ id: 'r', upstream: null }, null)]).toEqual([null, null])
})
