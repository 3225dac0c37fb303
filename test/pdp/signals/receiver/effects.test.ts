/** Which tokens a security event ends: those of its issuer that its subject names and that were issued before it. */
import { describe, expect, test } from 'vitest'
import { RevokedTokens } from '../../../../pdp/engine/store/cache/revoked-tokens.ts'
import { revocationKey } from '../../../../pdp/shared/domain/revocation.ts'
import { readIssuerClaims } from '../../../../pdp/shared/token/issuer-claims.ts'
import { effectsOf } from '../../../../pdp/signals/receiver/effects.ts'
import { externalKeys } from '../../../../pdp/signals/receiver/registration.ts'
import { SetError } from '../../../../pdp/signals/set/errors.ts'
import { CAEP_EVENTS, RISC_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { parseSetClaims } from '../../../../pdp/signals/set/set.ts'

const ISSUER = 'https://idp.example'
const NOW_S = 1_800_000_000
const AT_S = NOW_S - 10

const user = (sub: string, iss = ISSUER) => ({ format: 'iss_sub', iss, sub })
const inSession = (id: string, sub = 'ann') => ({
  format: 'complex',
  user: user(sub),
  session: { format: 'opaque', id },
})

function effects(type: string, subject: object, members: object = { event_timestamp: AT_S }, claims: object = {}) {
  const payload = {
    ...{ iss: ISSUER, aud: 'us', iat: NOW_S, jti: 'j', sub_id: subject, events: { [type]: members } },
    ...claims,
  }
  return effectsOf(parseSetClaims(payload), { issuer: ISSUER, nowMs: NOW_S * 1_000 })
}

/** Whether a token of these claims is dead after the event. */
function isDead(token: object, ...event: Parameters<typeof effects>): boolean {
  const claims = readIssuerClaims(
    Object.assign(Object.create(null), {
      ...{ iss: ISSUER, aud: 'orders', sub: 'ann', client_id: 'web', jti: 't', iat: AT_S - 5, exp: NOW_S + 300 },
      ...token,
    }),
    {
      audience: 'orders',
      subject_prefix: 'p:',
      organizations: ['acme'],
      claims: { subject: 'oid' in token ? 'oid' : 'sub' },
    },
    'digest',
  )
  const log = new RevokedTokens(
    (effects(...event) ?? []).map(({ by, id, issuedUntilMs }) => ({
      ...{ key: revocationKey(by, id), atMs: NOW_S * 1_000 },
      ...(issuedUntilMs !== undefined && { issuedUntilMs }),
    })),
  )
  return externalKeys(claims).some((key) => log.revokes(key, claims.issuedAtMs))
}
const REVOKED = CAEP_EVENTS.sessionRevoked

describe('a token is dead', () => {
  test.each([
    ['by all sessions of its person', {}, user('ann')],
    ['by all sessions of its person as Keycloak names them', { sid: 's1' }, inSession('ALL')],
    ['by its person in a complex subject', {}, { format: 'complex', user: user('ann') }],
    [
      'by its person, beside a device in a format of the vendor',
      {},
      { format: 'complex', user: user('ann'), device: { format: 'urn:vendor:serial', serial: '1' } },
    ],
    [
      'by its person, where the session is named in a format of the vendor',
      { sid: 's1' },
      { format: 'complex', user: user('ann'), session: { format: 'urn:vendor:session', id: 's9' } },
    ],
    [
      'by its person on a device that it does not name',
      {},
      { format: 'complex', user: user('ann'), device: { format: 'opaque', id: 'd' } },
    ],
    ['by its session', { sid: 's1' }, inSession('s1')],
    ['by its session alone', { sid: 's1' }, { format: 'complex', session: { format: 'opaque', id: 's1' } }],
    ['by its session as an opaque subject', { sid: 's1' }, { format: 'opaque', id: 's1' }],
    ['by any session of its person, if it names none', {}, inSession('s1')],
    [
      'by a session of its person that is named in another way',
      { sid: 's1' },
      {
        format: 'complex',
        user: user('ann'),
        session: { format: 'saml_assertion_id', issuer: 'x', assertion_id: 'y' },
      },
    ],
    [
      'by its e-mail address, in whatever case',
      { email: 'Ann@Example.com' },
      { format: 'email', email: 'ann@EXAMPLE.com' },
    ],
    [
      'by a session of its e-mail address, if it names none',
      { email: 'ann@example.com' },
      {
        format: 'complex',
        user: { format: 'email', email: 'ann@example.com' },
        session: { format: 'opaque', id: 's1' },
      },
    ],
    ['by its own id', { jti: 't1' }, { format: 'jwt_id', iss: ISSUER, jti: 't1' }],
    [
      'by one of several names',
      {},
      { format: 'aliases', identifiers: [{ format: 'phone_number', phone_number: '+12065550100' }, user('ann')] },
    ],
    ['by the claim that names our subject', { oid: 'o1', sub: 'pairwise' }, user('o1')],
    ['by its sub, though another claim names our subject', { oid: 'o1', sub: 'pairwise' }, user('pairwise')],
  ])('%s', (_, token, subject) => {
    expect(isDead(token, REVOKED, subject)).toBe(true)
  })

  test.each([
    CAEP_EVENTS.credentialChange,
    RISC_EVENTS.accountDisabled,
    RISC_EVENTS.accountPurged,
    RISC_EVENTS.sessionsRevoked,
    RISC_EVENTS.credentialCompromise,
  ])('of whatever session by %s', (type) => {
    expect(isDead({ sid: 's2' }, type, inSession('s1'))).toBe(true)
  })
})

describe('an event is refused, not acknowledged, that names its user in a format that is not known', () => {
  const vendor = { format: 'urn:vendor:account', id: 'ann' }
  test.each([
    ['beside its session', { user: vendor, session: { format: 'opaque', id: 's1' } }],
    ['beside all sessions', { user: vendor, session: { format: 'opaque', id: 'ALL' } }],
    ['beside a tenant', { user: vendor, tenant: { format: 'opaque', id: 'acme' } }],
    ['alone', { user: { ...user('ann'), format: 'iss-sub' } }],
    ['without members', { user: { format: 'iss-sub' } }],
  ])('%s', (_, parts) => {
    const refusal = new SetError('invalid_request', 'sub_id.user.format is not a known format')
    expect(() => effects(REVOKED, { format: 'complex', ...parts })).toThrow(refusal)
  })
})

describe('a token lives on', () => {
  test.each([
    ['when another person is meant', {}, user('bob')],
    ['when a namesake at another issuer is meant', {}, user('ann', 'https://other.example')],
    ['when another session of its person ended', { sid: 's2' }, inSession('s1')],
    ['when another address is meant', { email: 'ann@example.com' }, { format: 'email', email: 'bob@example.com' }],
    ['when another token is meant', { jti: 't1' }, { format: 'jwt_id', iss: ISSUER, jti: 't2' }],
    [
      'when a token of that id at another issuer is meant',
      { jti: 't1' },
      { format: 'jwt_id', iss: 'https://other.example', jti: 't1' },
    ],
    ['when only a tenant is named', {}, { format: 'complex', tenant: { format: 'opaque', id: 'ann' } }],
    ['when a name in another claim happens to be the same', { sid: 'ann', sub: 'bob' }, user('ann')],
    ['when it was issued after the event', { iat: AT_S + 1 }, user('ann')],
  ])('%s', (_, token, subject) => {
    expect(isDead(token, REVOKED, subject)).toBe(false)
  })

  test.each([
    CAEP_EVENTS.tokenClaimsChange,
    CAEP_EVENTS.sessionEstablished,
    CAEP_EVENTS.assuranceLevelChange,
    RISC_EVENTS.accountEnabled,
    'https://events.example/lunch',
  ])('by %s, from which nothing follows', (type) => {
    expect(effects(type, user('ann'))).toBeNull()
  })
})

describe('the moment of an event', () => {
  const until = (members: object, claims: object = {}) =>
    effects(REVOKED, user('ann'), members, claims)?.[0]?.issuedUntilMs

  test.each([
    ['event_timestamp, to the end of its second', { event_timestamp: AT_S }, {}, AT_S * 1_000 + 999],
    ['toe, without it', {}, { toe: AT_S }, AT_S * 1_000 + 999],
    ['iat, without either', {}, {}, NOW_S * 1_000 + 999],
    ['iat, when event_timestamp is no time', { event_timestamp: 'yesterday' }, {}, NOW_S * 1_000 + 999],
    ['iat, when event_timestamp is negative', { event_timestamp: -5 }, {}, NOW_S * 1_000 + 999],
    [
      'a minute from now at most, such as for milliseconds',
      { event_timestamp: AT_S * 1_000 },
      {},
      NOW_S * 1_000 + 60_000,
    ],
  ])('is %s', (_, members, claims, expected) => {
    expect(until(members, claims)).toBe(expected)
  })

  test('does not matter for a session: whatever names it is dead', () => {
    expect(isDead({ sid: 's1', iat: NOW_S }, REVOKED, inSession('s1'))).toBe(true)
  })
})
