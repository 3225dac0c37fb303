/** An identity provider that is not ours ends a session, and says so by Shared Signals: a real PDP, and a real sidecar. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CAEP_EVENTS } from '../../pdp/signals/set/event-types.ts'
import { startTransmitter, CLIENT as THEIR_CLIENT, type Transmitter } from '../pdp/signals/receiver/transmitter.ts'
import { freePort } from '../support/free-port.ts'
import { call, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

let world: OwnIssuerWorld
let idp: Transmitter
let sidecar: string
const ENTRY = { subject_prefix: 'idp:', organizations: ['acme'], audience: RESOURCE }
const PEOPLE = ['ann', 'bob', 'cy', 'dan'].flatMap((person) => [`${person}-poll`, `${person}-push`])
const ROUTES = `  GET /orders/{id}: viewer order:{id}
  GET /streams/{id}: viewer order:{id}
  GET /me: signed_in
`
beforeAll(async () => {
  const port = await freePort()
  idp = await startTransmitter(port)
  world = await openOwnIssuerWorld({ internalHosts: [`127.0.0.1:${port}`] })
  const { manage } = world
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE] })
  await manage('POST', '/v1/organizations/acme/relationships', {
    write: PEOPLE.map((person) => `order:1#viewer@user:~idp:${person}`),
  })
  // The sidecar verifies these tokens by itself, by the provider's keys.
  sidecar = await world.startOn(ROUTES, { issuer: idp.issuer, jwks_uri: `${idp.issuer}/jwks`, external: ENTRY })
})
afterAll(async () => {
  await world.close()
  await idp.stop()
})

const register = (change: object): Promise<void> =>
  world.manage('PUT', `/v1/trusted-issuers/${encodeURIComponent(idp.issuer)}`, {
    ...{ ...ENTRY, jwks: idp.jwks, algorithms: ['RS256'] },
    ssf: {
      ...{ delivery: 'poll', ...change },
      authorization: {
        token_endpoint: `${idp.issuer}/token`,
        client_id: THEIR_CLIENT.id,
        client_secret: THEIR_CLIENT.secret,
      },
    },
  })
const now = (): number => Math.floor(Date.now() / 1_000)
const tokenOf = (sub: string, claims: object = {}): Promise<string> =>
  idp.sign(
    {
      iss: idp.issuer,
      sub,
      aud: RESOURCE,
      client_id: 'web',
      jti: crypto.randomUUID(),
      iat: now(),
      exp: now() + 600,
      ...claims,
    },
    { typ: 'at+jwt' },
  )
const statusOf = async (token: string, path = '/orders/1') => (await call(`${sidecar}${path}`, token)).status
const iss = () => idp.issuer

describe.each(['poll', 'push'] as const)('with signals by %s', (delivery) => {
  beforeAll(async () => {
    await register({ delivery })
    const method = delivery === 'poll' ? 'urn:ietf:rfc:8936' : 'urn:ietf:rfc:8935'
    await vi.waitFor(() => expect(idp.stream().delivery.method).toBe(method), { timeout: 30_000 })
  })

  const say = async (
    subject: object,
    members: object = {},
    type: string = CAEP_EVENTS.sessionRevoked,
  ): Promise<void> => {
    await idp.send(idp.claims(type, { ...subject }, { event_timestamp: now(), ...members }))
    await vi.waitFor(() => expect(idp.stream().queue).toEqual([]), { timeout: 30_000 })
  }

  test('a revoked session is refused on the very next request, and other sessions of the person are not', async () => {
    const person = `ann-${delivery}`
    const [ended, other] = [
      await tokenOf(person, { sid: `${person}-1` }),
      await tokenOf(person, { sid: `${person}-2` }),
    ]
    expect([await statusOf(ended), await statusOf(ended, '/me'), await statusOf(other)]).toEqual([200, 200, 200])
    await say({
      format: 'complex',
      user: { format: 'iss_sub', iss: iss(), sub: person },
      session: { format: 'opaque', id: `${person}-1` },
    })
    expect([await statusOf(ended), await statusOf(ended, '/me'), await statusOf(other)]).toEqual([401, 401, 200])
  })

  test('an open stream of a revoked person is cut, and one of somebody else is not', async () => {
    const open = async (person: string) => {
      const response = await fetch(`${sidecar}/streams/1`, {
        headers: { authorization: `Bearer ${await tokenOf(person)}` },
      })
      const reader = response.body?.getReader()
      expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: an order\n\n')
      let isOpen = true
      void reader?.read().then(
        () => (isOpen = false),
        () => (isOpen = false),
      )
      return { isOpen: () => isOpen, close: () => reader?.cancel().catch(() => undefined) }
    }
    const [ended, other] = [await open(`bob-${delivery}`), await open(`cy-${delivery}`)]
    await say({ format: 'iss_sub', iss: iss(), sub: `bob-${delivery}` }, {}, CAEP_EVENTS.credentialChange)
    await vi.waitFor(() => expect(ended.isOpen()).toBe(false), { timeout: 30_000 })
    expect(other.isOpen()).toBe(true)
    void other.close()
  })

  test('a token that was issued after the event is good', async () => {
    const person = `dan-${delivery}`
    const before = await tokenOf(person, { iat: now() - 20 })
    await say({ format: 'iss_sub', iss: iss(), sub: person }, { event_timestamp: now() - 10 })
    expect([await statusOf(before), await statusOf(await tokenOf(person))]).toEqual([401, 200])
  })

  test('nobody of ours is concerned, whatever the provider calls its people', async () => {
    const own = await world.ownToken()
    for (const sub of ['admin', '~idp:admin', 'user:admin', 'service:admin'])
      await say({ format: 'iss_sub', iss: iss(), sub })
    await idp.send(idp.claims(CAEP_EVENTS.sessionRevoked, { format: 'iss_sub', iss: world.issuer, sub: 'admin' }))
    await vi.waitFor(() => expect(idp.stream().queue).toEqual([]), { timeout: 30_000 })
    expect(await statusOf(own, '/me')).toBe(200)
  })
})
