import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER, openSignals, POLL, PUSH, type SignalWorld, setsOf } from './world.ts'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type'
let world: SignalWorld
let token: string
beforeAll(async () => {
  world = await openSignals()
  token = await world.client('receiver')
})
afterAll(() => world.close())

const call = (method: string, path: string, body?: object, by = token) =>
  world.send(method, path, { token: by, ...(body === undefined ? {} : { body }) })
const read = (id: unknown, by = token) => call('GET', `/ssf/stream?stream_id=${id}`, undefined, by)

test('the metadata is about the issuer, and each URL of it is below the issuer', async () => {
  const { status, headers, body } = await world.send('GET', '/.well-known/ssf-configuration')
  expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('application/json')])
  expect(body).toEqual({
    spec_version: '1_0',
    issuer: ISSUER,
    jwks_uri: `${ISSUER}/oauth/jwks`,
    delivery_methods_supported: [PUSH, POLL],
    configuration_endpoint: `${ISSUER}/ssf/stream`,
    status_endpoint: `${ISSUER}/ssf/status`,
    verification_endpoint: `${ISSUER}/ssf/verify`,
    add_subject_endpoint: `${ISSUER}/ssf/subjects:add`,
    remove_subject_endpoint: `${ISSUER}/ssf/subjects:remove`,
    authorization_schemes: [{ spec_urn: 'urn:ietf:rfc:6749' }],
    default_subjects: 'ALL',
  })
})

