import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entitlement, ISSUER, openSignals, type SignalWorld, setsOf } from './world.ts'

let world: SignalWorld
let token: string
beforeAll(async () => {
  world = await openSignals()
  token = await world.client('receiver')
})
afterAll(() => world.close())

const call = (method: string, path: string, body?: object, by = token) =>
  world.send(method, path, { token: by, ...(body === undefined ? {} : { body }) })

describe('authorization', () => {
  const CALLS = [
    ['POST', '/ssf/stream', {}],
    ['GET', '/ssf/stream', undefined],
    ['DELETE', '/ssf/stream?stream_id=s', undefined],
    ['GET', '/ssf/status?stream_id=s', undefined],
    ['POST', '/ssf/status', { stream_id: 's', status: 'paused' }],
    ['POST', '/ssf/verify', { stream_id: 's' }],
    ['GET', '/v1/streams', undefined],
  ] as const

  test.each(CALLS)('%s %s refuses no token, an invalid token, and a token in the query', async (method, path, body) => {
    const sent = body === undefined ? {} : { body }
    const none = await world.send(method, path, sent)
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, expect.stringMatching(/^Bearer/)])
    const wrong = await world.send(method, path, { token: 'wrong', ...sent })
    expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('invalid_token'),
    ])
    const query = `${path}${path.includes('?') ? '&' : '?'}access_token=${token}`
    expect((await world.send(method, query, sent)).status).toBe(401)
    expect((await world.send(method, query, { token, ...sent })).status).toBeGreaterThanOrEqual(400)
  })

  test('the scope ssf.read reads and does not create', async () => {
    const by = await world.client('reading', { scopes: ['ssf.read'] })
    expect((await call('GET', '/ssf/stream', undefined, by)).status).toBe(200)
    const refused = await call('POST', '/ssf/stream', {}, by)
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      403,
      expect.stringMatching(/insufficient_scope.*ssf\.manage/),
    ])
    for (const [method, path, body] of [
      ['PATCH', '/ssf/stream', { stream_id: 's' }],
      ['PUT', '/ssf/stream', { stream_id: 's' }],
      ['DELETE', '/ssf/stream?stream_id=s', undefined],
      ['POST', '/ssf/status', { stream_id: 's', status: 'paused' }],
      ['POST', '/ssf/verify', { stream_id: 's' }],
    ] as const)
      expect((await call(method, path, body, by)).status).toBe(403)
  })

  test('a token of a person, of another audience, or of a client that lost the scope is refused', async () => {
    const scopes = new Set(['ssf.manage'])
    const person = world.token({ scopes, audiences: [ISSUER] })
    expect((await call('GET', '/ssf/stream', undefined, person)).status).toBe(403)
    const subject = { type: 'service', id: 'receiver' } as const
    const elsewhere = world.token({ subject, clientId: 'receiver', scopes, audiences: ['https://api.example.test'] })
    expect((await call('GET', '/ssf/stream', undefined, elsewhere)).status).toBe(401)
    await world.client('reduced', { scopes: [] })
    const reduced = { type: 'service', id: 'reduced' } as const
    const former = world.token({
      subject: reduced,
      clientId: 'reduced',
      scopes,
      audiences: [ISSUER],
      organization: null,
    })
    expect((await call('GET', '/ssf/stream', undefined, former)).status).toBe(403)
  })
})

describe('status and verification', () => {
  test('the status is what was written, with its reason', async () => {
    const { stream_id: id } = await world.stream(token)
    expect((await call('GET', `/ssf/status?stream_id=${id}`)).body).toEqual({ stream_id: id, status: 'enabled' })
    const written = { stream_id: id, status: 'paused', reason: 'maintenance' }
    expect((await call('POST', '/ssf/status', written)).body).toEqual(written)
    expect((await call('GET', `/ssf/status?stream_id=${id}`)).body).toEqual(written)
  })

  test('a receiver that changes the status itself gets no event about it', async () => {
    const { stream_id: id } = await world.stream(token)
    for (const status of ['paused', 'enabled']) await call('POST', '/ssf/status', { stream_id: id, status })
    expect((await world.poll(token, id)).body.sets).toEqual({})
  })

  test('a verification sooner than the interval is 429, and one of a disabled stream 409', async () => {
    const { stream_id: id } = await world.stream(token)
    expect((await call('POST', '/ssf/verify', { stream_id: id })).status).toBe(204)
    expect((await call('POST', '/ssf/verify', { stream_id: id })).status).toBe(429)
    const { stream_id: other } = await world.stream(token)
    await call('POST', '/ssf/status', { stream_id: other, status: 'disabled' })
    expect((await call('POST', '/ssf/verify', { stream_id: other })).status).toBe(409)
  })

  test('an unknown stream is 404', async () => {
    for (const [method, path, body] of [
      ['GET', '/ssf/status?stream_id=unknown', undefined],
      ['POST', '/ssf/status', { stream_id: 'unknown', status: 'paused' }],
      ['POST', '/ssf/verify', { stream_id: 'unknown' }],
      ['PATCH', '/ssf/stream', { stream_id: 'unknown' }],
    ] as const)
      expect((await call(method, path, body)).status).toBe(404)
  })
})

describe('operators', () => {
  test('see the streams of all receivers, pause and resume them, and send a verification', async () => {
    const operator = await world.client('operator', { scopes: ['streams:write'] })
    const { stream_id: id } = await world.stream(token)
    await world.emit(entitlement('acme', 1))
    const { body } = await call('GET', '/v1/streams', undefined, operator)
    expect(body.items.map((item: { stream_id: string }) => item.stream_id)).toContain(id)
    expect((await call('POST', `/v1/streams/${id}/pause`, { reason: 'because' }, operator)).status).toBe(204)
    expect((await call('GET', `/v1/streams/${id}`, undefined, operator)).body).toMatchObject({
      stream_id: id,
      client_id: 'receiver',
      status: 'paused',
      reason: 'because',
    })
    expect((await call('POST', `/v1/streams/${id}/resume`, {}, operator)).status).toBe(204)
    expect((await call('POST', `/v1/streams/${id}/verify`, undefined, operator)).status).toBe(204)
    const types = setsOf(await world.poll(token, id)).map(({ event }) => event.type.split('/').at(-1))
    expect(types).toEqual(['stream-updated', 'stream-updated', 'verification', 'entitlement-updated'])
    expect((await call('GET', '/v1/streams/unknown', undefined, operator)).status).toBe(404)
  })

  test('need a scope of their own, and a client without an organization', async () => {
    expect((await call('GET', '/v1/streams')).status).toBe(403)
    const bound = await world.client('bound-operator', { scopes: ['streams:write'], organization: 'acme' })
    expect((await call('GET', '/v1/streams', undefined, bound)).status).toBe(403)
    const reader = await world.client('reading-operator', { scopes: ['streams:read'] })
    expect((await call('GET', '/v1/streams', undefined, reader)).status).toBe(200)
    expect((await call('POST', '/v1/streams/s/pause', {}, reader)).status).toBe(403)
  })
})
