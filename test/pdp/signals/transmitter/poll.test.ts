import { afterAll, beforeAll, expect, test } from 'vitest'
import { undoOnce } from '../../../support/database.ts'
import { entitlement, openSignals, POLL, type SignalWorld, setsOf, VERIFICATION } from './world.ts'

let world: SignalWorld
let token: string
beforeAll(async () => {
  world = await openSignals()
  token = await world.client('poller')
})
afterAll(() => world.close())

const create = async (): Promise<string> => (await world.stream(token)).stream_id
const versions = (answer: Parameters<typeof setsOf>[0]): readonly unknown[] =>
  setsOf(answer).map(({ event }) => event.members.version)
const jtis = (answer: Parameters<typeof setsOf>[0]): readonly string[] => setsOf(answer).map(({ jti }) => jti)

test('a poll offers what is not acknowledged again, in order, with the same bytes', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1), entitlement('acme', 2))
  const first = await world.poll(token, stream)
  expect([first.status, versions(first), first.body.moreAvailable]).toEqual([200, [1, 2], false])
  expect((await world.poll(token, stream)).body).toEqual(first.body)
})

test('ACKNOWLEDGE_ONLY: maxEvents 0 acknowledges and returns none', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1), entitlement('acme', 2))
  const [ack = ''] = jtis(await world.poll(token, stream))
  const answer = await world.poll(token, stream, { maxEvents: 0, ack: [ack] })
  expect([answer.status, answer.body.sets]).toEqual([200, {}])
  expect(versions(await world.poll(token, stream))).toEqual([2])
})

test('POLL_AND_ACKNOWLEDGE: what is acknowledged is not in the same answer', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1), entitlement('acme', 2))
  const ack = jtis(await world.poll(token, stream, { maxEvents: 1, returnImmediately: true }))
  expect(versions(await world.poll(token, stream, { ack, returnImmediately: true }))).toEqual([2])
})

test('maxEvents limits an answer, and moreAvailable says that there are others', async () => {
  const stream = await create()
  await world.emit(...[1, 2, 3].map((version) => entitlement('acme', version)))
  const answer = await world.poll(token, stream, { maxEvents: 2, returnImmediately: true })
  expect([versions(answer), answer.body.moreAvailable]).toEqual([[1, 2], true])
  const rest = await world.poll(token, stream, { ack: jtis(answer), maxEvents: 2, returnImmediately: true })
  expect([versions(rest), rest.body.moreAvailable]).toEqual([[3], false])
})

test('setErrs drops a SET, and the log and the state say why', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1))
  const [jti = ''] = jtis(await world.poll(token, stream))
  const setErrs = { [jti]: { err: 'invalid_issuer', description: 'who\n are you' } }
  expect((await world.poll(token, stream, { setErrs, returnImmediately: true })).body.sets).toEqual({})
  expect(await world.transmitter.operator.state(stream)).toMatchObject({
    deadCount: 1,
    lastError: 'invalid_issuer: who? are you',
  })
  expect(world.logged).toContainEqual(expect.objectContaining({ event: 'signal_not_delivered', jti, stream }))
})

test('an unknown jti in ack is ignored', async () => {
  const stream = await create()
  const answer = await world.poll(token, stream, {
    ack: ['nothing'],
    setErrs: { other: { err: 'x' } },
    returnImmediately: true,
  })
  expect([answer.status, answer.body]).toEqual([200, { sets: {}, moreAvailable: false }])
})

test('an acknowledgement on one stream does not acknowledge on another', async () => {
  const [one, other] = [await create(), await create()]
  await world.emit(entitlement('acme', 1))
  const ack = jtis(await world.poll(token, one))
  await world.poll(token, other, { ack, returnImmediately: true })
  expect(jtis(await world.poll(token, one))).toEqual(ack)
})

test('a long poll is answered by the commit of an event', async () => {
  const stream = await create()
  const waiting = world.poll(token, stream, {})
  await new Promise((done) => setTimeout(done, 300))
  await world.emit(entitlement('acme', 1))
  expect(versions(await waiting)).toEqual([1])
})

