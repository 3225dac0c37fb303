import { expect, test } from 'vitest'
import { SET_ERROR_CODES, SetError } from '../../../../pdp/signals/set/errors.ts'
import { CAEP_EVENTS, entitlementUpdated, RISC_EVENTS, STREAM_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { parseSet, parseSetClaims, SET_MEDIA_TYPE, SET_TYPE, type SetClaims } from '../../../../pdp/signals/set/set.ts'

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const HEADER = { typ: SET_TYPE, alg: 'RS256', kid: 'k' }
const jwt = (payload: object, header: object = HEADER): string => `${part(header)}.${part(payload)}.c2ln`
const claimsIn = (text: string): SetClaims => parseSetClaims(parseSet(text).payload)

// The shape of the example in CAEP 1.0 section 3.1.2.
const CLAIMS = {
  iss: 'https://idp.example.com/123456789/',
  jti: '24c63fb56e5a2d77a6b512616ca9fa24',
  iat: 1615305159,
  aud: 'https://sp.example.com/caep',
  txn: '8675309',
  sub_id: { format: 'opaque', id: 'dMTlD|1600802906337.16|16008.16' },
  events: { [CAEP_EVENTS.sessionRevoked]: { event_timestamp: 1615304991 } },
}

test('reads the claims of a session-revoked event', () => {
  expect(claimsIn(jwt(CLAIMS))).toMatchObject({
    iss: CLAIMS.iss,
    aud: [CLAIMS.aud],
    iat: CLAIMS.iat,
    jti: CLAIMS.jti,
    txn: CLAIMS.txn,
    toe: null,
    subject: CLAIMS.sub_id,
    event: { type: CAEP_EVENTS.sessionRevoked, members: { event_timestamp: 1615304991 } },
  })
})

test('reads the verification event of SSF with its state', () => {
  const state = 'VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo='
  const { event } = claimsIn(jwt({ ...CLAIMS, txn: undefined, events: { [STREAM_EVENTS.verification]: { state } } }))
  expect(event).toMatchObject({ type: STREAM_EVENTS.verification, members: { state } })
})

test.each(['application/secevent+jwt', 'SecEvent+JWT'])('takes typ %s, which is the same media type', (typ) => {
  expect(claimsIn(jwt(CLAIMS, { ...HEADER, typ })).jti).toBe(CLAIMS.jti)
})

test.each(['at+jwt', 'JWT', 'dpop+jwt', 'logout+jwt', 'token-introspection+jwt', 'secevent', 7, undefined])(
  'refuses typ %s',
  (typ) => expect(() => parseSet(jwt(CLAIMS, { ...HEADER, typ }))).toThrow('header typ is not secevent+jwt'),
)

test.each([
  [{ exp: CLAIMS.iat + 60 }, 'a SET must not have the claim exp'],
  [{ sub: 'alice' }, 'a SET must not have the claim sub'],
  [{ iss: undefined }, 'claim iss is missing or malformed'],
  [{ iss: '' }, 'claim iss is missing or malformed'],
  [{ iss: ['a'] }, 'claim iss is missing or malformed'],
  [{ aud: undefined }, 'claim aud is missing or malformed'],
  [{ aud: [] }, 'claim aud is missing or malformed'],
  [{ aud: ['a', 7] }, 'claim aud is missing or malformed'],
  [{ aud: Array(17).fill('a') }, 'claim aud is missing or malformed'],
  [{ iat: undefined }, 'claim iat is missing or malformed'],
  [{ iat: '1615305159' }, 'claim iat is missing or malformed'],
  [{ iat: -1 }, 'claim iat is missing or malformed'],
  [{ jti: undefined }, 'claim jti is missing or malformed'],
  [{ jti: 'j'.repeat(513) }, 'claim jti is missing or malformed'],
  [{ jti: '\0' }, 'claim jti is missing or malformed'],
  [{ txn: 8675309 }, 'claim txn is missing or malformed'],
  [{ toe: 'now' }, 'claim toe is missing or malformed'],
  [{ sub_id: undefined }, 'sub_id is not a JSON object'],
  [{ events: undefined }, 'events has not exactly one member'],
  [{ events: {} }, 'events has not exactly one member'],
  [{ events: [] }, 'events has not exactly one member'],
  [{ events: { 'urn:a': {}, 'urn:b': {} } }, 'events has not exactly one member'],
  [{ events: { 'not a uri': {} } }, 'the name of the event is not a URI'],
  [{ events: { 'urn:a': null } }, 'the event is not a JSON object'],
  [{ events: { 'urn:a': [] } }, 'the event is not a JSON object'],
])('refuses a SET with %j', (change, message) => {
  expect(() => claimsIn(jwt({ ...CLAIMS, ...change }))).toThrow(new SetError('invalid_request', message))
})

test.each([
  '',
  'a.b',
  `${jwt(CLAIMS)}.x`,
  jwt(CLAIMS, { ...HEADER, crit: ['b64'] }),
  ` ${jwt(CLAIMS)}`,
  'x'.repeat(70_000),
])('refuses a text that is not a compact JWS, or that uses extensions', (text) =>
  expect(() => parseSet(text)).toThrow('the SET is not a compact JWS (RFC 7515), or uses extensions'),
)

test('names are those of the specifications', () => {
  expect(SET_MEDIA_TYPE).toBe('application/secevent+jwt')
  expect(CAEP_EVENTS.credentialChange).toBe('https://schemas.openid.net/secevent/caep/event-type/credential-change')
  expect(STREAM_EVENTS.streamUpdated).toBe('https://schemas.openid.net/secevent/ssf/event-type/stream-updated')
  expect(RISC_EVENTS.accountDisabled).toBe('https://schemas.openid.net/secevent/risc/event-type/account-disabled')
  expect(entitlementUpdated('https://pdp.example/')).toBe('https://pdp.example/events/entitlement-updated')
  expect(SET_ERROR_CODES).toContain('invalid_state')
})