describe('a stream', () => {
  test('is created, read, listed and deleted', async () => {
    const by = await world.client('of-one')
    expect((await call('GET', '/ssf/stream', undefined, by)).body).toEqual([])
    const { status, headers, body } = await call('POST', '/ssf/stream', { description: 'the first' }, by)
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store'])
    expect(body).toMatchObject({
      iss: ISSUER,
      aud: 'of-one',
      description: 'the first',
      delivery: { method: POLL, endpoint_url: `${ISSUER}/ssf/poll/${body.stream_id}` },
      min_verification_interval: 30,
      subject_format: 'complex',
    })
    expect((await read(body.stream_id, by)).body).toEqual(body)
    expect((await call('GET', '/ssf/stream', undefined, by)).body).toEqual([body])
    expect((await call('DELETE', `/ssf/stream?stream_id=${body.stream_id}`, undefined, by)).status).toBe(204)
    expect((await read(body.stream_id, by)).status).toBe(404)
    expect((await call('DELETE', `/ssf/stream?stream_id=${body.stream_id}`, undefined, by)).status).toBe(404)
  })

  test('is one of several of a receiver', async () => {
    const statuses = [await call('POST', '/ssf/stream', {}), await call('POST', '/ssf/stream', {})]
    expect(statuses.map(({ status }) => status)).toEqual([201, 201])
  })

  test('advertises the events of CAEP in events_delivered, and none that it never sends', async () => {
    const { body } = await call('POST', '/ssf/stream', {})
    expect(body.events_delivered).toEqual(
      expect.arrayContaining([`${CAEP}/session-revoked`, `${CAEP}/credential-change`, `${CAEP}/token-claims-change`]),
    )
    expect(body.events_delivered).not.toContain(`${CAEP}/session-established`)
    const asked = [`${CAEP}/session-revoked`, 'urn:unknown', `${CAEP}/device-compliance-change`]
    const other = await call('POST', '/ssf/stream', { events_requested: asked })
    expect(other.body).toMatchObject({ events_requested: asked, events_delivered: [`${CAEP}/session-revoked`] })
  })

  test('of another receiver is unknown', async () => {
    const { stream_id: id } = await world.stream(token)
    const by = await world.client('another')
    expect((await read(id, by)).status).toBe(404)
    for (const [method, path, body] of [
      ['PATCH', '/ssf/stream', { stream_id: id }],
      ['PUT', '/ssf/stream', { stream_id: id }],
      ['DELETE', `/ssf/stream?stream_id=${id}`, undefined],
      ['GET', `/ssf/status?stream_id=${id}`, undefined],
      ['POST', '/ssf/status', { stream_id: id, status: 'disabled' }],
      ['POST', '/ssf/subjects:add', { stream_id: id, subject: { format: 'opaque', id: '1' } }],
      ['POST', '/ssf/subjects:remove', { stream_id: id, subject: { format: 'opaque', id: '1' } }],
      ['POST', '/ssf/verify', { stream_id: id }],
    ] as const)
      expect((await call(method, path, body, by)).status, `${method} ${path}`).toBe(404)
    expect((await read(id)).status).toBe(200)
  })

  test('of the environment is unknown to a token of the same client that is limited to an organization', async () => {
    const { stream_id: id } = await world.stream(token)
    const limited = world.token({
      subject: { type: 'service', id: 'receiver' },
      clientId: 'receiver',
      organization: 'acme',
      scopes: new Set(['ssf.manage']),
      audiences: [ISSUER],
    })
    expect((await read(id, limited)).status).toBe(404)
    expect((await call('GET', '/ssf/stream', undefined, limited)).body).toEqual([])
  })

  test('is patched: what is absent stays', async () => {
    const stream = await world.stream(token, { description: 'before', events_requested: [`${CAEP}/session-revoked`] })
    const { status, body } = await call('PATCH', '/ssf/stream', { stream_id: stream.stream_id, description: 'after' })
    expect([status, body]).toEqual([200, { ...stream, description: 'after' }])
    expect((await call('PATCH', '/ssf/stream', body)).body).toEqual(body)
  })

  test.each([
    ['events_delivered', []],
    ['events_supported', ['urn:more']],
    ['aud', 'somebody'],
    ['iss', 'https://other.example'],
    ['min_verification_interval', 0],
  ])('is not patched with another %s', async (name, value) => {
    const { stream_id: id } = await world.stream(token)
    expect((await call('PATCH', '/ssf/stream', { stream_id: id, [name]: value })).status).toBe(400)
    expect((await call('PUT', '/ssf/stream', { stream_id: id, [name]: value })).status).toBe(400)
  })

  test('is replaced: what is absent is deleted', async () => {
    const stream = await world.stream(token, { description: 'before', events_requested: [`${CAEP}/session-revoked`] })
    const { status, body } = await call('PUT', '/ssf/stream', { stream_id: stream.stream_id })
    expect([status, body.description, body.events_requested]).toEqual([200, undefined, undefined])
  })

  test('never shows the Authorization field, and keeps it while the endpoint stays', async () => {
    const delivery = {
      method: PUSH,
      endpoint_url: 'https://receiver.example/events',
      authorization_header: 'Bearer s3cret',
    }
    const stream = await world.stream(token, { delivery })
    expect(JSON.stringify(stream)).not.toContain('s3cret')
    const sealed = async () =>
      (
        await world.sql.query<{ sealed: string | null }>(
          'select authorization_sealed as sealed from signal_stream where stream_id = $1',
          [stream.stream_id],
        )
      )[0]?.sealed
    const before = await sealed()
    expect(before).toEqual(expect.stringMatching(/^v1\./))
    await call('PATCH', '/ssf/stream', stream)
    expect(await sealed()).toBe(before)
    await call('PATCH', '/ssf/stream', {
      stream_id: stream.stream_id,
      delivery: { method: PUSH, endpoint_url: 'https://elsewhere.example/' },
    })
    expect(await sealed()).toBeNull()
  })

  test('goes with its client', async () => {
    const by = await world.client('leaving')
    const { stream_id: id } = await world.stream(by)
    await world.directory.deleteClient('leaving', { actor: 'test', requestId: 'test' })
    expect(await world.transmitter.operator.state(id)).toBeNull()
  })
})

test.each([
  'http://receiver.example/events',
  'https://169.254.169.254/latest',
  'https://10.0.0.1/',
  'https://[::1]/',
  'https://[::ffff:192.168.0.1]/',
  'https://167772161/',
  'https://0xa.1/',
  'https://user:password@receiver.example/',
  'https://receiver.example/#fragment',
  'file:///etc/passwd',
  'not a url',
])('refuses to push to %s', async (url) => {
  const { status, body } = await call('POST', '/ssf/stream', { delivery: { method: PUSH, endpoint_url: url } })
  expect([status, body.errors?.[0]?.pointer]).toEqual([400, '/delivery/endpoint_url'])
})

