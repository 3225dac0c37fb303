/** How much a stream holds whose receiver takes nothing: here 10 events instead of 100,000. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseSet, parseSetClaims } from '../../../../pdp/signals/set/set.ts'
import {
  accept,
  entitlement,
  openSignals,
  pushTo,
  type Receiver,
  type SignalWorld,
  setsOf,
  startReceiver,
  status,
} from './world.ts'

const HELD_MAX = 10
let world: SignalWorld
let receiver: Receiver
beforeAll(async () => {
  world = await openSignals({ heldMax: HELD_MAX, random: () => 0 })
  receiver = await startReceiver()
})
afterAll(async () => {
  await world.close()
  await receiver.close()
})

const countTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)
const emit = (organization: string, first: number, last: number) =>
  world.emit(...countTo(first, last).map((version) => entitlement(organization, version)))
const stateOf = (stream: string) => world.transmitter.operator.state(stream)
const tooMany = { status: 'paused', statusReason: `more than ${HELD_MAX} events are held` }
/** Since then the receiver has taken nothing. */
const left = (stream: string) =>
  world.sql.query(
    "update signal_stream set created_at = now() - interval '2 hours', enabled_at = null, last_delivered_at = null where stream_id = $1",
    [stream],
  )
/** What a SET says: the version of the event, or the status of the stream. */
const saidBy = ({ event: { members } }: ReturnType<typeof setsOf>[number]): unknown => members.version ?? members.status

async function drain(token: string, stream: string) {
  const all = []
  for (;;) {
    const sets = setsOf(await world.poll(token, stream))
    if (sets.length === 0) return all
    all.push(...sets)
    await world.poll(token, stream, { maxEvents: 0, ack: sets.map(({ jti }) => jti) })
  }
}

test('a failing push endpoint hears that its stream is paused when too many events are held, and gets all of them later', async () => {
  const token = await world.client('failing', { organization: 'acme' })
  receiver.answer = (pushed, res) =>
    parseSetClaims(parseSet(pushed.token).payload).event.members.status === 'paused'
      ? accept(pushed, res)
      : status(503)(pushed, res)
  const { stream_id: id } = await world.stream(token, pushTo(receiver))
  await left(id)
  const pushedBefore = receiver.pushed.length
  await emit('acme', 1, 1)
  await receiver.received(pushedBefore + 1)
  await emit('acme', 2, HELD_MAX + 2)
  await expect.poll(() => stateOf(id), { timeout: 10_000 }).toMatchObject(tooMany)
  await expect.poll(() => receiver.pushed.map(({ claims }) => saidBy(claims))).toContain('paused')
  receiver.answer = accept
  const before = receiver.pushed.length
  await world.transmitter.operator.setStatus(id, { status: 'enabled', reason: null })
  // A SET whose acknowledgement was not noted comes again, with its `jti` (RFC 8935 section 2).
  const versions = () => [
    ...new Set(receiver.pushed.slice(before).flatMap(({ claims }) => claims.event.members.version ?? [])),
  ]
  await expect.poll(versions).toEqual(countTo(1, HELD_MAX + 2))
})

test('a stream that nobody polls is paused, and its next poll says so', async () => {
  const token = await world.client('absent', { organization: 'acme' })
  const { stream_id: id } = await world.stream(token)
  await left(id)
  await emit('acme', 1, HELD_MAX)
  await emit('beta', 1, HELD_MAX)
  expect(await stateOf(id)).toMatchObject({ status: 'enabled' })
  await emit('acme', HELD_MAX + 1, HELD_MAX + 1)
  await expect.poll(() => stateOf(id), { timeout: 10_000 }).toMatchObject(tooMany)
  expect((await drain(token, id)).map(saidBy)).toEqual(['paused'])
  await world.send('POST', '/ssf/status', { token, body: { stream_id: id, status: 'enabled' } })
  expect((await drain(token, id)).map(saidBy)).toEqual(countTo(1, HELD_MAX + 1))
})

test('a paused stream loses the oldest events that it may not hold, and its receiver hears of it', async () => {
  const token = await world.client('paused', { organization: 'acme' })
  const { stream_id: id } = await world.stream(token)
  await world.send('POST', '/ssf/status', { token, body: { stream_id: id, status: 'paused' } })
  await emit('acme', 1, 20)
  await expect.poll(() => stateOf(id), { timeout: 10_000 }).toMatchObject({ gapCount: 20 - HELD_MAX })
  await world.send('POST', '/ssf/status', { token, body: { stream_id: id, status: 'enabled' } })
  const sets = await drain(token, id)
  expect(sets.map(saidBy)).toEqual(['enabled', ...countTo(11, 20)])
  expect(sets[0]?.event.members.reason).toMatch(/^events before .* were dropped$/)
})
