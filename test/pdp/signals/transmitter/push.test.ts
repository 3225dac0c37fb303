import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import {
  accept,
  entitlement,
  ISSUER,
  openSignals,
  pushTo,
  type Receiver,
  type SignalWorld,
  startReceiver,
  status,
  VERIFICATION,
  versionsOf,
} from './world.ts'

let world: SignalWorld
const receivers: Receiver[] = []
let count = 0
beforeAll(async () => {
  world = await openSignals()
})
afterAll(() => world.close())
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.close()
})

async function setUp(more: object = {}, options: Parameters<SignalWorld['client']>[1] = {}) {
  const receiver = await startReceiver()
  receivers.push(receiver)
  const client = `receiver-${++count}`
  const token = await world.client(client, options)
  const stream = await world.stream(token, { ...pushTo(receiver, more) })
  return { receiver, token, client, stream: stream.stream_id }
}

test('a committed event is pushed as one signed SET with one event', async () => {
  const { receiver, client } = await setUp({ authorization_header: 'Bearer of-the-receiver' })
  await world.emit(entitlement('acme', 7))
  const [pushed] = await receiver.received(1)
  expect(pushed?.headers).toMatchObject({
    'content-type': 'application/secevent+jwt',
    accept: 'application/json',
    authorization: 'Bearer of-the-receiver',
  })
  expect(await world.verifies(pushed?.token ?? '')).toBe(true)
  expect(pushed?.claims).toMatchObject({
    iss: ISSUER,
    aud: [client],
    event: {
      type: `${ISSUER}/events/entitlement-updated`,
      members: { organization: 'acme', keys: ['seats'], version: 7 },
    },
  })
})

test('verification by push without a configured Authorization header sends none', async () => {
  const { receiver, token, stream } = await setUp()
  const body = { stream_id: stream, state: 'VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=' }
  expect((await world.send('POST', '/ssf/verify', { token, body })).status).toBe(204)
  const [pushed] = await receiver.received(1)
  expect(pushed?.headers.authorization).toBeUndefined()
  expect(pushed?.claims).toMatchObject({
    subject: { format: 'opaque', id: stream },
    event: { type: VERIFICATION, members: { state: body.state } },
  })
})

test('the order is kept over answers of 503, and the same bytes are sent again', async () => {
  const { receiver, stream } = await setUp()
  let failures = 2
  receiver.answer = (pushed, res) => (failures-- > 0 ? status(503)(pushed, res) : accept(pushed, res))
  await world.emit(entitlement('acme', 1), entitlement('acme', 2), entitlement('acme', 3))
  for (const n of [1, 2]) {
    await receiver.received(n)
    await due(stream)
  }
  const pushed = await receiver.received(5)
  expect(versionsOf(pushed)).toEqual([1, 1, 1, 2, 3])
  expect(new Set(pushed.slice(0, 3).map(({ token }) => token)).size).toBe(1)
})

test('a SET that is refused with 400 is a dead letter, and the next event goes on', async () => {
  const { receiver, stream } = await setUp()
  receiver.answer = status(400, JSON.stringify({ err: 'invalid_key', description: 'no such key' }))
  await world.emit(entitlement('acme', 1))
  await receiver.received(1)
  receiver.answer = accept
  await world.emit(entitlement('acme', 2))
  expect(versionsOf(await receiver.received(2))).toEqual([1, 2])
  await expect
    .poll(() => world.transmitter.operator.state(stream))
    .toMatchObject({
      deadCount: 1,
      pendingCount: 0,
      lastError: '400 invalid_key: no such key',
    })
})

