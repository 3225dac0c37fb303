/** Pages of any origin may ask what their person may do, as they may read UserInfo. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, seedAcme, serve } from '../harness.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
})
afterAll(() => served.close())

const ORIGIN = { origin: 'https://app.example' }

test('a preflight allows the method and the fields of a question', async () => {
  const headers = { ...ORIGIN, 'access-control-request-method': 'POST', 'access-control-request-headers': 'dpop' }
  const answer = await fetch(`${served.url}/oauth/decisions`, { method: 'OPTIONS', headers })
  expect(answer.status).toBe(204)
  expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  expect(answer.headers.get('access-control-allow-methods')).toBe('POST')
  expect(answer.headers.get('access-control-allow-headers')).toBe('Authorization, DPoP, Content-Type')
  expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
})

test.each([
  ['an answer', { permissions: [] }, true, 200],
  ['a refused body', { permissions: 1 }, true, 400],
  ['a missing token', { permissions: [] }, false, 401],
] as const)('%s can be read by a page', async (_name, body, hasToken, status) => {
  const answer = await served.send('POST', '/oauth/decisions', {
    headers: ORIGIN,
    body,
    ...(hasToken && { token: served.token({}) }),
  })
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([status, '*'])
  expect(answer.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate')
})

test.each(['/v1/organizations', '/access/v1/evaluation'])('%s is for no page of another origin', async (path) => {
  const answer = await fetch(served.url + path, { method: 'OPTIONS', headers: ORIGIN })
  expect(answer.headers.get('access-control-allow-origin')).toBeNull()
})
