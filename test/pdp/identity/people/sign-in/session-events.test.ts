/** What receivers of security events hear of sign-ins, if they ask for it. */
import { afterEach, beforeAll, expect, test } from 'vitest'
import { numberEvents } from '../../../../../pdp/engine/store/number-events.ts'
import { createStream, type StreamRequest } from '../../../../../pdp/signals/transmitter/streams.ts'
import { CONTEXT } from '../../harness.ts'
import { openSecondFactors } from './second-factors.ts'

const { scene, person, enroll, answers, authorize } = openSecondFactors()
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type'
const REQUEST: StreamRequest = {
  endpointUrl: null,
  authorizationSealed: null,
  eventsRequested: null,
  subjectFormat: 'complex',
  description: null,
}
beforeAll(async () => {
  await scene.world.directory.putClient({ id: 'receiver', app: null, organization: null, metadata: {} }, CONTEXT)
})
afterEach(() => scene.world.sql.query('delete from signal_stream'))

const ask = (eventsRequested: readonly string[] | null) =>
  scene.world.sql.transaction((tx) =>
    createStream(tx, { client: 'receiver', organization: null }, { id: 'stream', ...REQUEST, eventsRequested }),
  )
const told = async (id: string): Promise<readonly { readonly type: string; readonly payload: object }[]> => {
  await numberEvents(scene.world.sql)
  return scene.world.sql.query(
    "select type, payload from outbox where payload ->> 'user' = $1 and type in ('session.established', 'assurance.changed') order by seq",
    [id],
  )
}

test('a sign-in, and one that becomes stronger, are told with the session and how the person signed in', async () => {
  await ask([`${CAEP}/session-established`, `${CAEP}/assurance-level-change`])
  const id = await person()
  await authorize({}, answers(id))
  const secret = await enroll(id)
  await authorize({}, answers(id))
  await authorize({ acr_values: 'mfa' }, answers(id, secret))
  const session = expect.stringMatching(/^[\w-]{10,}$/)
  const common = { user: id, session, tenants: ['acme'], initiating_entity: 'user' }
  const events = await told(id)
  expect(events).toEqual([
    { type: 'session.established', payload: { ...common, acr: 'pwd', amr: ['pwd'] } },
    { type: 'assurance.changed', payload: { ...common, previous: 'pwd', current: 'mfa', direction: 'increase' } },
  ])
  expect(
    new Set(events.map(({ payload }) => Object.entries(payload).find(([key]) => key === 'session')?.[1])).size,
  ).toBe(1)
})

test.each([
  ['asks for nothing by name', null],
  ['asks for other events', [`${CAEP}/session-revoked`]],
])('nothing of it is stored while every receiver %s', async (_, requested) => {
  await ask(requested)
  const id = await person()
  await authorize({}, answers(id))
  expect(await told(id)).toEqual([])
})

test('a sign-in that fails is none', async () => {
  await ask([`${CAEP}/session-established`])
  const id = await person()
  const form = { action: 'login', email: `${id}@x.example`, password: 'wrong' }
  const path = (await scene.browser.send(scene.flow.authorizeUrl({}))).headers.get('location') ?? ''
  expect((await scene.browser.send(path, { form })).status).toBe(400)
  expect(await told(id)).toEqual([])
})
