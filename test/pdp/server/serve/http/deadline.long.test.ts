/** No call waits longer than its deadline, whatever it waits for; one that is still arriving, or that streams, is not cut. */
import { request } from 'node:http'
import Fastify from 'fastify'
import { afterEach, expect, test } from 'vitest'
import { storeEntitlements } from '../../../../../pdp/engine/store/entitlements/store-source.ts'
import { addDeadline } from '../../../../../pdp/server/serve/http/deadline.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

const NEVER = new Promise<never>(() => undefined)
const PATIENT = { decisionMs: 60_000, callMs: 60_000 }
let served: Served
afterEach(() => served.close())

/** What an answer that came too late looks like. */
const LATE = [503, 'store_unavailable', 'there was no answer in time', '1']
const gist = ({ status, body, headers }: Awaited<ReturnType<Served['send']>>): unknown[] => [
  status,
  body.code,
  body.detail,
  headers.get('retry-after'),
]

test('a question that nobody answers is 503 after the deadline for questions', async () => {
  const admission = { waitingCount: 0, run: () => NEVER }
  served = await serve({ admission, deadlines: { ...PATIENT, decisionMs: 100 } })
  await seedAcme(served)
  const body = { permissions: [{ relation: 'viewer', resource: 'invoice:1' }] }
  expect(gist(await served.send('POST', '/oauth/decisions', { token: served.token({}), body }))).toEqual(LATE)
  expect(served.logged).toContainEqual(expect.objectContaining({ event: 'request_failed', code: 'store_unavailable' }))
})

test('a management read that nobody answers is 503 after the deadline for calls, and the connection is used again', async () => {
  const deadlines = { ...PATIENT, callMs: 1_000 }
  served = await serve({ deadlines, entitlements: (store) => ({ ...storeEntitlements(store), read: () => NEVER }) })
  await seedAcme(served)
  const token = await served.manager()
  expect(gist(await served.send('GET', '/v1/organizations/acme/entitlements', { token }))).toEqual(LATE)
  expect((await served.send('GET', '/openapi.json')).status).toBe(200)
})

test('the identity service gets the same deadline, and answers by itself', async () => {
  const given: number[] = []
  served = await serve({
    deadlines: { ...PATIENT, callMs: 1_234 },
    async handle(_req, res, deadlineMs) {
      given.push(deadlineMs)
      res.end('{}')
      return true
    },
  })
  await served.send('GET', '/oauth/jwks')
  expect(given).toEqual([1_234])
})

/** Sends a body in two pieces, the second after `pauseMs`. */
function sendSlowly(path: string, options: { token: string; type: string; method: string; pauseMs: number }) {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const headers = { authorization: `Bearer ${options.token}`, 'content-type': options.type }
  const out = request(`${served.url}${path}`, { method: options.method, headers }, async (res) => {
    let text = `${res.statusCode} `
    for await (const chunk of res) text += chunk
    resolve(text)
  }).on('error', reject)
  return { out, answer: promise }
}

test('a page that is late is a page', async () => {
  served = await serve({})
  const app = Fastify()
  addDeadline(app, { ...PATIENT, callMs: 50 })
  await app.register(async (scope) => {
    scope.setErrorHandler(async (err: Error, _request, reply) =>
      reply.code(503).type('text/html').send(`<p>${err.message}`),
    )
    scope.get('/console', () => NEVER)
  })
  const { statusCode, headers, body } = await app.inject('/console')
  expect([statusCode, headers['content-type'], body]).toEqual([503, 'text/html', '<p>there was no answer in time'])
  await app.close()
})

test('the deadline begins when the body has arrived', async () => {
  served = await serve({ deadlines: { ...PATIENT, callMs: 2_000 } })
  await seedAcme(served)
  const token = await served.manager()
  const path = '/v1/organizations/acme/entitlements/feature.slow'
  const { out, answer } = sendSlowly(path, { token, type: 'application/json', method: 'PUT', pauseMs: 0 })
  out.write('{"value":')
  await new Promise((done) => setTimeout(done, 2_500))
  out.end('true}')
  expect(await answer).toMatch(/^201 /)
})

test('a call that streams has none', async () => {
  served = await serve({ deadlines: { ...PATIENT, callMs: 200 } })
  await seedAcme(served)
  const token = await served.manager()
  const path = '/v1/organizations/acme/relationships:import'
  const { out, answer } = sendSlowly(path, { token, type: 'application/x-ndjson', method: 'POST', pauseMs: 0 })
  out.write('{"object":"invoice:9","relation":"viewer","subject":"user:ann"}\n')
  await new Promise((done) => setTimeout(done, 600))
  out.end()
  expect(await answer).toMatch(/^200 .*"done":true/s)
})

test('a call that waits for an event has a time of its own', async () => {
  served = await serve({ deadlines: { ...PATIENT, callMs: 200 } })
  const token = await served.manager()
  const { body: last } = await served.send('GET', '/v1/events', { token })
  const { status, body } = await served.send('GET', `/v1/events?wait=1&after=${last.next}`, { token })
  expect([status, body]).toEqual([200, { items: [], next: last.next }])
})
