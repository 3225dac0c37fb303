/** When the sidecar cannot answer well, a door refuses, and in a form that no gateway may be told to let pass. */
import { connect } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { expect, test } from 'vitest'
import { CheckRequestSchema, CheckResponseSchema } from '../../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { DOOR_PROFILES, HTTP_PROFILES, type HttpProfile } from '../../../sidecar/http/door-fields.ts'
import { field, type RawAnswer } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import {
  checkOf,
  type DoorHarness,
  linesOf,
  openAndClose,
  readCheckResponse,
  SECRET,
  WITHOUT_BODIES,
} from './door-harness.ts'

const ALICE = tuples(['alice viewer doc:1'])
let doors: DoorHarness
const open = openAndClose()

const bearer = async (): Promise<readonly [string, string]> => [
  'authorization',
  `Bearer ${await doors.inner.issuer.token()}`,
]

test('allows only by an explicit yes in time: a silent, wrong or dead PDP is 503 in a denied response (Authorino #649)', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, limits: { pdpTimeoutMs: 200 } })
  const request = { target: '/docs/1', fields: [await bearer()] }
  for (const script of [() => null, () => 'internal', () => 'unavailable']) {
    doors.inner.pdp.script = script
    for (const profile of DOOR_PROFILES)
      expect({ profile, ...(await doors.ask(profile, request)) }).toMatchObject({ profile, status: 503 })
  }
  await doors.inner.pdp.stop()
  for (const profile of DOOR_PROFILES)
    expect({ profile, ...(await doors.ask(profile, request)) }).toMatchObject({ profile, status: 503 })
})

test('answers before the deadline of the gateway, because Envoy may be told to let a late answer pass', async () => {
  doors = await open({
    routes: WITHOUT_BODIES,
    script: () => null,
    profiles: ['envoy'],
    limits: { pdpTimeoutMs: 60_000 },
  })
  const message = Buffer.from(
    toBinary(CheckRequestSchema, checkOf({ target: '/docs/1', fields: [await bearer()] }, true)),
  )
  expect(await askRaw(message, { deadlineMs: 2_000 })).toMatchObject({ code: 0 })
})

test('answers a question that cannot be read by a denied response and not by an error', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy'] })
  for (const bytes of [Buffer.from('nonsense'), Buffer.alloc(6 * 1024 * 1024, 0xff), Buffer.alloc(0)])
    expect(await askRaw(bytes, { deadlineMs: 20_000 })).toMatchObject({ code: 0, denied: true })
})

/** `code`: of gRPC. */
function askRaw(bytes: Buffer, { deadlineMs }: { deadlineMs: number }): Promise<{ code: number; denied: boolean }> {
  const client = new Client(`127.0.0.2:${doors.port('envoy')}`, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('x-portcullis-caller', SECRET)
  const same = (one: Buffer): Buffer => one
  return new Promise((resolve) => {
    const path = '/envoy.service.auth.v3.Authorization/Check'
    client.makeUnaryRequest(path, same, same, bytes, metadata, { deadline: Date.now() + deadlineMs }, (err, answer) => {
      client.close()
      // Field 2 of the answer is the denied response, field 3 the other one.
      resolve({ code: err?.code ?? 0, denied: answer?.includes(0x12) === true && answer[0] === 0x0a })
    })
  })
}

test('refuses a question that the gRPC library cannot take, and sends no error that a gateway may let pass', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy'] })
  const good = Buffer.from(toBinary(CheckRequestSchema, checkOf({ target: '/public' }, true)))
  const large = Buffer.alloc(17 * 1024 * 1024)
  const QUESTIONS: readonly (readonly [string, readonly Buffer[], { readonly [name: string]: string }, number])[] = [
    ['one that is good', [frame(good)], {}, 200],
    ['a message that is too large', [frame(large)], {}, 413],
    [
      'a message that says that it is too large',
      [Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), Buffer.alloc(100)],
      {},
      413,
    ],
    ['a message that is too large once it is unpacked', [frame(gzipSync(large), 1)], { 'grpc-encoding': 'gzip' }, 413],
    ['a message that is badly packed', [frame(good, 1)], { 'grpc-encoding': 'gzip' }, 503],
    ['a message that is packed in an unknown way', [frame(good, 1)], { 'grpc-encoding': 'br' }, 503],
    ['no message', [], {}, 503],
    ['a second message', [frame(good), frame(good)], {}, 503],
    ['a malformed time', [frame(good)], { 'grpc-timeout': 'soon' }, 503],
  ]
  for (const [what, chunks, fields, status] of QUESTIONS)
    expect({ what, ...(await askHttp2(chunks, fields)) }).toEqual({ what, grpc: '0', status })
  expect(doors.inner.log).toContainEqual(
    expect.objectContaining({ event: 'door_unfit', reason: expect.stringContaining('larger than max') }),
  )
  // The door goes on.
  expect(await doors.ask('envoy', { target: '/public' })).toMatchObject({ status: 200 })
})

