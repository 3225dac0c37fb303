/** Requests that have not been forwarded yet when a reload changes the rules: the new rules judge and carry them. */
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { parseAnswer } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { BOUND, run, tokenError } from '../support/enforcing.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { fieldOf, startUpstream } from '../support/upstream.ts'

const ROUTES = `GET /docs/{id}: viewer doc:{id}
GET /open/{id}: public
POST /docs: viewer doc:{body.id}`
const ALLOWED = ['alice viewer doc:1', 'alice reader doc:1']

let h: Harness
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await h.close()
})
async function start(extra = ''): Promise<Harness> {
  h = await startHarness({ routes: ROUTES, script: tuples(ALLOWED), extra })
  return h
}
/** Something happens while the PDP is asked for the first time. */
function whileAsked(act: () => void): void {
  const { script } = h.pdp
  h.pdp.script = (asked) => {
    h.pdp.script = script
    const answer = script(asked)
    act()
    return answer
  }
}
const lines = () => h.log.flatMap((line) => ('decision' in line ? [line] : []))

describe('when a reload changes the rules, a request that waits', () => {
  test.each([
    ['has no route any more', 'GET /other: public', 404],
    ['needs a relation that is not there', 'GET /docs/{id}: editor doc:{id}', 403],
    ['needs a scope that its token lacks', 'GET /docs/{id}: scope other', 403],
    ['is still permitted, otherwise', 'GET /docs/{id}: reader doc:{id}', 200],
  ])('for the PDP and %s is answered by the new ones', async (_name, routes, status) => {
    await start()
    whileAsked(() => h.apply(routes))
    expect((await h.send('GET /docs/1')).status).toBe(status)
    expect(h.upstream.reached.length).toBe(status === 200 ? 1 : 0)
    expect(lines().length).toBe(1)
  })

  test('for a place on a public route needs the token that the new ones ask for', async () => {
    await start('limits: {requests_max: 1, waiting_max: 10, waiting_ms: 60000}')
    const held: (() => void)[] = []
    h.upstream.handle = (_req, res) => void held.push(() => res.end('ok'))
    const first = h.send('GET /open/1', { token: null })
    await until(() => held.length === 1)
    const second = h.send('GET /open/2', { token: null })
    const third = h.send('GET /open/3')
    await new Promise((resolve) => setTimeout(resolve, 50))
    h.apply('GET /open/{id}: signed_in', 'limits: {requests_max: 10}')
    for (const finish of held.splice(0)) finish()
    h.upstream.handle = null
    expect([(await first).status, (await second).status, (await third).status]).toEqual([200, 401, 200])
    expect(h.upstream.reached.map(({ target }) => target)).toEqual(['/open/1', '/open/3'])
  })

  test.each([
    ['is judged by it', 'POST /docs: editor doc:{body.id}', 403],
    ['is forwarded with it', 'POST /docs: reader doc:{body.id}', 200],
    ['is forwarded with it where no check reads it', 'POST /docs: signed_in', 200],
  ])('for its body %s', async (_name, routes, status) => {
    await start()
    const body = '{"id":"1"}'
    const lines = ['POST /docs HTTP/1.1', 'Host: app.test', `Authorization: Bearer ${await h.issuer.token()}`]
    lines.push('Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close', '', '')
    const socket = connect(h.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.write(lines.join('\r\n') + body.slice(0, 5))
    await new Promise((resolve) => setTimeout(resolve, 100))
    h.apply(routes)
    socket.write(body.slice(5))
    await until(() => parseAnswer(text).status !== 0)
    expect(parseAnswer(text).status).toBe(status)
    expect(h.upstream.reached.map((one) => one.body)).toEqual(status === 200 ? [body] : [])
  })

  test('goes to the new upstream without the fields that are removed now', async () => {
    await start()
    const [former, next] = [h.upstream.origin, await startUpstream()]
    closers.push(next.close)
    whileAsked(() => {
      h.upstream.origin = next.origin
      h.apply(ROUTES, 'strip_headers: [x-team]')
      h.upstream.origin = former
    })
    expect((await h.send('GET /docs/1', { fields: ['X-Team: red'] })).status).toBe(200)
    expect([h.upstream.reached.length, next.reached.length]).toEqual([0, 1])
    expect(fieldOf(next.reached[0], 'x-team')).toBeNull()
  })

  test('is refused when the rules that permit it are replaced again and again', async () => {
    await start()
    const { script } = h.pdp
    h.pdp.script = (asked) => {
      h.apply(ROUTES)
      return script(asked)
    }
    expect((await h.send('GET /docs/1')).status).toBe(503)
    expect(h.upstream.reached).toEqual([])
    expect(lines()).toEqual([expect.objectContaining({ decision: 'deny', route: 'GET /docs/{id}', subject: 'alice' })])
  })

  test('comes from nobody whom only a proxy named that is not trusted any more', async () => {
    await start('trusted_proxies: [127.0.0.1]')
    whileAsked(() => h.apply(ROUTES, ''))
    expect((await h.send('GET /docs/1', { fields: ['X-Forwarded-For: 203.0.113.7'] })).status).toBe(200)
    expect(fieldOf(h.upstream.reached[0], 'x-forwarded-for')).toBe('127.0.0.1')
    expect(lines()).toEqual([expect.objectContaining({ client_address: '127.0.0.1' })])
  })
})

test('an open stream is judged anew from the address that the trusted proxies of the new rules say', async () => {
  const routes = 'GET /docs/{id}: {check: "viewer doc:{id}", context: {ip: {client.address}}}'
  await start('trusted_proxies: [127.0.0.1]')
  h.apply(routes)
  h.upstream.handle = (_req, res) =>
    void res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  const { script } = h.pdp
  h.pdp.script = (asked) => (asked.context.includes('127.0.0.1') ? tuples([])(asked) : script(asked))
  const answer = h.send('GET /docs/1', { fields: ['X-Forwarded-For: 203.0.113.7'] })
  await until(() => h.pdp.watched() === 1)
  h.apply(routes, '')
  expect((await answer).text).toContain('portcullis-problem: permission_denied')
})

test('a request that is judged again needs its proof only once', async () => {
  await start()
  const { outcome } = await run(BOUND)
  if (outcome.kind !== 'permit') throw new Error('the first rules must permit')
  const replayed = tokenError('proof_replayed')
  expect((await run({ ...BOUND, proof: replayed })).outcome.kind).toBe('denial')
  expect((await run({ ...BOUND, proof: replayed, former: outcome })).outcome.kind).toBe('permit')
  const unproven = await run({ ...BOUND, line: 'GET /public' })
  if (unproven.outcome.kind !== 'permit') throw new Error('the public route must permit')
  const again = await run({
    ...BOUND,
    line: 'GET /public',
    routes: 'GET /public: signed_in',
    proof: replayed,
    former: unproven.outcome,
  })
  expect(again.outcome).toMatchObject({ kind: 'denial', code: 'proof_replayed' })
})
