/** Entitlement values of one organization have a bound together. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Json, type Served, seedAcme, serve } from '../../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  token = await served.manager()
})
afterAll(() => served.close())

async function send(method: string, key: string, value?: object): Promise<[number, Json]> {
  const body = value === undefined ? {} : { body: { value } }
  const answer = await served.send(method, `/v1/organizations/acme/entitlements/${key}`, { token, ...body })
  return [answer.status, answer.body]
}

test('a value is refused that would make the sum of all too large, until another is smaller or gone', async () => {
  const value = { text: 'x'.repeat(200_000) }
  const put = (key: string, given: object = value) => send('PUT', key, given)
  const keys = ['large.1', 'large.2', 'large.3', 'large.4', 'large.5']
  for (const key of keys) expect((await put(key))[0]).toBe(201)
  const [status, problem] = await put('large.6')
  expect([status, problem.code, problem.errors[0].pointer]).toEqual([400, 'request_invalid', '/value'])
  expect(problem.detail).toContain('more than 1048576')
  // Neither grows, nor is there one more.
  expect((await put('large.5'))[0]).toBe(200)
  expect((await put('large.5', { text: 'x'.repeat(255_000) }))[0]).toBe(400)
  expect((await put('large.5', { text: '' }))[0]).toBe(200)
  expect((await put('large.6'))[0]).toBe(201)
  for (const key of [...keys, 'large.6']) expect((await send('DELETE', key))[0]).toBe(204)
})

test('values are bounded together also when they are pushed at once', async () => {
  const value = { text: 'x'.repeat(250_000) }
  const keys = Array.from({ length: 8 }, (_, at) => `large.${at}`)
  const answers = await Promise.all(keys.map((key) => send('PUT', key, value)))
  expect(answers.map(([status]) => status).sort()).toEqual([201, 201, 201, 201, 400, 400, 400, 400])
  for (const key of keys) await send('DELETE', key)
})
