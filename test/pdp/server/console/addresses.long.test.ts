/** Addresses of the console that nobody made on purpose: each is answered by a page that says what to do. */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnWorld, startOwnWorld } from '../../../console/own-world.ts'
import type { Browser } from '../../../support/browser.ts'
import { signedInTo } from './visitor.ts'

let world: OwnWorld
let root: Browser
beforeAll(async () => {
  world = await startOwnWorld()
  root = await signedInTo(world, 'root')
})
afterAll(() => world?.close())

type Raw = { readonly status: number; readonly type: string; readonly headers: object; readonly text: string }
/** As it stands, without what fetch() makes of an address. */
function send(method: string, path: string, cookie = cookies()): Promise<Raw> {
  const { hostname: host, port } = new URL(world.issuer)
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, method, path, headers: { cookie, accept: 'text/html' } }, (response) => {
      const { statusCode: status = 0, headers } = response
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ status, type: headers['content-type'] ?? '', headers, text }))
    })
    sent.once('error', reject)
    sent.end()
  })
}
const cookies = (): string => [...root.cookies()].map(([name, value]) => `${name}=${value}`).join('; ')

test.each([
  ['GET', '/console/nothing', 404],
  ['GET', '/console/ask/', 404],
  ['GET', '/console/%', 404],
  ['GET', '/console/%00', 400],
  ['GET', '/console/%3Cscript%3E', 404],
  ['POST', '/console/nothing', 404],
  ['POST', '/console/ask', 405],
  ['PUT', '/console/relationships?org=acme', 405],
  ['DELETE', '/console', 405],
])('%s %s is answered by a page with a way back', async (method, path, status) => {
  const answer = await send(method, path)
  expect([answer.status, answer.type]).toEqual([status, 'text/html; charset=utf-8'])
  expect(answer.text).toMatch(/href="\/(console|account)"/)
  if (status === 405) expect(answer.headers).toMatchObject({ allow: expect.stringContaining('GET') })
})

test.each(['/console/', '/console/sign-out'])('%s leads to the start', async (path) => {
  expect((await send('GET', path)).headers).toMatchObject({ location: '/console' })
})

test('HEAD answers as GET without a body, and opens no stream', async () => {
  for (const path of ['/console', '/console/ask?org=acme', '/console/relationships?org=acme']) {
    const [head, get] = [await send('HEAD', path), await send('GET', path)]
    expect([head.status, head.type, head.text]).toEqual([get.status, get.type, ''])
  }
  expect((await send('HEAD', '/console/decisions/tail?org=acme')).status).toBe(404)
})

test.each([
  'organization?org=acme&members=-1',
  'organization?org=acme&entitlements=abc',
  'people?org=acme&page=1',
  'invitations?org=acme&page=%22%3E',
  'relationships?org=acme&page=99999999999999999999',
  'who?org=acme&resource=doc:1&relation=viewer&page=1',
  'what?org=acme&subject=user:bob&relation=viewer&type=doc&page=x',
])('%s says that there is no such page', async (path) => {
  const { text } = await send('GET', `/console/${path}`)
  expect(text).toContain('names a page that the list does not have')
  expect(text).not.toContain('page_token')
  expect(text).toMatch(
    /Open this screen from its beginning|<form method="get" action="\/console\/\w+" class="question"/,
  )
})

test.each(['user=%00', 'user=a%00b', 'org=%FF', 'org=%ED%A0%80'])(
  'people?%s is answered with what to do',
  async (query) => {
    const { status, text } = await send('GET', `/console/people?${query}`)
    expect(status).toBeLessThan(500)
    expect(text).toMatch(/Open this screen from its beginning|Choose another one above/)
  },
)

test('the first of several values counts', async () => {
  const { text } = await send('GET', '/console/organization?org=acme&org=globex')
  expect(text).toContain('Organization tree')
  expect(text).not.toContain('name="org" type="text" value="globex"')
})

test('two different session cookies lead to a page that says what to do, and to no endless sign-in', async () => {
  for (const path of ['/console', '/console/ask?org=acme']) {
    const { status, text } = await send('GET', path, `portcullis_console=other; ${cookies()}`)
    expect([status, text.includes('Delete the cookies of this site')]).toEqual([400, true])
  }
})
