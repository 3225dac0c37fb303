/** Management and decisions where an external system owns the entitlements. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { httpEntitlements } from '../../../../../pdp/engine/store/entitlements/http-source.ts'
import { GATES_SECRET, type Gates, startGates } from '../../../../support/gates.ts'
import { given } from '../../../../support/tuples.ts'
import { type Served, serve } from '../harness.ts'

const PATH = '/v1/organizations/acme/entitlements'
let gates: Gates
let served: Served
let token: string
const gate = (on: boolean) => gates.set('acme', 'feature.a', { value: { enabled: on }, enforcement: 'Claims' })
const decided = async () => (await served.pdp.entitlement('acme', 'feature.a'))?.boolean() ?? null

beforeAll(async () => {
  gates = await startGates()
  served = await serve({
    entitlements: (store) => httpEntitlements({ url: gates.url, secret: GATES_SECRET, store, fetch }),
  })
  await given(served.store, 'acme')
  token = await served.manager()
})
afterAll(() => Promise.all([served.close(), gates.close()]))

test.each(['PUT', 'DELETE'])('refuses to %s a gate that nobody would read', async (method) => {
  const body = method === 'PUT' ? { value: true } : undefined
  const answer = await served.send(method, `${PATH}/feature.a`, { token, body })
  expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
  expect((await served.store.entitlements('acme', 'all')).values.size).toBe(0)
})

test('decides by a change as soon as it is announced, however often', async () => {
  for (const on of [true, false, true, false]) {
    gate(on)
    const { status, body } = await served.send('POST', `${PATH}:changed`, { token })
    expect([status, await decided()]).toEqual([200, on])
    expect((await served.pdp.entitlement('acme', 'feature.a'))?.version).toBe(body.version)
    expect(await served.pdp.claimsEntitlements('acme')).toEqual({
      version: body.version,
      values: { 'feature.a': { enabled: on } },
    })
  }
})

test('shows the gates of the external system', async () => {
  gate(true)
  const one = await served.send('GET', `${PATH}/feature.a`, { token })
  expect(one.body).toMatchObject({ key: 'feature.a', value: { enabled: true }, enforcement: 'Claims' })
  expect((await served.send('GET', PATH, { token })).body.items).toMatchObject([{ key: 'feature.a' }])
  expect((await served.send('GET', `${PATH}/feature.b`, { token })).status).toBe(404)
})

test('answers 503 while the external system cannot say', async () => {
  gates.misbehave((_, res) => void res.writeHead(500).end())
  expect((await served.send('GET', `${PATH}/feature.a`, { token })).status).toBe(503)
  expect((await served.send('GET', PATH, { token })).status).toBe(503)
  gates.misbehave(null)
})
