/** gRPC beyond loopback: TLS with certificates that change, and callers that say who they are. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type PeerCertificate } from 'node:tls'
import { create } from '@bufbuild/protobuf'
import {
  type ChannelCredentials,
  credentials,
  Metadata,
  makeClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { exportJWK, SignJWT } from 'jose'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createServiceAccounts } from '../../../../../pdp/server/serve/authentication/service-account.ts'
import { loadTls } from '../../../../../pdp/server/serve/grpc/tls.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { type Served, seedAcme, serve } from '../harness.ts'

const PEMS = join(import.meta.dirname, '../../../../support/certificates')
const CLUSTER = 'https://kubernetes.default.svc.cluster.local'
const definition = serviceDefinition(DecisionService)
const Client = makeClientConstructor(definition, 'DecisionService')
/** What the certificates are for. */
const NAMED = { 'grpc.ssl_target_name_override': 'localhost' }
const log = pino({ level: 'silent' })

let folder: string
let served: Served
let clusterKey: KeyObject
let address: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tls-'))
  await use('server-1')
  await copyFile(join(PEMS, 'ca.pem'), join(folder, 'ca.pem'))
  const pair = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  clusterKey = pair.privateKey
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }
  await writeFile(join(folder, 'jwks.json'), JSON.stringify({ keys: [jwk] }))
  const files = {
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
    clientCaFile: join(folder, 'ca.pem'),
  }
  const listed = { callers: ['shop/checkout', 'payments/*'], callersFile: join(folder, 'callers') }
  const settings = { issuer: CLUSTER, jwks: join(folder, 'jwks.json'), ...listed }
  served = await serve({
    grpcHost: '::',
    tls: await loadTls(files, { log, reloadIntervalMs: 20 }),
    serviceAccounts: createServiceAccounts(settings, { fetch, clock: Date.now }),
  })
  await seedAcme(served)
  address = served.grpc.address.replace('[::]', '127.0.0.1')
})
afterAll(async () => {
  await served.close()
  await rm(folder, { recursive: true })
})

/** As a mounted secret changes: each file is replaced whole. */
async function use(name: string): Promise<void> {
  for (const [from, to] of [
    [`${name}.pem`, 'tls.crt'],
    [`${name}.key`, 'tls.key'],
  ] as const) {
    await copyFile(join(PEMS, from), join(folder, `${to}.new`))
    await rename(join(folder, `${to}.new`), join(folder, to))
  }
}
const pem = (name: string) => readFile(join(PEMS, name))
const ssl = async (client?: string): Promise<ChannelCredentials> =>
  client === undefined
    ? credentials.createSsl(await pem('ca.pem'))
    : credentials.createSsl(await pem('ca.pem'), await pem(`${client}.key`), await pem(`${client}.pem`))

async function decide(channel: ChannelCredentials, authorization?: string): Promise<DecideResponse> {
  const client = new Client(address, channel, NAMED)
  const metadata = new Metadata()
  if (authorization !== undefined) metadata.add('authorization', authorization)
  const { path, requestSerialize, responseDeserialize } = definition.decide
  const request = create(DecideRequestSchema, {
    token: served.token({}),
    permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
  })
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest<DecideRequest, DecideResponse>(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        (err, value) => (err === null && value !== undefined ? resolve(value) : reject(err)),
      )
    })
  } finally {
    client.close()
  }
}
const allowed = async (...given: Parameters<typeof decide>) => (await decide(...given)).permissions[0]?.allowed
const refusal = async (...given: Parameters<typeof decide>) => {
  const err = await decide(...given).then(
    () => null,
    (e: ServiceError) => e,
  )
  return [err?.code, err?.metadata.get('portcullis-problem')[0]]
}
function serviceAccount(claims: object = {}, options: { key?: KeyObject; kid?: string; expiresIn?: string } = {}) {
  return new SignJWT({ sub: 'system:serviceaccount:shop:checkout', aud: ['portcullis-pdp'], iss: CLUSTER, ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: options.kid ?? 'k1' })
    .setIssuedAt()
    .setExpirationTime(options.expiresIn ?? '1h')
    .sign(options.key ?? clusterKey)
}
const peer = (): Promise<PeerCertificate> =>
  new Promise((resolve, reject) => {
    const socket = connect(
      { port: Number(address.split(':')[1]), rejectUnauthorized: false, ALPNProtocols: ['h2'] },
      () => {
        resolve(socket.getPeerCertificate())
        socket.destroy()
      },
    )
    socket.on('error', reject)
  })

