import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { field } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { callList, callUnary, type GrpcService, METHODS, startGrpcService } from '../support/grpc.ts'
import { type Harness, PROMPT_MS, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'

const ROUTES = `POST /docs.Docs/Get: viewer doc:{header.x-doc}
POST /docs.Docs/List: viewer doc:{header.x-doc}
POST /docs.Docs/Upload: editor doc:{header.x-doc}
POST /docs.Docs/Chat: viewer doc:{header.x-doc}
POST /docs.Docs/Gated: entitlement feature.docs
POST /docs.Docs/Admin: scope admin`
const ALLOWED = ['alice viewer doc:1', 'alice editor doc:1']

let service: GrpcService
let h: Harness
let client: Client
const closers: (() => unknown)[] = []
beforeAll(async () => {
  service = await startGrpcService()
})
afterAll(() => service.close())
beforeEach(() => Object.assign(service, { onGet: null, onList: null }).seen.splice(0))
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function start(options: Partial<Parameters<typeof startHarness>[0]> = {}): Promise<void> {
  h = await startHarness({ routes: ROUTES, script: tuples(ALLOWED), ...options })
  closers.push(h.close)
  forwardTo(service.origin)
  client = clientOf(credentials.createInsecure())
}
function forwardTo(url: string): void {
  h.upstream.origin = `{url: "${url}", http2: true}`
  h.apply(ROUTES)
}
function clientOf(channel: ChannelCredentials, authority = 'app.test'): Client {
  const opened = new Client(`127.0.0.1:${h.port}`, channel, { 'grpc.default_authority': authority })
  closers.unshift(() => opened.close())
  return opened
}
async function metadataFor(doc: string | null, token?: string | null): Promise<Metadata> {
  const metadata = new Metadata()
  if (token !== null) metadata.set('authorization', `Bearer ${token ?? (await h.issuer.token())}`)
  if (doc !== null) metadata.set('x-doc', doc)
  return metadata
}

describe('a gRPC call', () => {
  beforeEach(() => start())

  test('with one message each way carries metadata, trailers and who asks', async () => {
    const metadata = await metadataFor('1')
    metadata.set('x-auth-subject', 'root')
    metadata.set('x-trace-bin', Buffer.from([0, 255, 10]))
    const { value, error, initial, trailer } = await callUnary(client, metadata)
    expect([error, value]).toEqual([null, 'got it'])
    expect([initial?.get('x-initial'), trailer?.get('x-trailer')]).toEqual([['first'], ['last']])
    expect(service.seen[0]?.metadata.get('x-auth-subject')).toEqual(['alice'])
    expect(service.seen[0]?.metadata.get('x-trace-bin')).toEqual([Buffer.from([0, 255, 10])])
    expect(service.seen[0]?.metadata.get('authorization')).toEqual([])
  })

  test('that streams answers gets them all', async () => {
    const { messages, ended } = callList(client, await metadataFor('1'))
    expect(await ended).toBeNull()
    expect(messages.length).toBe(100)
  })

  test('that streams a request sends it all', async () => {
    const { path, requestSerialize, responseDeserialize } = METHODS.Upload
    const metadata = await metadataFor('1')
    const size = await new Promise((resolve, reject) => {
      const call = client.makeClientStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        metadata,
        (err, value) => (err === null ? resolve(value) : reject(err)),
      )
      for (let at = 0; at < 50; at += 1) call.write('x'.repeat(100_000))
      call.end()
    })
    expect(size).toBe('5000000')
  })

  test('that streams both ways answers before its request has ended', async () => {
    const { path, requestSerialize, responseDeserialize } = METHODS.Chat
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, await metadataFor('1'))
    const answers: string[] = []
    call.on('data', (text: string) => {
      answers.push(text)
      if (answers.length < 5) call.write(`${answers.length}`)
      else call.end()
    })
    call.write('0')
    await new Promise((resolve) => call.on('end', resolve))
    expect(answers).toEqual(['echo 0', 'echo 1', 'echo 2', 'echo 3', 'echo 4'])
  })

  test.each([
    [status.NOT_FOUND, 'no such thing, 50 % off: é'],
    [status.INTERNAL, ''],
  ])('that the service ends with status %i has it passed on with its message and metadata', async (code, details) => {
    service.onGet = (_call, done) => {
      const metadata = new Metadata()
      metadata.set('x-why', 'because')
      done({ code, details, metadata })
    }
    const { error } = await callUnary(client, await metadataFor('1'))
    expect([error?.code, error?.details, error?.metadata.get('x-why')]).toEqual([code, details, ['because']])
  })

  test('has its deadline told to the service, and is cancelled there when it has passed', async () => {
    service.onGet = () => undefined
    const { error } = await callUnary(client, await metadataFor('1'), { deadline: Date.now() + 1_500 })
    expect(error?.code).toBe(status.DEADLINE_EXCEEDED)
    // It travels as a duration, so the time on the way is added to it.
    expect(Number(service.seen[0]?.deadline)).toBeLessThan(Date.now() + 1_500)
    await until(() => service.seen[0]?.cancelled === true)
  })

  test('that the client cancels is cancelled at the service', async () => {
    service.onList = (call) => void call.write('first')
    const { stream, ended } = callList(client, await metadataFor('1'))
    await new Promise((resolve) => stream.once('data', resolve))
    stream.cancel()
    expect((await ended)?.code).toBe(status.CANCELLED)
    await until(() => service.seen[0]?.cancelled === true)
  })

  test('whose service is gone is UNAVAILABLE', async () => {
    forwardTo('http://127.0.0.1:1')
    expect((await callUnary(client, await metadataFor('1'))).error?.code).toBe(status.UNAVAILABLE)
  })
})