test('an event whose transaction was rolled back is never sent', async () => {
  const { receiver } = await setUp()
  const undone = world.sql.transaction(async (tx) => {
    await tx.query("update revision set revision = revision + 1 where organization_id = '#events'")
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  await world.emit(entitlement('acme', 2))
  expect(versionsOf(await receiver.received(1))).toEqual([2])
})

test('pause holds, enabling sends in order, and disabled drops', async () => {
  const { receiver, token, stream } = await setUp()
  const setStatus = (value: string) =>
    world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status: value } })
  expect((await setStatus('paused')).body).toEqual({ stream_id: stream, status: 'paused' })
  await world.emit(entitlement('acme', 1), entitlement('acme', 2))
  expect((await setStatus('enabled')).status).toBe(200)
  expect(versionsOf(await receiver.received(2))).toEqual([1, 2])
  expect((await setStatus('disabled')).status).toBe(200)
  await world.emit(entitlement('acme', 3))
  expect((await setStatus('enabled')).status).toBe(200)
  await world.emit(entitlement('acme', 4))
  expect(versionsOf(await receiver.received(3))).toEqual([1, 2, 4])
})

test('a held SET whose key was rotated away is signed again under the same jti', async () => {
  const { receiver, token, stream } = await setUp()
  receiver.answer = status(503)
  await world.emit(entitlement('acme', 1))
  const [first] = await receiver.received(1)
  await world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status: 'paused' } })
  await world.rotateKey()
  receiver.answer = accept
  await world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status: 'enabled' } })
  const [, second] = await receiver.received(2)
  expect(second?.claims).toEqual(first?.claims)
  expect(await world.verifies(second?.token ?? '')).toBe(true)
})

test.each([
  [301, { location: 'http://169.254.169.254/latest' }],
  [307, { location: '/elsewhere' }],
  [401, {}],
  [403, {}],
  [404, {}],
  [408, {}],
  [429, { 'retry-after': '600' }],
  [500, {}],
])('an answer of %i is tried again later, and no redirect is followed', async (code, headers) => {
  const { receiver, stream } = await setUp()
  receiver.answer = status(code, '', headers)
  await world.emit(entitlement('acme', 1))
  await receiver.received(1)
  await expect
    .poll(() => world.transmitter.operator.state(stream))
    .toMatchObject({
      attemptsCount: 1,
      pendingCount: 1,
      lastError: `answered ${code}`,
    })
  const [row] = await world.sql.query<{ wait: number }>(
    'select extract(epoch from next_attempt_at - now())::float8 as wait from signal_stream where stream_id = $1',
    [stream],
  )
  if (code === 429) expect(row?.wait).toBeGreaterThan(500)
  expect(receiver.pushed).toHaveLength(1)
})

test('after a day of failures the stream is paused, and stream-updated precedes the pause', async () => {
  const { receiver, stream } = await setUp()
  receiver.answer = status(500)
  await world.emit(entitlement('acme', 1))
  await receiver.received(1)
  await expect.poll(() => world.transmitter.operator.state(stream)).toMatchObject({ attemptsCount: 1 })
  await world.sql.query(
    "update signal_stream set failing_since = now() - interval '25 hours', next_attempt_at = null where stream_id = $1",
    [stream],
  )
  const pushed = await receiver.received(3)
  expect(pushed[2]?.claims.event.members).toMatchObject({
    status: 'paused',
    reason: expect.stringContaining('24 hours'),
  })
  await expect
    .poll(() => world.transmitter.operator.state(stream))
    .toMatchObject({
      status: 'paused',
      statusReason: 'delivery failed for 24 hours: answered 500',
      pendingCount: 1,
    })
  receiver.answer = accept
  await world.transmitter.operator.setStatus(stream, { status: 'enabled', reason: null })
  const all = await receiver.received(5)
  expect(all.slice(3).map(({ claims }) => claims.event.members.version ?? claims.event.members.status)).toEqual([
    1,
    'enabled',
  ])
})

test('an operator’s pause tells the receiver first, and holds what comes later', async () => {
  const { receiver, stream } = await setUp()
  await world.transmitter.operator.setStatus(stream, { status: 'paused', reason: 'maintenance' })
  await world.emit(entitlement('acme', 1))
  const [told] = await receiver.received(1)
  expect(told?.claims.event.members).toEqual({ status: 'paused', reason: 'maintenance' })
  await world.transmitter.operator.setStatus(stream, { status: 'enabled', reason: null })
  const pushed = await receiver.received(3)
  expect(pushed.slice(1).map(({ claims }) => claims.event.members.version ?? claims.event.members.status)).toEqual([
    'enabled',
    1,
  ])
})