test('a long poll shows nothing of what happens after its caller lost the scope', async () => {
  const leaving = await world.client('leaving')
  const { stream_id: stream } = await world.stream(leaving)
  await world.emit(entitlement('acme', 1))
  const ack = jtis(await world.poll(leaving, stream))
  const waiting = world.poll(leaving, stream, { ack })
  const held = async () => (await world.sql.query('select 1 from signal_pending where stream_id = $1', [stream])).length
  await expect.poll(held).toBe(0)
  await world.client('leaving', { scopes: [] })
  await world.emit(entitlement('acme', 2))
  expect(await waiting).toMatchObject({ status: 403, body: { code: 'scope_insufficient' } })
})

test('a second poll of the same stream ends the first one with what it has', async () => {
  const stream = await create()
  const first = world.poll(token, stream, {})
  await new Promise((done) => setTimeout(done, 300))
  const second = world.poll(token, stream, {})
  expect((await first).body).toEqual({ sets: {}, moreAvailable: false })
  await world.emit(entitlement('acme', 1))
  expect(versions(await second)).toEqual([1])
})

test('verification by poll', async () => {
  const stream = await create()
  await world.send('POST', '/ssf/verify', { token, body: { stream_id: stream, state: 'of the test' } })
  const [set] = setsOf(await world.poll(token, stream))
  expect(set?.event).toEqual({ type: VERIFICATION, members: { state: 'of the test' } })
})

test('a verification is queued behind other events', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1))
  await world.poll(token, stream)
  await world.send('POST', '/ssf/verify', { token, body: { stream_id: stream } })
  expect(setsOf(await world.poll(token, stream)).map(({ event }) => event.type)).toEqual([
    expect.stringContaining('entitlement-updated'),
    VERIFICATION,
  ])
})

test('a paused stream answers polls with nothing, and a disabled one drops', async () => {
  const stream = await create()
  const setStatus = (status: string) =>
    world.send('POST', '/ssf/status', { token, body: { stream_id: stream, status } })
  await setStatus('paused')
  await world.emit(entitlement('acme', 1))
  expect((await world.poll(token, stream)).body.sets).toEqual({})
  await setStatus('enabled')
  expect(versions(await world.poll(token, stream))).toEqual([1])
  await setStatus('disabled')
  await setStatus('enabled')
  expect((await world.poll(token, stream)).body.sets).toEqual({})
})

test('the poll endpoint refuses no token, a wrong token and an unknown stream', async () => {
  const stream = await create()
  const path = `/ssf/poll/${stream}`
  expect((await world.send('POST', path, { body: {} })).status).toBe(401)
  const wrong = await world.send('POST', path, { token: 'wrong', body: {} })
  expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('invalid_token')])
  const reader = await world.client('reader', { scopes: ['ssf.read'] })
  expect((await world.poll(reader, stream)).status).toBe(403)
  expect((await world.poll(token, 'unknown')).status).toBe(404)
  expect((await world.poll(await world.client('stranger'), stream)).status).toBe(404)
  const push = { delivery: { method: 'urn:ietf:rfc:8935', endpoint_url: 'http://127.0.0.1:1/' } }
  expect((await world.poll(token, (await world.stream(token, push)).stream_id)).status).toBe(404)
})

test.each([
  { maxEvents: -1 },
  { maxEvents: 'all' },
  { returnImmediately: 'yes' },
  { ack: 'jti' },
  { ack: [7] },
  { setErrs: ['jti'] },
  { setErrs: { jti: 'bad' } },
  { setErrs: { jti: {} } },
])('refuses the poll %j', async (body) => {
  expect((await world.poll(token, await create(), body)).status).toBe(400)
})

test('a client may poll by the URL of its configuration, which is unique', async () => {
  const [one, other] = [await world.stream(token, { delivery: { method: POLL } }), await world.stream(token)]
  expect(one.delivery).toEqual({ method: POLL, endpoint_url: `https://id.example.test/ssf/poll/${one.stream_id}` })
  expect(one.delivery).not.toEqual(other.delivery)
})

test('an acknowledgement that the database undid and is done again is reported once', async () => {
  const stream = await create()
  await world.emit(entitlement('acme', 1))
  const ack = jtis(await world.poll(token, stream))
  const commits = await undoOnce(world.sql, 'delete on signal_pending')
  const answer = await world.poll(token, stream, { ack, maxEvents: 0 })
  expect([answer.status, await commits()]).toEqual([200, 2])
  const told = world.logged.filter(({ event, jti }) => event === 'signal_delivered' && jti === ack[0])
  expect(told).toHaveLength(1)
})
