import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, serve } from '../harness.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
})
afterAll(() => served.close())

const BROWSER = 'text/html,application/xhtml+xml,*/*;q=0.8'
const ask = (path: string, accept: string | null, method = 'GET') =>
  fetch(served.url + path, {
    method,
    headers: { 'x-request-id': 'request-of-a-test', ...(accept === null ? {} : { accept }) },
  })

test.each([
  ['/', 200, 'Sign-in service'],
  ['/nothing', 404, 'There is nothing here'],
  ['/oauth/nothing', 404, 'There is nothing here'],
])('a browser gets a page at %s', async (path, status, title) => {
  const response = await ask(path, BROWSER)
  const text = await response.text()
  expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8'])
  expect(text).toContain(`<h1>${title}</h1>`)
  expect(text.includes('request-of-a-test')).toBe(status === 404)
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'/)
})

test.each([
  ['/', 'application/json', 'GET'],
  ['/', '*/*', 'GET'],
  ['/nothing', null, 'GET'],
  ['/nothing', BROWSER, 'POST'],
])('whoever asks for %s as %j by %s gets problem details', async (path, accept, method) => {
  const response = await ask(path, accept, method)
  expect([response.status, response.headers.get('content-type')]).toEqual([
    404,
    expect.stringContaining('application/problem+json'),
  ])
})

test('a browser that asks the API gets problem details, as the description says', async () => {
  const response = await ask('/v1/users/nobody', BROWSER)
  expect(response.headers.get('content-type')).toContain('application/problem+json')
})