test('a receiver that never answers does not keep other streams waiting', async () => {
  const silent = await setUp()
  silent.receiver.answer = () => undefined
  const prompt = await setUp()
  await world.emit(entitlement('acme', 1))
  await silent.receiver.received(1)
  await world.emit(entitlement('acme', 2), entitlement('acme', 3))
  expect(versionsOf(await prompt.receiver.received(3))).toEqual([1, 2, 3])
  expect(silent.receiver.pushed).toHaveLength(1)
})

test('a stream whose settings cannot be read does not keep those waiting that are read with it', async () => {
  const broken = await setUp()
  const others = [await setUp(), await setUp()]
  await world.sql.query("insert into signal_removed_subject values ($1, 'x', '{}')", [broken.stream])
  await world.emit(entitlement('acme', 1))
  for (const { receiver } of others) expect(versionsOf(await receiver.received(1))).toEqual([1])
  await world.sql.query('delete from signal_removed_subject where stream_id = $1', [broken.stream])
  expect(versionsOf(await broken.receiver.received(1))).toEqual([1])
})

test('events that were held longer than a week are dropped, and the receiver is told', async () => {
  const { receiver, token, stream } = await setUp()
  await world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status: 'paused' } })
  await world.sql.transaction(async (tx) => {
    await appendEvents(tx, [entitlement('acme', 1)])
    await tx.query("update outbox_arrival set created_at = now() - interval '8 days'")
  })
  await world.emit(entitlement('acme', 2))
  await world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status: 'enabled' } })
  const pushed = await receiver.received(2)
  expect(pushed.map(({ claims }) => claims.event.members)).toMatchObject([
    { status: 'enabled', reason: expect.stringMatching(/^events before .* were dropped$/) },
    { version: 2 },
  ])
})

test('the log names each SET by its jti, and holds neither a SET nor the Authorization field', async () => {
  const { receiver } = await setUp({ authorization_header: 'Bearer never-in-the-log' })
  await world.emit(entitlement('acme', 1))
  const [pushed] = await receiver.received(1)
  await expect.poll(() => JSON.stringify(world.logged)).toContain(pushed?.claims.jti)
  expect(JSON.stringify(world.logged)).not.toContain('never-in-the-log')
  expect(JSON.stringify(world.logged)).not.toContain(pushed?.token.split('.')[1])
})

test('a push endpoint that got nothing for an hour gets one verification that nobody asked for', async () => {
  const [silent, prompt, paused] = [await setUp(), await setUp(), await setUp()]
  await world.send('POST', '/ssf/status', { token: paused.token, body: { stream_id: paused.stream, status: 'paused' } })
  const age = (stream: string) =>
    world.sql.query("update signal_stream set created_at = now() - interval '2 hours' where stream_id = $1", [stream])
  await world.sql.query('update signal_stream set last_delivered_at = now() where stream_id = $1', [prompt.stream])
  for (const { stream } of [prompt, paused, silent]) await age(stream)
  const [verification] = await silent.receiver.received(1)
  expect(verification?.claims).toMatchObject({
    subject: { format: 'opaque', id: silent.stream },
    event: { type: VERIFICATION, members: {} },
  })
  expect(verification?.claims.event.members).toEqual({})
  await world.emit(entitlement('acme', 1))
  expect((await silent.receiver.received(2)).at(-1)?.claims.event.members).toMatchObject({ version: 1 })
  expect(versionsOf(await prompt.receiver.received(1))).toEqual([1])
  expect(paused.receiver.pushed).toEqual([])
})

/** The wait after a failure is over. */
async function due(stream: string): Promise<void> {
  await expect
    .poll(async () => {
      const rows = await world.sql.query(
        'update signal_stream set next_attempt_at = null where stream_id = $1 and lease_id is null and next_attempt_at is not null returning 1',
        [stream],
      )
      return rows.length
    })
    .toBe(1)
}