test.each([
  ['POST', '/ssf/stream', { delivery: {} }],
  ['POST', '/ssf/stream', { delivery: { method: 'urn:other' } }],
  ['POST', '/ssf/stream', { delivery: { method: PUSH } }],
  ['POST', '/ssf/stream', { delivery: { method: POLL, endpoint_url: 'https://receiver.example' } }],
  ['POST', '/ssf/stream', { delivery: { method: POLL, authorization_header: 'Bearer x' } }],
  [
    'POST',
    '/ssf/stream',
    { delivery: { method: PUSH, endpoint_url: 'https://a.example', authorization_header: 'a\r\nb' } },
  ],
  ['POST', '/ssf/stream', { events_requested: 'all' }],
  ['POST', '/ssf/stream', { subject_format: 'email' }],
  ['POST', '/ssf/stream', []],
  ['PATCH', '/ssf/stream', {}],
  ['PUT', '/ssf/stream', { description: 'which' }],
  ['DELETE', '/ssf/stream', undefined],
  ['GET', '/ssf/status', undefined],
  ['POST', '/ssf/status', { stream_id: 's' }],
  ['POST', '/ssf/status', { stream_id: 's', status: 'on' }],
  ['POST', '/ssf/verify', {}],
  ['POST', '/ssf/verify', { stream_id: 's', state: 7 }],
  ['POST', '/ssf/subjects:add', { stream_id: 's' }],
  ['POST', '/ssf/subjects:remove', { subject: { format: 'opaque', id: '1' } }],
] as const)('a broken body is 400: %s %s %j', async (method, path, body) => {
  expect((await call(method, path, body)).status).toBe(400)
})

test('a body that is not JSON is 400', async () => {
  expect((await world.send('POST', '/ssf/stream', { token, raw: '{' })).status).toBe(400)
})

describe('subjects', () => {
  const ALICE = { format: 'iss_sub', iss: ISSUER, sub: 'alice' }

  test('a removed subject is left out until it is added again', async () => {
    const { stream_id: id } = await world.stream(token)
    const subject = { format: 'complex', user: ALICE }
    const removed = await call('POST', '/ssf/subjects:remove', { stream_id: id, subject })
    expect([removed.status, removed.body]).toEqual([204, null])
    const ended = (user: string) =>
      ({ type: 'session.revoked', organization: null, data: { session: `of-${user}`, user, tenants: [] } }) as const
    await world.emit(ended('alice'), ended('bob'))
    const left = setsOf(await world.poll(token, id))
    expect(left.map(({ subject: about }) => about.format === 'complex' && about.parts.get('session'))).toEqual([
      { format: 'opaque', id: 'of-bob' },
    ])
    const added = await call('POST', '/ssf/subjects:add', { stream_id: id, subject, verified: true })
    expect([added.status, added.body]).toEqual([200, null])
    await world.emit(ended('alice'))
    expect(setsOf(await world.poll(token, id))).toHaveLength(2)
  })

  test.each([{ format: 'complex' }, { format: 'email', email: 'x' }, { ...ALICE, more: 1 }, { user: ALICE }])(
    'refuses the subject %j',
    async (subject) => {
      const { stream_id: id } = await world.stream(token)
      for (const path of ['/ssf/subjects:add', '/ssf/subjects:remove'])
        expect((await call('POST', path, { stream_id: id, subject })).status).toBe(400)
    },
  )

  test('verification of a stream cannot be removed', async () => {
    const { stream_id: id } = await world.stream(token)
    await call('POST', '/ssf/subjects:remove', { stream_id: id, subject: { format: 'opaque', id } })
    await call('POST', '/ssf/verify', { stream_id: id })
    expect(setsOf(await world.poll(token, id))).toHaveLength(1)
  })
})
