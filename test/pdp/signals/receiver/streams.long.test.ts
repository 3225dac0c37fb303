/** The stream that a transmitter of somebody else sends: made, found again, changed, moved, and noticed when it is silent. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { CAEP_EVENTS, RISC_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { eventually, openReceiver, type ReceiverWorld } from './world.ts'

let world: ReceiverWorld
const ann = () => ({ format: 'iss_sub', iss: world.transmitter.issuer, sub: 'ann' })
const revoked = () =>
  world.transmitter.claims(CAEP_EVENTS.sessionRevoked, ann(), { event_timestamp: Math.floor(Date.now() / 1_000) })

describe('a received stream', () => {
  afterEach(() => world.close())

  test('lives on with a new access token when the transmitter ends the old one: expiring token', async () => {
    world = await openReceiver({ callsPerToken: 3 })
    await world.connect()
    await world.transmitter.send(revoked())
    await eventually(async () => expect(await world.ended()).toHaveLength(1))
    expect(world.transmitter.calls.filter((call) => call === 'POST /token').length).toBeGreaterThan(1)
  })

  test.each([
    ['what it was called', {}],
    ['being the only one that there may be', { onlyOne: true }],
  ])('is found again by %s when our database has lost it', async (_, ways) => {
    world = await openReceiver(ways)
    await world.connect()
    const { stream_id: id } = world.transmitter.stream()
    if ('onlyOne' in ways) world.transmitter.stream().description = 'renamed by somebody'
    await world.sql.query(
      'update received_stream set stream = null, settings = null, lease_holder = null, leased_until = null',
    )
    await world.receiver.close()
    world.another()
    await eventually(async () => expect(await world.state()).toMatchObject({ stream_id: id, error: null }))
    expect([...world.transmitter.streams.keys()]).toEqual([id])
  })

  test.each([false, true])('is changed with its entry, or made again where there is no PATCH (%s)', async (noPatch) => {
    world = await openReceiver({ noPatch })
    await world.connect({ delivery: 'poll' })
    await world.put(world.transmitter.issuer, { delivery: 'push', events: [CAEP_EVENTS.credentialChange] })
    await eventually(() =>
      expect([...world.transmitter.streams.values()]).toMatchObject([
        { delivery: { method: 'urn:ietf:rfc:8935' }, events_requested: [CAEP_EVENTS.credentialChange] },
      ]),
    )
    await eventually(async () => expect(await world.state()).toMatchObject({ delivery: 'push', error: null }))
    await world.transmitter.send(revoked())
    expect(await world.ended()).toEqual([])
    await world.transmitter.send(
      world.transmitter.claims(CAEP_EVENTS.credentialChange, ann(), {
        credential_type: 'password',
        change_type: 'update',
      }),
    )
    expect(await world.ended()).toHaveLength(1)
  })

  test('moves to another transmitter with its entry, and what the former one pushes is worth nothing from then on', async () => {
    world = await openReceiver()
    await world.connect({ delivery: 'push' })
    const { delivery } = world.transmitter.stream()
    const text = await world.transmitter.sign(revoked())
    await world.put(world.transmitter.issuer, { delivery: 'push', issuer: 'https://127.0.0.1:1' })
    const headers = { 'content-type': 'application/secevent+jwt', authorization: delivery.authorization_header ?? '' }
    const response = await fetch(delivery.endpoint_url, { method: 'POST', headers, body: text })
    expect(response.status).toBe(503)
    await eventually(() => expect(world.transmitter.streams.size).toBe(0))
    expect(await world.ended()).toEqual([])
  })

  test('is deleted at the transmitter when its entry names none any more', async () => {
    world = await openReceiver()
    await world.connect()
    await world.issuers.remove(world.transmitter.issuer, { actor: 'test', requestId: 'r' })
    await eventually(() => expect(world.transmitter.streams.size).toBe(0))
    expect(await world.sql.query('select 1 from received_stream')).toEqual([])
  })

  test('is made again when the transmitter has forgotten it', async () => {
    world = await openReceiver()
    await world.connect()
    world.transmitter.streams.clear()
    await eventually(() => expect(world.transmitter.streams.size).toBe(1))
    await world.transmitter.send(revoked())
    await eventually(async () => expect(await world.ended()).toHaveLength(1))
  })

  test('is served by one process, and by another when that one is gone, and nothing is lost in between', async () => {
    world = await openReceiver()
    await world.connect()
    world.another()
    world.another()
    await world.receiver.close()
    await world.transmitter.send(revoked())
    await eventually(async () => expect(await world.ended()).toHaveLength(1))
    expect(world.transmitter.streams.size).toBe(1)
  })

  test('of a transmitter that answers polls at once is polled with pauses', async () => {
    world = await openReceiver({ noLongPoll: true })
    await world.connect()
    await world.transmitter.send(revoked())
    await eventually(async () => expect(await world.ended()).toHaveLength(1))
  })

  test('of a transmitter that is gone says so, shows that it is silent, and works when it is back', async () => {
    world = await openReceiver()
    await world.connect()
    await world.transmitter.stop()
    await eventually(async () => expect(await world.state()).toMatchObject({ silent: true, error: expect.any(String) }))
    await world.transmitter.start()
    await eventually(async () => expect(await world.state()).toMatchObject({ silent: false, error: null }))
  })

  test('of a transmitter that takes requests and sends nothing is silent', async () => {
    world = await openReceiver()
    await world.connect()
    world.transmitter.ways.mute = true
    await eventually(async () => expect(await world.state()).toMatchObject({ silent: true, error: null }))
  })

  test.each(['push', 'poll'] as const)(
    'by %s of a transmitter without verification lives while its API answers',
    async (delivery) => {
      world = await openReceiver({ noVerification: true })
      await world.connect({ delivery })
      expect(await world.state()).toMatchObject({ silent: false })
    },
  )

  test('asks for signs of life no more often than the transmitter allows', async () => {
    world = await openReceiver({ intervalS: 3_600 })
    await world.connect()
    const asked = () => world.transmitter.calls.filter((call) => call === 'POST /verify').length
    expect(asked()).toBe(1)
    await world.transmitter.send(revoked())
    await eventually(async () => expect(await world.ended()).toHaveLength(1))
    expect(asked()).toBe(1)
    const [row] = await world.sql.query<{ s: number }>('select silent_after_s as s from received_stream')
    expect(row?.s).toBe(3 * 3_600)
  })
})

describe('what cannot be a stream of ours', () => {
  beforeAll(async () => {
    world = await openReceiver()
  })
  afterAll(() => world.close())

  test.each([
    ['metadata of another issuer', { issuer: 'https://idp.example/tenant' }, 'is the metadata of another issuer'],
    ['no metadata', { metadata_uri: 'nowhere' }, 'answered 401'],
    ['another audience', { audience: 'https://us.example' }, 'aud of the stream does not name'],
    ['a wrong secret', { authorization: { token: 'no-token-of-theirs-at-all' } }, 'answered 401'],
  ])('is not used: %s', async (_, change, message) => {
    const uri = {
      metadata_uri: `${world.transmitter.issuer}/${'metadata_uri' in change ? change.metadata_uri : '.well-known/ssf-configuration'}`,
    }
    await world.put(world.transmitter.issuer, { ...change, ...uri })
    await eventually(async () => expect((await world.state())?.error).toContain(message))
  })
})

describe('RISC', () => {
  test.each([RISC_EVENTS.accountDisabled, RISC_EVENTS.accountPurged])(
    '%s ends the tokens of the account',
    async (type) => {
      world = await openReceiver()
      await world.connect({ delivery: 'push' })
      await world.transmitter.send(world.transmitter.claims(type, ann()))
      expect(await world.ended()).toEqual([`foreign_subject ${world.transmitter.issuer} ann`])
      await world.close()
    },
  )
})
