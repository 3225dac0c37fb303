/** Several processes on one database: each event once in effect, in order, whatever ends in the middle. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { createGuardedPost } from '../../../../pdp/shared/base/guarded-post.ts'
import { createDeliverer, type DelivererDeps } from '../../../../pdp/signals/transmitter/deliverer.ts'
import { createFeed } from '../../../../pdp/signals/transmitter/feed.ts'
import { createTransmitter, type Transmitter } from '../../../../pdp/signals/transmitter/transmitter.ts'
import { effort } from '../../../support/effort.ts'
import {
  accept,
  entitlement,
  ISSUER,
  openSignals,
  pushTo,
  type Receiver,
  type SignalWorld,
  startReceiver,
  versionsOf,
} from './world.ts'

let world: SignalWorld
const receivers: Receiver[] = []
const others: Transmitter[] = []
let count = 0
beforeAll(async () => {
  world = await openSignals()
})
afterAll(() => world.close())
afterEach(async () => {
  for (const other of others.splice(0)) await other.close()
  for (const receiver of receivers.splice(0)) await receiver.close()
})

const masterKeys = masterKeysOf(Buffer.alloc(32, 1))
/** Each signature differs, so that only stored bytes are the same bytes. */
const signSet: DelivererDeps['signSet'] = async (claims) => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signature = randomBytes(16).toString('base64url')
  return { kid: 'key-1', token: `${part({ typ: 'secevent+jwt' })}.${part(claims)}.${signature}` }
}
const parts = () => ({
  ...{ issuer: ISSUER, sql: world.sql, masterKeys, signSet, clock: Date.now, random: () => 0 },
  publishedKids: () => new Set(['key-1']),
  post: createGuardedPost({ internalHosts: ['127.0.0.1'] }),
  log: pino({ level: 'silent' }),
  onOutcome: () => undefined,
})
async function setUp() {
  const receiver = await startReceiver()
  receivers.push(receiver)
  const token = await world.client(`of-nodes-${++count}`)
  return { receiver, id: (await world.stream(token, pushTo(receiver))).stream_id }
}

test('a delivery whose acknowledgement is lost is repeated by another process with the same bytes', async () => {
  const { receiver, id } = await setUp()
  await world.transmitter.close() // only those of this test deliver
  await world.emit(entitlement('acme', 1), entitlement('acme', 2))
  const feed = createFeed({ sql: world.sql, onError: () => undefined })
  // The process ends between the answer of the receiver and its own commit.
  const dying: DelivererDeps = {
    ...parts(),
    feed,
    openAuthorization: () => null,
    sql: {
      ...world.sql,
      query: (text, values) =>
        text.includes('delete from signal_pending')
          ? Promise.reject(new Error('killed'))
          : world.sql.query(text, values),
    },
  }
  await expect.poll(() => feed.newest()).toBeGreaterThan(0)
  await expect(createDeliverer(dying)(id, feed.newest())).rejects.toThrow('killed')
  const sent = await receiver.received(2)
  expect(versionsOf(sent)).toEqual([1, 2])
  const other = createDeliverer({ ...parts(), feed, openAuthorization: () => null })
  expect(await other(id, feed.newest())).toBe('nothing') // the lease has not ended
  await world.sql.query('update signal_stream set lease_until = now() where stream_id = $1', [id])
  await other(id, feed.newest())
  const again = (await receiver.received(4)).slice(2)
  expect(again.map(({ token }) => token)).toEqual(sent.map(({ token }) => token))
  await feed.close()
  expect(await world.sql.query('select 1 from signal_pending where stream_id = $1', [id])).toEqual([])
})

test('a process that goes on over a restored database delivers what happens from then on', async () => {
  const { receiver } = await setUp()
  others.push(createTransmitter(parts()))
  await world.emit(entitlement('acme', 1))
  const [backup] = await world.sql.query<{ revision: number }>(
    "select revision from revision where organization_id = '#events'",
  )
  await world.emit(entitlement('acme', 2), entitlement('acme', 3))
  await receiver.received(3)
  await world.sql.query('delete from outbox where seq > $1', [backup?.revision])
  await world.sql.query('update signal_stream set cursor_seq = least(cursor_seq, $1)', [backup?.revision])
  await world.sql.query("update revision set revision = $1 where organization_id = '#events'", [backup?.revision])
  await world.emit(entitlement('acme', 4))
  expect(versionsOf(await receiver.received(4))).toEqual([1, 2, 3, 4])
})

test('two processes never deliver one stream at the same time', async () => {
  const { receiver, id } = await setUp()
  let open = 0
  let most = 0
  receiver.answer = (pushed, res) => {
    most = Math.max(most, ++open)
    setTimeout(() => {
      open -= 1
      accept(pushed, res)
    }, 5)
  }
  others.push(createTransmitter(parts()), createTransmitter(parts()))
  const total = 60
  for (let version = 1; version <= total; version++) await world.emit(entitlement('acme', version))
  const pushed = await receiver.received(total)
  expect(versionsOf(pushed)).toEqual(Array.from({ length: total }, (_, i) => i + 1))
  expect(most).toBe(1)
  expect(id).toBeTruthy()
})

test('every stream gets every event in order, with one jti and one text for each, while processes end at random', async () => {
  const [streams, events, kills] = [5, effort({ short: 100, long: 500 }), effort({ short: 4, long: 10 })]
  const all = await Promise.all(Array.from({ length: streams }, setUp))
  others.push(createTransmitter(parts()))
  let version = 0
  for (let round = 0; round < kills; round++) {
    for (let i = 0; i < events / kills; i++) await world.emit(entitlement('acme', ++version))
    // What it holds is not given back: its leases end later, as after kill -9.
    const victim = others.shift()
    others.push(createTransmitter(parts()))
    await victim?.close()
    await world.sql.query(
      'update signal_stream set lease_until = now() where lease_until is not null and random() < 0.5',
    )
  }
  for (const { receiver } of all) {
    await receiver.received(version)
    await expect.poll(() => new Set(versionsOf(receiver.pushed)).size, { timeout: 60_000 }).toBe(version)
    const texts = new Map<string, string>()
    const effects: unknown[] = []
    for (const { token, claims } of receiver.pushed) {
      expect(texts.get(claims.jti) ?? token).toBe(token)
      if (!texts.has(claims.jti)) effects.push(claims.event.members.version)
      texts.set(claims.jti, token)
    }
    expect(effects).toEqual(Array.from({ length: version }, (_, i) => i + 1))
  }
}, 120_000)
