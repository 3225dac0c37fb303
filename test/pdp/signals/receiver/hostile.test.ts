/** What a transmitter, or somebody in its name, cannot do: each of these SETs leaves the token log as it is. */
import { type CryptoKey, generateKeyPair, UnsecuredJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { CAEP_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { sendRaw } from '../../../support/peers/raw-http.ts'
import { openReceiver, type ReceiverWorld } from './world.ts'

const OTHER = 'https://other-idp.example'
const DAY_S = 86_400
let world: ReceiverWorld
let foreignKey: CryptoKey
const now = (): number => Math.floor(Date.now() / 1_000)
beforeAll(async () => {
  foreignKey = (await generateKeyPair('RS256')).privateKey
  world = await openReceiver()
  await world.connect({ delivery: 'push' })
})
afterAll(() => world.close())
afterEach(async () => {
  expect(await world.ended()).toEqual([])
})

const revoked = (
  claims: object = {},
  subject: object = { format: 'iss_sub', iss: world.transmitter.issuer, sub: 'ann' },
) => ({
  ...world.transmitter.claims(CAEP_EVENTS.sessionRevoked, { ...subject }, { event_timestamp: now() }),
  ...claims,
})
const session = { 'https://schemas.openid.net/secevent/caep/event-type/session-revoked': {} }

describe('a pushed SET is refused with 400', () => {
  test.each([
    ['the type of an access token', 'invalid_request', {}, { typ: 'at+jwt' }],
    ['the type JWT', 'invalid_request', {}, { typ: 'JWT' }],
    ['no type', 'invalid_request', {}, { typ: undefined }],
    ['an extension that it demands', 'invalid_request', {}, { crit: ['b64'], b64: true }],
    ['a key that nobody has', 'invalid_key', {}, { kid: 'unknown' }],
    ['another issuer', 'invalid_issuer', { iss: OTHER }, {}],
    ['no issuer', 'invalid_issuer', { iss: undefined }, {}],
    ['a list of issuers', 'invalid_issuer', { iss: ['x'] }, {}],
    ['the audience of another receiver', 'invalid_audience', { aud: 'https://somebody.example' }, {}],
    ['no audience', 'invalid_audience', { aud: undefined }, {}],
    ['an exp', 'invalid_request', { exp: now() + 300 }, {}],
    ['a sub', 'invalid_request', { sub: 'ann' }, {}],
    ['two events', 'invalid_request', { events: { ...session, 'https://events.example/lunch': {} } }, {}],
    ['no event', 'invalid_request', { events: {} }, {}],
    ['events that are a list', 'invalid_request', { events: [session] }, {}],
    ['an event that is no object', 'invalid_request', { events: { 'https://events.example/lunch': true } }, {}],
    ['no jti', 'invalid_request', { jti: undefined }, {}],
    ['an empty jti', 'invalid_request', { jti: '' }, {}],
    ['no iat', 'invalid_request', { iat: undefined }, {}],
    ['an old iat', 'invalid_request', { iat: now() - 8 * DAY_S }, {}],
    ['an iat in the future', 'invalid_request', { iat: now() + 3_600 }, {}],
    ['no subject', 'invalid_request', { sub_id: undefined }, {}],
    ['a subject without its members', 'invalid_request', { sub_id: { format: 'iss_sub', sub: 'ann' } }, {}],
    [
      'a complex subject within another',
      'invalid_request',
      { sub_id: { format: 'complex', user: { format: 'complex' } } },
      {},
    ],
  ])('with %s: %s', async (_, err, claims, header) => {
    const text = await world.transmitter.sign(revoked(claims), header)
    expect(await world.transmitter.push(text)).toMatchObject({
      status: 400,
      body: { err, description: expect.any(String) },
    })
  })

  test.each([
    ['of somebody else', async () => world.transmitter.sign(revoked(), {}, foreignKey)],
    ['by a secret, HS256', async () => world.transmitter.sign(revoked(), { alg: 'HS256' }, Buffer.alloc(64, 1))],
    ['alg none', async () => new UnsecuredJWT(revoked()).encode()],
    ['alg none with the type of a SET', async () => unsigned({ alg: 'none', typ: 'secevent+jwt' })],
    ['cut off', async () => (await world.transmitter.sign(revoked())).replace(/\.[^.]*$/, '.')],
    [
      'of another text',
      async () => (await world.transmitter.sign(revoked())).replace(/\.([^.]*)\./, '.eyJpc3MiOiJ4In0.'),
    ],
    ['with a second spelling', async () => `${await world.transmitter.sign(revoked())}=`],
  ])('with a signature %s', async (_, make) => {
    expect(await world.transmitter.push(await make())).toMatchObject({ status: 400 })
  })

  test('when it is oversized', async () => {
    const text = await world.transmitter.sign(revoked({ padding: 'x'.repeat(70_000) }))
    expect(await world.transmitter.push(text)).toMatchObject({ status: 400, body: { err: 'invalid_request' } })
  })

  test.each(['', 'not a jwt', '{}', '..', 'a.b.c', '\u0000'])('when it is %j', async (text) => {
    expect(await world.transmitter.push(text)).toMatchObject({ status: 400, body: { err: 'invalid_request' } })
  })

  test('of another media type', async () => {
    const text = await world.transmitter.sign(revoked())
    for (const type of ['application/json', 'application/jwt', 'text/plain'])
      expect(await world.transmitter.push(text, { 'content-type': type })).toMatchObject({ status: 400 })
  })
})

describe('a caller without the Authorization field', () => {
  test.each([{ authorization: '' }, { authorization: 'Bearer guessed' }, { authorization: 'bearer' }])(
    'is answered 401: %j',
    async (headers) => {
      const text = await world.transmitter.sign(revoked())
      expect(await world.transmitter.push(text, headers)).toMatchObject({
        status: 401,
        body: { err: 'authentication_failed' },
      })
    },
  )

  test('or with two of them is answered 401', async () => {
    const text = await world.transmitter.sign(revoked())
    const { endpoint_url: url, authorization_header: good } = world.transmitter.stream().delivery
    const { pathname, port } = new URL(url)
    const lines = [`POST ${pathname} HTTP/1.1`, 'Host: id', 'Content-Type: application/secevent+jwt']
    const fields = [`Content-Length: ${text.length}`, `Authorization: ${good}`, 'Authorization: Bearer guessed']
    const { status } = await sendRaw(Number(port), `${[...lines, ...fields].join('\r\n')}\r\n\r\n${text}`)
    expect(status).toBe(401)
  })

  test('learns nothing about which paths exist', async () => {
    const { delivery } = world.transmitter.stream()
    const answers = await Promise.all(
      [delivery.endpoint_url, `${delivery.endpoint_url}x`, delivery.endpoint_url.replace(/[^/]+$/, '%00')].map(
        async (url) => {
          const response = await fetch(url, {
            method: 'POST',
            headers: { 'content-type': 'application/secevent+jwt' },
            body: 'x',
          })
          return [response.status, await response.text()]
        },
      ),
    )
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  })
})

describe('a subject that is not one of the issuer', () => {
  test.each([
    ['of another issuer', { format: 'iss_sub', iss: OTHER, sub: 'ann' }],
    ['of our own issuer', { format: 'iss_sub', iss: 'http://127.0.0.1', sub: 'ann' }],
    ['of another issuer, as a token', { format: 'jwt_id', iss: OTHER, jti: 'a-token-of-theirs' }],
    [
      'of another issuer, in a complex subject',
      { format: 'complex', user: { format: 'iss_sub', iss: OTHER, sub: 'ann' } },
    ],
    [
      'of another issuer, as an alias',
      { format: 'aliases', identifiers: [{ format: 'iss_sub', iss: OTHER, sub: 'ann' }] },
    ],
    ['whose issuer differs by a slash', { format: 'iss_sub', iss: 'http://127.0.0.1:1/', sub: 'ann' }],
  ])('is acknowledged and has no effect: %s', async (_, subject) => {
    const before = world.outcomes.filter((outcome) => outcome === 'unmatched').length
    expect(await world.transmitter.push(await world.transmitter.sign(revoked({}, subject)))).toMatchObject({
      status: 202,
    })
    expect(world.outcomes.filter((outcome) => outcome === 'unmatched')).toHaveLength(before + 1)
  })
})

function unsigned(header: object): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  return `${encode(header)}.${encode(revoked())}.`
}
