/** Conditions through the whole chain: a route's context over gRPC to the real PDP, for requests and for open streams. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { type RealPdp, startRealPdp } from '../../attacks/real-pdp.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { drop, given, putIf } from '../../support/tuples.ts'
import { until } from '../../support/until.ts'
import { type Harness, PROMPT_MS, startHarness } from '../support/harness.ts'

const MODEL = `model
  schema 1.1
type team
  relations
    define member: [user]
type feed
  relations
    define viewer: [user with near, user with until, team#member with near]
condition near(ip: ipaddress, cidr: string) {
  ip.in_cidr(cidr)
}
condition until(now: timestamp, end: timestamp) {
  now < end
}
`
const ROUTES = `GET /events/{id}: {check: "viewer feed:{id}", context: {ip: {client.address}, cidr: 0.0.0.0/0}}
GET /blind/{id}: viewer feed:{id}`
let h: Harness
let pdp: RealPdp
beforeAll(async () => {
  pdp = await startRealPdp([], 'acme')
  const manifest = { app: 'feeds', audiences: [], permissions: {}, roles: {}, model: MODEL }
  await given(pdp.store, ENVIRONMENT, { kind: 'manifest', manifest })
  h = await startHarness({
    routes: ROUTES,
    extra: 'trusted_proxies: [127.0.0.1]',
    script: tuples([]),
    limits: { drainMs: 100 },
  })
  const file = h.file()
  const moved = { ...file, pdp: { ...file.pdp, addresses: [pdp.address] } }
  h.sidecar.apply({ file: moved, certificates: NO_CERTIFICATES, hash: 'real' })
  h.upstream.handle = (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: 1\n\n')
  }
  await until(async () => (await h.send('GET /events/none')).status === 403)
})
afterAll(async () => {
  await h.close()
  await pdp.stop()
})
beforeEach(() => {
  h.log.length = 0
})
const from = (address: string) => ({ fields: [`X-Forwarded-For: ${address}`] })
const near = (id: string) => putIf(`feed:${id}#viewer@user:alice`, 'near', { cidr: '10.0.0.0/8' })
const detail = (): unknown => h.log.flatMap((entry) => ('detail' in entry ? [entry.detail] : [])).at(-1)

test('what a tuple stores wins over the constant of the route', async () => {
  await given(pdp.store, 'acme', near('stored'))
  expect((await h.send('GET /events/stored', from('192.0.2.1'))).status).toBe(403)
  expect(detail()).toBe('viewer feed:stored (none: nothing grants it)')
})

test('a parameter that is missing is a problem of its own, which names it, and nobody else’s', async () => {
  await given(pdp.store, 'acme', near('blind'))
  const answer = await h.send('GET /blind/blind', from('10.0.0.1'))
  expect([answer.status, field(answer, 'retry-after')]).toEqual([503, null])
  expect(JSON.parse(answer.body)).toMatchObject({
    code: 'condition_failed',
    detail: expect.stringMatching(/the context lacks ip$/),
  })
  expect(detail()).toMatch(/^viewer feed:blind \(condition_failed: .*; the context lacks ip\)$/)
  // A feed of others, and a group on a condition in which nobody is.
  await given(pdp.store, 'acme', putIf('feed:theirs#viewer@user:bob', 'near', { cidr: '10.0.0.0/8' }))
  await given(pdp.store, 'acme', putIf('feed:theirs#viewer@team:empty#member', 'near', { cidr: '10.0.0.0/8' }))
  const theirs = await h.send('GET /blind/theirs', from('10.0.0.1'))
  expect([theirs.status, JSON.parse(theirs.body).code]).toEqual([403, 'permission_denied'])
})

test('an open stream goes on with the context of its request, until its tuple allows another network', async () => {
  await given(pdp.store, 'acme', near('open'))
  const ended: string[] = []
  const stream = h.send('GET /events/open', from('10.0.0.1')).then(({ text }) => void ended.push(text))
  // Past the moment at which the watched question is asked.
  await new Promise((resolve) => setTimeout(resolve, 800))
  await given(pdp.store, 'acme', near('another'))
  expect((await h.send('GET /events/another', from('11.0.0.1'))).status).toBe(403)
  expect(ended).toEqual([])
  const changedMs = performance.now()
  await given(pdp.store, 'acme', putIf('feed:open#viewer@user:alice', 'near', { cidr: '11.0.0.0/8' }))
  await stream
  expect(performance.now() - changedMs).toBeLessThan(PROMPT_MS)
  expect(ended[0]).toContain('portcullis-problem: permission_denied')
})

test('an open stream ends at the instant at which its condition does, without a write', async () => {
  const end = new Date(Date.now() + 2_000).toISOString()
  await given(pdp.store, 'acme', putIf('feed:timed#viewer@user:alice', 'until', { end }))
  const { text } = await h.send('GET /events/timed', from('10.0.0.1'))
  expect(text).toContain('portcullis-problem: permission_denied')
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(end))
  await given(pdp.store, 'acme', drop('feed:timed#viewer@user:alice'))
})