describe('a refused gRPC call', () => {
  beforeEach(() => start())

  test.each([
    ['without a token', '1', null, status.UNAUTHENTICATED, 'token_missing'],
    ['with a token that is none', '1', 'nonsense', status.UNAUTHENTICATED, 'token_invalid'],
    ['for another document', '2', undefined, status.PERMISSION_DENIED, 'permission_denied'],
    ['without the metadata that the check reads', null, undefined, status.INVALID_ARGUMENT, 'request_invalid'],
  ])('%s has its status, the problem and the challenge', async (_name, doc, token, code, problem) => {
    const { error } = await callUnary(client, await metadataFor(doc, token))
    expect([error?.code, error?.metadata.get('portcullis-problem')]).toEqual([code, [problem]])
    expect(error?.metadata.get('x-request-id').length).toBe(1)
    const challenges = error?.metadata.get('www-authenticate') ?? []
    expect(challenges.length > 0).toBe(code === status.UNAUTHENTICATED)
    expect(service.seen).toEqual([])
  })

  test('says which capability or scope is lacking', async () => {
    const gated = await callUnary(client, await metadataFor('1'), METHODS.Gated)
    expect([gated.error?.code, gated.error?.details]).toEqual([
      status.PERMISSION_DENIED,
      'The organization lacks a required entitlement: feature.docs',
    ])
    const admin = await callUnary(client, await metadataFor('1'), METHODS.Admin)
    expect(admin.error?.details).toBe('The access token lacks a required scope: admin')
  })

  test('of a method without a route is UNIMPLEMENTED, of another host or while the PDP is away UNAVAILABLE', async () => {
    const metadata = await metadataFor('1')
    const call = async (path: string, authority: string): Promise<number | undefined> => {
      const other = clientOf(credentials.createInsecure(), authority)
      return (await callUnary(other, metadata, { path })).error?.code
    }
    expect(await call('/docs.Docs/Nothing', 'app.test')).toBe(status.UNIMPLEMENTED)
    expect(await call('/docs.Docs/Get', 'other.test')).toBe(status.UNAVAILABLE)
    await h.pdp.stop()
    expect(await call('/docs.Docs/Get', 'app.test')).toBe(status.UNAVAILABLE)
    expect(service.seen).toEqual([])
  })

  test('that streams its request is refused before its end', async () => {
    const { path, requestSerialize, responseDeserialize } = METHODS.Upload
    const metadata = await metadataFor('2')
    const error = await new Promise<ServiceError | null>((resolve) => {
      const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, metadata, resolve)
      call.write('never ends')
    })
    expect([error?.code, service.seen.length]).toEqual([status.PERMISSION_DENIED, 0])
  })

  test('is a header section alone, with HTTP status 200', async () => {
    const session = openSession(h.port)
    const headers = { 'content-type': 'application/grpc+proto', te: 'trailers' }
    const flags = new Promise((resolve) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/docs.Docs/Get',
        ':authority': 'app.test',
        ...headers,
      })
      stream.on('error', () => undefined)
      stream.on('response', (got, flag) => resolve([got[':status'], got['content-type'], got['grpc-status'], flag & 1]))
    })
    expect(await flags).toEqual([200, 'application/grpc', '16', 1])
    session.destroy()
  })

  test.each(['application/json', 'application/grpc-web', 'application/grpcfoo', 'text/plain; application/grpc'])(
    'is meant for gRPC only: %s is answered as HTTP',
    async (type) => {
      const session = openSession(h.port)
      const answer = await ask(session, 'POST /docs.Docs/Get', { headers: { 'content-type': type } })
      expect([answer.status, answer.headers['grpc-status']]).toEqual([401, undefined])
      session.destroy()
      const over1 = await h.send('POST /docs.Docs/Get', { token: null, fields: ['Content-Type: application/grpc'] })
      expect([over1.status, field(over1, 'grpc-status')]).toEqual([401, null])
    },
  )
})

