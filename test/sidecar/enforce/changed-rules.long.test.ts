import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

const ROUTES = `GET /events/{id}: viewer feed:{id}
GET /open/{id}: public
GET /shadowed/{id}: {check: "viewer feed:{id}", mode: shadow}
GET /feed/{id}: {check: "viewer feed:{id}", upgrade: [websocket]}`
const ALLOWED = ['alice viewer feed:1', 'alice reader feed:1']

let h: Harness
const closers: (() => void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await h.close()
})

/** The upstream streams events that do not end, and takes WebSockets. */
async function start(): Promise<Harness> {
  h = await startHarness({ routes: ROUTES, script: tuples(ALLOWED) })
  h.upstream.handle = (req, res) => {
    const isStream = !req.url?.includes('length')
    res.writeHead(200, isStream ? { 'content-type': 'text/event-stream' } : { 'content-length': '100' })
    res.write('data: 1\n\n')
  }
  const server = new WebSocketServer({ noServer: true })
  h.upstream.onUpgrade = (req, socket, head) => server.handleUpgrade(req, socket, head, () => undefined)
  return h
}
const problemIn = ({ text }: RawAnswer): string | undefined => /portcullis-problem: (\w+)/.exec(text)?.[1]

/** An answer that goes on; resolves once it has reached the upstream. */
async function begun(path: string, token?: string | null): Promise<{ ended: Promise<RawAnswer>; isOver: boolean }> {
  const count = h.upstream.reached.length
  const ended = h.send(`GET ${path}`, token === undefined ? {} : { token })
  const one = { ended, isOver: false }
  void ended.then(() => {
    one.isOver = true
  })
  await until(() => one.isOver || h.upstream.reached.length > count)
  return one
}
async function openSocket(path: string): Promise<{ readonly closed: Promise<string> }> {
  const socket = new WebSocket(`ws://127.0.0.1:${h.port}${path}`, {
    headers: { Host: 'app.test', Authorization: `Bearer ${await h.issuer.token()}` },
  })
  closers.push(() => socket.terminate())
  const closed = new Promise<string>((resolve) =>
    socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`)),
  )
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))
  return { closed }
}

describe('when a reload changes the rules, an open stream of events', () => {
  test.each([
    ['has no route any more', '/events/1', 'GET /other: public', 'route_unknown'],
    ['is of a method that has none', '/events/1', 'POST /events/{id}: public', 'method_unsupported'],
    ['needs a relation that is not there', '/events/1', 'GET /events/{id}: editor feed:{id}', 'permission_denied'],
    ['needs a scope that its token lacks', '/events/1', 'GET /events/{id}: scope other', 'scope_insufficient'],
    [
      'needs a fresh sign-in',
      '/events/1',
      'GET /events/{id}: {check: "viewer feed:{id}", step_up: {max_age: 60}}',
      'step_up_required',
    ],
    [
      'was only counted, and is now refused',
      '/shadowed/2',
      'GET /shadowed/{id}: viewer feed:{id}',
      'permission_denied',
    ],
  ])('is ended in order when it %s', async (_name, path, routes, code) => {
    await start()
    const { ended } = await begun(path)
    h.apply(routes)
    expect(problemIn(await ended)).toBe(code)
  })

  test('of a public route is ended when that needs a token and there was none', async () => {
    await start()
    const { ended } = await begun('/open/1', null)
    h.apply('GET /open/{id}: viewer feed:{id}')
    expect(problemIn(await ended)).toBe('token_missing')
  })

  test('of an issuer or a resource that is not trusted any more is ended', async () => {
    await start()
    const { ended } = await begun('/events/1')
    const file = h.file()
    const resource = 'https://other.test'
    h.sidecar.apply({
      file: { ...file, resource, resources: [resource] },
      certificates: NO_CERTIFICATES,
      hash: 'other',
    })
    expect(problemIn(await ended)).toBe('token_invalid')
  })

  test.each([
    ['by another relation', '/events/1', 'GET /events/{id}: reader feed:{id}'],
    ['as public', '/events/1', 'GET /events/{id}: public'],
    ['by a route that only counts', '/events/2', 'GET /events/{id}: {check: "viewer feed:{id}", mode: shadow}'],
  ])('goes on when the new rules permit it %s, and is ended when those deny it later', async (_name, path, routes) => {
    await start()
    if (path === '/events/2') h.pdp.script = tuples([...ALLOWED, 'alice viewer feed:2'])
    const one = await begun(path)
    await until(() => h.pdp.watched() === 1)
    h.pdp.script = tuples(['alice reader feed:1'])
    h.apply(routes)
    await until(() => h.pdp.watched() === (routes.includes('reader') ? 1 : 0))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(one.isOver).toBe(false)
    h.apply('GET /other: public')
    expect(problemIn(await one.ended)).toBe('route_unknown')
  })
})

describe('when a reload changes the rules', () => {
  test('a WebSocket is closed with the reason', async () => {
    await start()
    const { closed: denied } = await openSocket('/feed/1')
    h.apply('GET /feed/{id}: {check: "editor feed:{id}", upgrade: [websocket]}')
    expect(await denied).toBe('4403 permission_denied')
  })

  test('a WebSocket on a route that takes none any more is closed', async () => {
    await start()
    const { closed } = await openSocket('/feed/1')
    h.apply('GET /feed/{id}: viewer feed:{id}')
    expect(await closed).toBe('1008 route_unknown')
  })

  test('a long answer with a length is cut off', async () => {
    await start()
    const { ended } = await begun('/events/1?length')
    h.apply('GET /other: public')
    expect((await ended).body).toBe('data: 1\n\n')
  })
})

describe('when the sidecar is told to stop', () => {
  const request = (port: number, path: string) =>
    sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`)

  test('it takes new connections for a while, then sends streams and WebSockets away alike, and ends', async () => {
    await start()
    const [socket, events] = [await openSocket('/feed/1'), await begun('/events/1')]
    const startedMs = performance.now()
    const closed = h.sidecar.close({ acceptMs: 1_500 })
    expect(h.sidecar.notReady()).toBe('draining')
    h.upstream.handle = null
    const answers = await Promise.all([request(h.port, '/open/1'), request(h.port, '/open/2')])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(events.isOver).toBe(false)
    expect([await socket.closed, problemIn(await events.ended)]).toEqual(['1001 draining', 'draining'])
    expect(performance.now() - startedMs).toBeGreaterThan(1_400)
    await closed
    expect((await request(h.port, '/open/1')).status).toBe(0)
  })

  test('it does not wait again for those that a hook has given the time to hear of it', async () => {
    await start()
    h.sidecar.withdraw()
    await new Promise((resolve) => setTimeout(resolve, 200))
    const { promise: late, resolve } = Promise.withResolvers<string>()
    setTimeout(resolve, 15_000, 'late').unref()
    expect(await Promise.race([h.sidecar.close({ acceptMs: 100 }).then(() => 'closed'), late])).toBe('closed')
  })

  test('what has not ended by then is cut: one that had not begun is told why', async () => {
    h = await startHarness({ routes: ROUTES, script: tuples(ALLOWED), limits: { drainMs: 500 } })
    h.upstream.handle = () => undefined
    const { ended } = await begun('/events/1')
    const closed = h.sidecar.close()
    const answer = await ended
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([503, 'draining'])
    await closed
  })

  test('a connection whose answer had begun before ends with it', async () => {
    await start()
    let finish = (): void => undefined
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-length': '2' }).write('o')
      finish = () => void res.end('k')
    }
    const { ended } = await begun('/open/1', null)
    const closed = h.sidecar.close()
    finish()
    expect((await ended).body).toBe('ok')
    await closed
  })
})