const frame = (message: Buffer, packed = 0): Buffer => {
  const head = Buffer.from([packed, 0, 0, 0, 0])
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** `grpc`: the status of the call; `status`: 200 when the request may pass, else of the refusal. */
function askHttp2(
  chunks: readonly Buffer[],
  fields: { readonly [name: string]: string },
): Promise<{ grpc: string; status: number }> {
  // In megabytes: a client of Node would else refuse what it sends itself.
  const session = connect(`http://127.0.0.2:${doors.port('envoy')}`, { maxSessionMemory: 100 })
  session.on('error', () => undefined)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.auth.v3.Authorization/Check',
    'content-type': 'application/grpc',
    te: 'trailers',
    'x-portcullis-caller': SECRET,
    ...fields,
  })
  const parts: Buffer[] = []
  let grpc = ''
  // An answer without a message has its status in the first header section.
  stream.on('response', (own) => {
    grpc = String(own['grpc-status'] ?? '')
  })
  stream.on('trailers', (own) => {
    grpc = String(own['grpc-status'] ?? '')
  })
  stream.on('data', (part: Buffer) => parts.push(part))
  stream.on('error', () => undefined)
  for (const chunk of chunks) stream.write(chunk)
  stream.end()
  return new Promise((resolve) =>
    stream.once('close', () => {
      session.destroy()
      const message = Buffer.concat(parts).subarray(5)
      const answer = message.length === 0 ? null : readCheckResponse(fromBinary(CheckResponseSchema, message))
      resolve({ grpc, status: answer?.status ?? 0 })
    }),
  )
}

test('lets a question that it holds when it stops have its answer', async () => {
  doors = await open({
    routes: WITHOUT_BODIES,
    script: () => null,
    profiles: ['envoy'],
    limits: { pdpTimeoutMs: 3_000 },
  })
  const asked = doors.ask('envoy', { target: '/docs/1', fields: [await bearer()] })
  await expect.poll(() => doors.inner.pdp.asked.length).toBeGreaterThan(0)
  const closed = doors.inner.sidecar.close()
  expect(await asked).toMatchObject({ status: 503 })
  await closed
})

test('answers a failure of its own by 503 and lets nothing pass', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  doors.inner.metrics.decided = () => {
    throw new Error('a fault of the door itself')
  }
  for (const profile of DOOR_PROFILES) expect((await doors.ask(profile, { target: '/public' })).status).toBe(503)
})

test('never answers 2xx over HTTP for what it would answer itself', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  const metadata = { target: '/.well-known/oauth-protected-resource' }
  for (const profile of HTTP_PROFILES) {
    expect(await doors.ask(profile, metadata)).toMatchObject({ status: 404 })
    expect(await doors.ask(profile, { method: 'OPTIONS', target: '/public' })).toMatchObject({ status: 405 })
    for (const path of ['/', '/authorize/', '/refusedx', '//authorize', '/healthz']) {
      const lines = linesOf(profile, { target: '/public' }).with(0, `GET ${path} HTTP/1.1`)
      expect((await doors.raw(profile, lines)).status).toBe(503)
    }
  }
  expect(await doors.ask('envoy', metadata)).toMatchObject({ status: 200, removed: [] })
})

test('closes the connection of a gateway that announces a body, which the next question would be read as', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  for (const profile of HTTP_PROFILES)
    for (const line of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
      const answer = await doors.raw(profile, [...linesOf(profile, { target: '/public' }), line])
      expect(answer.status).toBe(503)
      expect(field(answer, 'connection')).toBe('close')
    }
})

test('denies in shadow mode what is malformed, and lets pass what would only be refused', async () => {
  doors = await open({ routes: 'GET /docs/{id}: {check: "viewer doc:{id}", mode: shadow}', script: ALICE })
  for (const profile of DOOR_PROFILES) {
    expect(await doors.ask(profile, { target: '/docs/2' })).toMatchObject({ status: 200 })
    expect(await doors.ask(profile, { target: '/docs/%2e%2e' })).toMatchObject({ status: 400 })
  }
})

test('lets pass in shadow mode of the file what it could not decide in time, and what nobody could judge', async () => {
  const shadow = { extra: 'mode: shadow', limits: { pdpTimeoutMs: 60_000 } }
  doors = await open({ routes: WITHOUT_BODIES, script: () => null, ...shadow })
  const fields = [await bearer()]
  for (const profile of DOOR_PROFILES) {
    expect(await doors.ask(profile, { target: '/nowhere' })).toMatchObject({ status: 200 })
    expect(await doors.ask(profile, { target: '/docs/%2e%2e', host: 'other.test' })).toMatchObject({ status: 200 })
    expect(await doors.ask(profile, { target: '/docs/1', fields })).toMatchObject({ status: 200 })
  }
}, 60_000)

test('in shadow mode of the file, too, refuses a field that the gateway would let name the caller', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, extra: 'mode: shadow', profiles: ['caddy'] })
  expect(await doors.ask('caddy', { target: '/public' })).toMatchObject({ status: 200 })
  expect(await doors.ask('caddy', { target: '/public', fields: [['x_auth_subject', 'root']] })).toMatchObject({
    status: 400,
  })
})

test('takes the limits of a reloaded route file', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  const ask = (profile: HttpProfile): Promise<RawAnswer> =>
    doors.raw(profile, [...linesOf(profile, { target: '/public' }), `X-Padding: ${'a'.repeat(20_000)}`])
  for (const profile of HTTP_PROFILES) expect((await ask(profile)).status).toBe(200)
  doors.apply(WITHOUT_BODIES, 'limits: {header_bytes_max: 1024}')
  for (const profile of HTTP_PROFILES) expect((await ask(profile)).status).not.toBe(200)
  doors.apply(WITHOUT_BODIES)
  for (const profile of HTTP_PROFILES) expect((await ask(profile)).status).toBe(200)
})