describe('a gRPC call that lasts', () => {
  test('ends at once when the permission is revoked, with the status and the reason', async () => {
    await start()
    service.onList = (call) => void call.write('first')
    const { messages, ended } = callList(client, await metadataFor('1'))
    await until(() => h.pdp.watched() === 1)
    h.pdp.script = tuples([])
    const revokedMs = performance.now()
    h.pdp.changed()
    const error = await ended
    expect([error?.code, error?.metadata.get('portcullis-problem')]).toEqual([
      status.PERMISSION_DENIED,
      ['permission_denied'],
    ])
    expect(performance.now() - revokedMs).toBeLessThan(PROMPT_MS)
    expect(messages).toEqual(['first'])
    await until(() => service.seen[0]?.cancelled === true)
  })

  test('ends at the expiry of its token', async () => {
    await start()
    service.onList = (call) => void call.write('first')
    const exp = Math.floor(Date.now() / 1_000) + 2
    const { ended } = callList(client, await metadataFor('1', await h.issuer.token({ exp })))
    const error = await ended
    expect([error?.code, error?.metadata.get('portcullis-problem')]).toEqual([
      status.UNAUTHENTICATED,
      ['token_expired'],
    ])
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000)
    await until(() => service.seen[0]?.cancelled === true)
  })

  test('ends although the service has said nothing yet', async () => {
    await start()
    service.onList = () => undefined
    const { ended } = callList(client, await metadataFor('1'))
    await until(() => h.pdp.watched() === 1)
    h.pdp.script = tuples([])
    h.pdp.changed()
    expect((await ended)?.code).toBe(status.PERMISSION_DENIED)
    await until(() => service.seen[0]?.cancelled === true)
  })

  test('may be silent on either side for longer than other requests', async () => {
    await start({ limits: { upstreamHeadersMs: 200, bodyIdleMs: 200 } })
    const { path, requestSerialize, responseDeserialize } = METHODS.Chat
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, await metadataFor('1'))
    const answers: string[] = []
    call.on('data', (text: string) => void answers.push(text))
    call.on('error', () => undefined)
    await new Promise((resolve) => setTimeout(resolve, 600))
    call.write('late')
    await until(() => answers.length === 1)
    await new Promise((resolve) => setTimeout(resolve, 600))
    call.write('later')
    await until(() => answers.length === 2)
    call.end()
  })

  test('ends in order when the sidecar drains', async () => {
    await start()
    const finishing: (() => void)[] = []
    service.onList = (call) => {
      call.write('first')
      finishing.push(() => {
        call.write('last')
        call.end()
      })
    }
    const { messages, ended } = callList(client, await metadataFor('1'))
    await until(() => messages.length === 1)
    const closed = h.sidecar.close()
    setTimeout(() => finishing[0]?.(), 200)
    expect([await ended, messages]).toEqual([null, ['first', 'last']])
    await closed
  })
})

test('a gRPC client reaches the service over TLS', async () => {
  const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  const tls = { ca: null, cert: Buffer.from(made.certificate), key: Buffer.from(made.key) }
  await start({ extra: 'hosts: [localhost]', certificates: { ...NO_CERTIFICATES, tls } })
  const secure = credentials.createSsl(Buffer.from(made.authority))
  client = new Client(`localhost:${h.port}`, secure)
  closers.unshift(() => client.close())
  expect((await callUnary(client, await metadataFor('1'))).value).toBe('got it')
})
