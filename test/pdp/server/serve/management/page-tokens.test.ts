/** Page tokens of management lists: each is good for one list and filter. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Json, type Served, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
})
afterAll(() => served.close())

const send = async (method: string, path: string, body?: unknown) => {
  const answer = await served.send(method, path, { token, ...(body === undefined ? {} : { body }) })
  return [answer.status, answer.body] as const
}
const places = ([status, body]: readonly [number, Json]) => [
  status,
  ...(body.errors ?? []).map((issue: Json) => issue.pointer ?? issue.parameter),
]

const path = '/v1/organizations/acme/relationships'
beforeAll(async () => {
  await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await send('POST', path, { write: [1, 2, 3].map((n) => `doc:${n}#viewer@user:ann`) })
})

test('continues only the list, and the filter, that it came from', async () => {
  const [, first] = await send('GET', `${path}?page_size=1&subject=user:ann`)
  const token = `page_size=1&page_token=${first.next_page_token}`
  expect(await send('GET', `${path}?subject=user:ann&${token}`)).toMatchObject([200, { items: [{ object: 'doc:2' }] }])
  const others = [path, `${path}?subject=user:bob`, `${path}?subject=user:ann&object=doc:3`, '/v1/users', '/v1/apps']
  for (const other of others) {
    const answer = await send('GET', `${other}${other.includes('?') ? '&' : '?'}${token}`)
    expect([other, ...places(answer)]).toEqual([other, 400, 'page_token'])
  }
})

test.each([
  ['no JSON', 'x'],
  ['another shape', '["doc:1",null]'],
  ['a place that no list has', '["\\u0000",null,"x"]'],
  ['the digest of no list', '["doc:1",null,"AAAAAAAAAAAAAAAAAAAAAA"]'],
  ['too many characters', 'x'.repeat(2_000)],
])('with %s is refused', async (_, text) => {
  const answer = await send('GET', `${path}?page_token=${Buffer.from(text).toString('base64url')}`)
  expect(places(answer)).toEqual([400, 'page_token'])
})
