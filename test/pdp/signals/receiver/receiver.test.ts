/** The receiver's rows of the SSF certification suite, by push and by poll, against a transmitter of somebody else. */
import { generateKeyPair } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { createVerificationStates } from '../../../../pdp/signals/receiver/verification-state.ts'
import { CAEP_EVENTS, STREAM_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { eventually, MASTER_KEY, openReceiver, type ReceiverWorld } from './world.ts'

const OTHER_ISSUER = 'https://other-idp.example'
let world: ReceiverWorld
/** Another one in each test. */
let person = 'ann'
const ann = () => ({ format: 'iss_sub', iss: world.transmitter.issuer, sub: person })
const ended = async () => (await world.ended()).filter((entry) => entry.endsWith(` ${person}`))
const now = (): number => Math.floor(Date.now() / 1_000)
const revoked = (subject: object = ann(), members = {}) =>
  world.transmitter.claims(CAEP_EVENTS.sessionRevoked, { ...subject }, { event_timestamp: now(), ...members })

describe.each(['push', 'poll'] as const)('a stream that is delivered by %s', (delivery) => {
  beforeAll(async () => {
    world = await openReceiver()
    await world.connect({ delivery })
  })
  afterAll(() => world.close())
  beforeEach(() => {
    person = `ann-${crypto.randomUUID()}`
    world.outcomes.length = 0
    world.log.length = 0
  })

  const arrived = (count: number) => eventually(() => expect(world.transmitter.stream().queue.length).toBe(count))

  test('a session that is revoked there ends its tokens here, and is acknowledged', async () => {
    await world.transmitter.send(revoked())
    await arrived(0)
    expect(await ended()).toEqual([`foreign_subject ${world.transmitter.issuer} ${person}`])
    expect(world.outcomes).toContain('ended')
  })

  test('redelivered SET acknowledged again, without another effect', async () => {
    const set = revoked()
    await world.transmitter.send(set)
    await arrived(0)
    await world.transmitter.send(set)
    await arrived(0)
    expect(await ended()).toHaveLength(1)
    await eventually(() => expect(world.outcomes).toContain('repeated'))
  })

  test('invalid SET refused, and the next one taken', async () => {
    const { privateKey } = await generateKeyPair('RS256')
    const text = await world.transmitter.sign(revoked(), {}, privateKey)
    if (delivery === 'push')
      expect(await world.transmitter.push(text)).toMatchObject({ status: 400, body: { err: 'invalid_key' } })
    else {
      world.transmitter.stream().queue.push({ jti: 'bad', text })
      await eventually(() => expect(world.transmitter.refused.get('bad')).toMatchObject({ err: 'invalid_key' }))
    }
    expect(await ended()).toEqual([])
    await world.transmitter.send(revoked())
    await arrived(0)
    expect(await ended()).toHaveLength(1)
  })

  test('iss mismatch refused', async () => {
    await world.transmitter.send({ ...revoked(), iss: OTHER_ISSUER })
    await arrived(0)
    expect(await ended()).toEqual([])
    await eventually(() => expect(world.outcomes).toContain('refused'))
  })

  test('verification with wrong state refused', async () => {
    const subject = { format: 'opaque', id: world.transmitter.stream().stream_id }
    await world.transmitter.send(
      world.transmitter.claims(STREAM_EVENTS.verification, subject, {
        state: 'VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=',
      }),
    )
    await arrived(0)
    await eventually(() => expect(world.outcomes).toContain('refused'))
    expect(world.log.join('')).toContain('state is not one that was asked for')
  })

  test('verification with wrong subject refused', async () => {
    const subject = { format: 'opaque', id: 'another-stream' }
    await world.transmitter.send(world.transmitter.claims(STREAM_EVENTS.verification, subject))
    await arrived(0)
    await eventually(() => expect(world.outcomes).toContain('refused'))
    expect(world.log.join('')).toContain('sub_id is not the stream')
  })

  test('event for a removed subject, or one that is unknown here, tolerated', async () => {
    await world.transmitter.send(revoked({ format: 'phone_number', phone_number: '+12065550100' }))
    await arrived(0)
    await eventually(() => expect(world.outcomes).toContain('unmatched'))
    expect(await ended()).toEqual([])
  })

  test('unknown events are acknowledged and counted', async () => {
    await world.transmitter.send(world.transmitter.claims('https://events.example/lunch', ann()))
    await world.transmitter.send(world.transmitter.claims(CAEP_EVENTS.deviceComplianceChange, ann()))
    await arrived(0)
    await eventually(() => expect(world.outcomes.filter((outcome) => outcome === 'ignored')).toHaveLength(2))
  })

  test('status change by the transmitter is shown, and the stream turned on again', async () => {
    const stream = world.transmitter.stream()
    stream.status = 'paused'
    const subject = { format: 'opaque', id: stream.stream_id }
    await world.transmitter.send(
      world.transmitter.claims(STREAM_EVENTS.streamUpdated, subject, { status: 'paused', reason: 'maintenance' }),
    )
    await eventually(() => expect(stream.status).toBe('enabled'))
    await eventually(async () => expect(await world.state()).toMatchObject({ status: 'enabled', silent: false }))
  })

  test('verification queued behind other events is known again', async () => {
    const state = await askedState()
    for (let i = 0; i < 5; i++) await world.transmitter.send(revoked())
    const subject = { format: 'opaque', id: world.transmitter.stream().stream_id }
    await world.transmitter.send(world.transmitter.claims(STREAM_EVENTS.verification, subject, { state }))
    await arrived(0)
    expect(await ended()).toHaveLength(5)
    expect(world.outcomes).toContain('control')
    expect(world.outcomes).not.toContain('refused')
  })

  async function askedState(): Promise<string> {
    const rows = await world.sql.query<{ id: string }>('select receiver_id as id from received_stream')
    return createVerificationStates(masterKeysOf(MASTER_KEY)).make(rows[0]?.id ?? '', Date.now() - 3_600_000)
  }
})
