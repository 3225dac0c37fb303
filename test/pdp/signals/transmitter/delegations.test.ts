/** A receiver learns that a client may no longer act for a person. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatSubject } from '../../../../pdp/signals/set/subjects.ts'
import { drop, put } from '../../../support/tuples.ts'
import { CONTEXT, ISSUER, openSignals, type SignalWorld, setsOf } from './world.ts'

const LINK = 'service:bot#acts_for@user:alice'
let world: SignalWorld
beforeAll(async () => {
  world = await openSignals()
})
afterAll(() => world.close())

const write = (actor: string, ...changes: Parameters<SignalWorld['store']['write']>[1][number][]) =>
  world.store.write('acme', changes, { context: { ...CONTEXT, actor } })

async function receiver(id: string, organization: string | null, body: object = {}) {
  const token = await world.client(id, organization === null ? {} : { organization })
  const { stream_id: stream } = await world.stream(token, body)
  return async () =>
    setsOf(await world.poll(token, stream)).map(({ event, subject }) => ({ ...event, subject: formatSubject(subject) }))
}

test('each end is one event, with the client, the person and who ended it, for receivers of its organization', async () => {
  const [every, own, other] = [
    await receiver('all', null),
    await receiver('of-acme', 'acme'),
    await receiver('of-beta', 'beta'),
  ]
  await write('user:alice', put(LINK), put('doc:1#viewer@user:alice'), put('group:acts_for#member@user:alice'))
  await write('user:alice', drop(LINK), drop('doc:1#viewer@user:alice'))
  await write('user:alice', drop(LINK))
  await write('client:admin', put(LINK))
  await write('client:admin', drop(LINK))
  const ended = (initiating_entity: string) => ({
    type: `${ISSUER}/events/delegation-ended`,
    subject: {
      format: 'complex',
      user: { format: 'iss_sub', iss: ISSUER, sub: 'alice' },
      application: { format: 'iss_sub', iss: ISSUER, sub: 'bot' },
      tenant: { format: 'opaque', id: 'acme' },
    },
    members: { organization: 'acme', client: 'bot', initiating_entity, event_timestamp: expect.any(Number) },
  })
  for (const read of [every, own]) expect(await read()).toEqual([ended('user'), ended('admin')])
  expect(await other()).toEqual([])
})

test('a write that fails ends nothing, and sends nothing', async () => {
  const read = await receiver('of-the-failed', 'acme')
  await write('user:alice', put(LINK))
  const preconditions = [
    { tuple: { object: 'doc:9', relation: 'viewer', subject: 'user:alice' }, exists: true },
  ] as const
  const failed = world.store.write('acme', [drop(LINK)], { context: CONTEXT, preconditions })
  await expect(failed).rejects.toMatchObject({ code: 'precondition_failed' })
  expect(await read()).toEqual([])
})