describe('off loopback, a caller may be', () => {
  test('one with a client certificate of the CA', async () => {
    expect(await allowed(await ssl('client'))).toBe(true)
  })

  test('a service with a token that has decisions:ask', async () => {
    expect(
      await allowed(await ssl(), `Bearer ${await served.manager({ client: 'sidecar', scopes: ['decisions:ask'] })}`),
    ).toBe(true)
  })

  test('a Kubernetes service account with a token for portcullis-pdp', async () => {
    expect(await allowed(await ssl(), `Bearer ${await serviceAccount()}`)).toBe(true)
  })

  test('any service account of a namespace that was named whole', async () => {
    const sub = 'system:serviceaccount:payments:any.of-them'
    expect(await allowed(await ssl(), `Bearer ${await serviceAccount({ sub })}`)).toBe(true)
  })
  test('a service account that the file lists by now, and none when it no longer does', async () => {
    const [path, channel] = [join(folder, 'callers'), await ssl()]
    const token = `Bearer ${await serviceAccount({ sub: 'system:serviceaccount:team-a:web' })}`
    const refused = [status.PERMISSION_DENIED, 'permission_denied']
    const becomes = (expected: unknown): Promise<void> =>
      vi.waitFor(async () => expect(await refusal(channel, token)).toEqual(expected), 10_000)
    await becomes(refused)
    await writeFile(path, 'team-a\n*/*\nteam-*/*\n team-a/*\n')
    await becomes(refused)
    await writeFile(path, 'team-b/*\nteam-a/*\n')
    await becomes([undefined, undefined])
    await rm(path)
    await becomes(refused)
  })
})

