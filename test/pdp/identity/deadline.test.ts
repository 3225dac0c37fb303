/** The identity service answers within its deadline also when the database does not. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openWorld, SECRET, type World } from './harness.ts'

let world: World
beforeAll(async () => {
  world = await openWorld({ deadlineMs: 300 })
  // The first request of all waits for what is loaded then.
  await fetch(`${world.issuer}/oauth/jwks`)
})
afterAll(() => world.close())

/** While somebody holds the tables of clients and people, which every request for a token and every sign-in reads. */
async function whileFrozen(run: () => Promise<void>): Promise<void> {
  await world.sql.transaction(async (at) => {
    await at.query('lock table client, user_account in access exclusive mode')
    await run()
  })
}

test.each([
  ['the token endpoint', '/oauth/token', { grant_type: 'client_credentials' }],
  ['introspection', '/oauth/introspect', { token: 'x' }],
  ['revocation', '/oauth/revoke', { token: 'x' }],
])('%s says temporarily_unavailable, and when to try again', async (_name, path, form) => {
  const headers = { authorization: `Basic ${btoa(`machine:${SECRET}`)}` }
  await whileFrozen(async () => {
    const answer = await fetch(`${world.issuer}${path}`, { method: 'POST', headers, body: new URLSearchParams(form) })
    const said = await answer.json()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(said).toEqual({
      error: 'temporarily_unavailable',
      error_description: 'the database of this server does not answer; try again later',
    })
  })
})

const LOGIN = { action: 'login', email: 'eve@x.example', password: 'x' }
test.each([
  ['that was opened', '/oauth/authorize?client_id=nobody&response_type=code', null],
  ['whose form was sent', '/account/sign-in?to=/account', LOGIN],
])('a page %s says so in words, and leads to itself', async (_name, path, form) => {
  await whileFrozen(async () => {
    const sent = form === null ? {} : { method: 'POST', body: new URLSearchParams(form) }
    const answer = await fetch(world.issuer + path, { headers: { accept: 'text/html' }, ...sent })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([503, expect.stringContaining('text/html')])
    const link = `<a href="${path.replaceAll('&', '&amp;')}">Open the page again</a>`
    expect(await answer.text()).toContain(link)
  })
})

test('a form that takes longer to arrive is answered when it is here', async () => {
  const patient = await openWorld({ deadlineMs: 1_000 })
  onTestFinished(() => patient.close())
  const forms = ['/oauth/token', '/oauth/introspect', '/oauth/authorize', '/oauth/userinfo', '/account/sign-in']
  const asked = forms.map((path) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const out = request(patient.issuer + path, { method: 'POST', headers })
    out.write('a=b')
    return { path, out, answered: once(out, 'response') }
  })
  await new Promise((done) => setTimeout(done, 1_500))
  for (const { path, out, answered } of asked) {
    out.end('&c=d')
    const [answer] = await answered
    expect([path, answer.statusCode]).not.toEqual([path, 503])
    answer.resume()
  }
})

test('a client that goes away while it sends a form is no failure in the log', async () => {
  const ended: Promise<boolean>[] = []
  const server = createServer((req, res) => void ended.push(world.identity.handle(req, res)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  for (const path of ['/oauth/token', '/oauth/introspect', '/oauth/userinfo', '/account/sign-in']) {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', expect: '100-continue' }
    const out = request({ port, path, method: 'POST', headers }).on('error', () => undefined)
    out.flushHeaders()
    await once(out, 'continue')
    out.write('a=b')
    out.destroy()
    expect(await ended.at(-1)).toBe(true)
  }
  expect(world.log.filter((line) => line.includes('aborted'))).toEqual([])
})