describe('off loopback, a caller is refused', () => {
  test.each<[string, () => Promise<string | undefined>, number, string]>([
    ['without anything', async () => undefined, status.UNAUTHENTICATED, 'token_missing'],
    ['with a password', async () => 'Basic YTpi', status.UNAUTHENTICATED, 'token_missing'],
    ['with an empty token', async () => 'Bearer ', status.UNAUTHENTICATED, 'token_missing'],
    ['with a token that nobody knows', async () => 'Bearer unknown', status.UNAUTHENTICATED, 'token_invalid'],
    [
      'with a user’s token',
      async () => `Bearer ${asker({ subject: { type: 'user', id: 'alice' } })}`,
      status.PERMISSION_DENIED,
      'permission_denied',
    ],
    [
      'without the scope',
      async () => `Bearer ${asker({ scopes: new Set(['decisions:read']) })}`,
      status.PERMISSION_DENIED,
      'scope_insufficient',
    ],
    [
      'with a token for another audience',
      async () => `Bearer ${asker({ audiences: ['https://x'] })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'with a token that is bound to a key',
      async () => `Bearer ${asker({ jkt: 'x' })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'as a service account for another audience',
      async () => `Bearer ${await serviceAccount({ aud: ['vault'] })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'as a service account of another cluster',
      async () => `Bearer ${await serviceAccount({ iss: 'https://other' })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'as a service account that has expired',
      async () => `Bearer ${await serviceAccount({}, { expiresIn: '-1s' })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'as a service account that is not one',
      async () => `Bearer ${await serviceAccount({ sub: 'system:node:x' })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    ...[
      'shop:other',
      'shop:checkout2',
      'shop2:checkout',
      'other:checkout',
      'payments-2:checkout',
      'default:default',
    ].map((account): [string, () => Promise<string>, number, string] => [
      `as service account ${account}, which nobody named`,
      async () => `Bearer ${await serviceAccount({ sub: `system:serviceaccount:${account}` })}`,
      status.PERMISSION_DENIED,
      'permission_denied',
    ]),
    [
      'as a service account signed by somebody else',
      async () => `Bearer ${await serviceAccount({}, { key: STRANGER })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
    [
      'as a service account with an unknown key',
      async () => `Bearer ${await serviceAccount({}, { kid: 'k2' })}`,
      status.UNAUTHENTICATED,
      'token_invalid',
    ],
  ])('%s', async (_, authorization, code, problem) => {
    expect(await refusal(await ssl(), await authorization())).toEqual([code, problem])
  })

  test('with a client certificate of another CA', async () => {
    expect(await refusal(await ssl('stranger'))).toEqual([status.UNAUTHENTICATED, 'token_missing'])
  })

  test('in plain text', async () => {
    expect((await refusal(credentials.createInsecure()))[0]).toBe(status.UNAVAILABLE)
  })
})

const STRANGER = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
const asker = (state: Parameters<Served['token']>[0]) =>
  served.token({
    subject: { type: 'service', id: 'sidecar' },
    organization: null,
    scopes: new Set(['decisions:ask']),
    audiences: ['https://id.example.test'],
    ...state,
  })

describe('a stream', () => {
  const openStream = async (authorization: string | null) => {
    const client = new Client(address, await ssl(), NAMED)
    const metadata = new Metadata()
    if (authorization !== null) metadata.add('authorization', authorization)
    const { path, requestSerialize, responseDeserialize } = definition.decideStream
    const stream = client.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
    )
    stream.on('data', () => undefined)
    return { client, stream }
  }

  test('is refused to a caller without credentials, whatever it sends first', async () => {
    const { client, stream } = await openStream(null)
    const err = await new Promise<ServiceError>((done) => stream.once('error', done))
    expect(err.code).toBe(status.UNAUTHENTICATED)
    client.close()
  })

  test('ends when its caller may no longer call', async () => {
    const token = await served.manager({ client: 'short', scopes: ['decisions:ask'] })
    const { client, stream } = await openStream(`Bearer ${token}`)
    stream.write(create(DecideStreamRequestSchema, { questions: [{ id: 1, handle: 1 }] }))
    await new Promise((done) => stream.once('data', done))
    const ended = new Promise((done) => stream.once('end', done))
    served.setState(token, { active: false })
    await ended
    client.close()
  })

  test('is told by GOAWAY that the server drains', async () => {
    const own = await serve()
    const session = connectHttp2(`http://${own.grpc.address}`)
    await new Promise((done) => session.once('connect', done))
    const goaway = new Promise<number>((done) => session.once('goaway', done))
    await own.close()
    expect(await goaway).toBe(0)
    session.destroy()
  })
})

describe('certificates', () => {
  test('are read again when they change, without a restart; halves and broken ones are not used', async () => {
    expect((await peer()).subject.CN).toBe('server-1')
    await use('server-2')
    await expect.poll(async () => (await peer()).subject.CN).toBe('server-2')
    await copyFile(join(PEMS, 'server-1.pem'), join(folder, 'tls.crt'))
    await new Promise((done) => setTimeout(done, 100))
    expect((await peer()).subject.CN).toBe('server-2')
    await writeFile(join(folder, 'tls.crt'), 'garbage')
    await new Promise((done) => setTimeout(done, 100))
    expect((await peer()).subject.CN).toBe('server-2')
    await use('server-1')
    await expect.poll(async () => (await peer()).subject.CN).toBe('server-1')
    expect(await allowed(await ssl('client'))).toBe(true)
  })

  test.each([
    ['are not there', 'missing.crt', 'tls.key'],
    ['do not belong together', 'other.crt', 'tls.key'],
    ['are none', 'jwks.json', 'tls.key'],
  ])('that %s end the start in one line', async (_, cert, key) => {
    await copyFile(join(PEMS, 'server-2.pem'), join(folder, 'other.crt'))
    const files = { certFile: join(folder, cert), keyFile: join(folder, key), clientCaFile: null }
    await expect(loadTls(files, { log })).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringMatching(/^TLS for gRPC: .+$/),
    })
  })
})
