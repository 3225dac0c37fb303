/**
 * Plays made-up requests before the sidecar is ready, so that its first clients do not wait until V8 has compiled the code that each
 * request runs. A second sidecar serves them. It has no part of the route file and asks no real peer: its issuer, PDP, service, log,
 * metrics, limits and memories exist only in this process and end with the warm-up.
 */
import { generateKeyPairSync, hash, type KeyObject, randomBytes, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { type handleBidiStreamingCall, Server, ServerCredentials } from '@grpc/grpc-js'
import { Registry } from 'prom-client'
import { withTimeout } from '../../pdp/shared/base/with-timeout.ts'
import { serviceDefinition } from '../../pdp/shared/process/grpc/service.ts'
import { listenOn } from '../../pdp/shared/process/listen.ts'
import { createLog, type Log } from '../../pdp/shared/process/log.ts'
import { createNonces } from '../../pdp/shared/token/nonces.ts'
import { processReplayMemory } from '../../pdp/shared/token/replay.ts'
import {
  type DecideStreamRequest,
  type DecideStreamResponse,
  DecideStreamResponseSchema,
  DecisionService,
} from '../../proto/gen/portcullis/v1/decision_pb.ts'
import { NO_CERTIFICATES } from '../config/certificates.ts'
import { parseRouteFile } from '../route-file/route-file.ts'
import { processMemory } from '../sign-in/memory.ts'
import { shareSessions } from '../sign-in/refresh.ts'
import { createMetrics } from './metrics.ts'
import { createSidecar, type Sidecar } from './sidecar.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const AUDIENCE = 'https://warm-up.invalid'
const ISSUER = 'https://issuer.invalid'
const CONNECTIONS = 8
/** How many requests each of the clients, which run in parallel, sends at most. */
const REQUESTS_MAX = 40
/** How many requests a client sends on one connection, with the same tokens. */
const TURN = 10
/** The part of that time, in milliseconds, that is kept for closing. */
const CLOSING_MS = 50

/**
 * Resolves after `maxMs` at the latest, on a slow machine with fewer requests. Returns how many the service has answered. Never rejects:
 * without a warm-up only the first requests take longer.
 */
export async function warmUp(maxMs: number, log: Pick<Log, 'debug'>): Promise<number> {
  try {
    const served = serveMadeUp(performance.now() + maxMs - CLOSING_MS)
    const count = await withTimeout(served, maxMs, () => new Error('the warm-up took too long'))
    if (count === 0) throw new Error('no request of the warm-up was served')
    log.debug({ event: 'warmed_up', requests: count })
    return count
  } catch (err) {
    log.debug({ event: 'warm_up_failed', err })
    return 0
  }
}

async function serveMadeUp(untilMs: number): Promise<number> {
  const closing: (() => unknown)[] = []
  try {
    const service = createServer((_req, res) => void res.end(ANSWERED))
    closing.push(() => service.close().closeAllConnections())
    const { port: servicePort } = await listenOn(service, 'The warm-up', LOOPBACK)
    const pdp = new Server()
    closing.push(() => pdp.forceShutdown())
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const sidecar = assemble({ servicePort, pdpPort: await listenAsPdp(pdp), publicKey })
    closing.push(() => sidecar.close())
    const { port } = await sidecar.listen(LOOPBACK)
    while (sidecar.notReady() !== null && performance.now() < untilMs) await delay(1)
    const played = Array.from({ length: CONNECTIONS }, () => play(port, privateKey, untilMs))
    return (await Promise.all(played)).reduce((sum, count) => sum + count, 0)
  } finally {
    await Promise.all(closing.reverse().map((close) => close()))
  }
}

type Peers = { readonly servicePort: number; readonly pdpPort: number; readonly publicKey: KeyObject }

function assemble({ servicePort, pdpPort, publicKey }: Peers): Sidecar {
  const { file } = parseRouteFile(
    JSON.stringify({
      portcullis: 'v1',
      resource: AUDIENCE,
      issuers: [{ issuer: ISSUER, jwks_uri: `${ISSUER}/keys`, algorithms: ['ES256'] }],
      upstream: `http://${LOOPBACK.host}:${servicePort}`,
      pdp: { address: `${LOOPBACK.host}:${pdpPort}`, insecure: true },
      routes: {
        'GET /things/{id}': 'viewer thing:{id}',
        'POST /things': 'editor folder:{body.in}',
        'GET /open': 'public',
      },
    }),
  )
  if (file === null) throw new TypeError('the route file of the warm-up is not valid')
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256' }]
  const clock = Date.now
  // A log that formats lines like the real one and then drops them.
  const log = createLog({ service: 'warm-up', level: 'info', destination: { write: () => undefined } })
  return createSidecar({
    config: { file, certificates: NO_CERTIFICATES, hash: '' },
    log,
    metrics: createMetrics(new Registry()),
    fetch: async () => Response.json({ keys }),
    clock,
    random: Math.random,
    replay: processReplayMemory({ clock, entriesMax: CONNECTIONS * REQUESTS_MAX }),
    nonces: createNonces({ secret: randomBytes(32), clock }),
    readToken: () => '',
    sessions: shareSessions(processMemory({ clock }), { clock, log }),
  })
}

/** The body of every answer: JSON, also in a denial. */
const ANSWERED = '{}'

/** Returns how many requests the service has answered. */
async function play(port: number, key: KeyObject, untilMs: number): Promise<number> {
  let count = 0
  for (let at = 0; at < REQUESTS_MAX && performance.now() < untilMs; ) {
    const socket = connect(port, LOOPBACK.host).on('error', () => undefined)
    const closed = once(socket, 'close')
    for (const request of requestsOfTurn(key)) {
      if (performance.now() >= untilMs) break
      socket.write(request)
      const answer = await Promise.race([answerOn(socket), closed.then(() => '')])
      if (answer.startsWith('HTTP/1.1 200 ')) count += 1
      at += 1
    }
    socket.destroy()
  }
  return count
}

function answerOn(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const read = (chunk: Buffer): void => {
    text += chunk.toString('latin1')
    if (!text.endsWith('}')) return
    socket.off('data', read)
    resolve(text)
  }
  socket.on('data', read)
  return promise
}

/** Requests in the mix of usual clients: most are reads with a bearer token. */
function requestsOfTurn(key: KeyObject): readonly string[] {
  const bearer = `Authorization: Bearer ${tokenOf(key, null)}`
  const bound = tokenOf(key, hash('sha256', JSON.stringify(jwkOf(key)), 'base64url'))
  const body = '{"in": "a"}'
  const json = ['Content-Type: application/json', `Content-Length: ${body.length}`]
  const written = (line: string, fields: readonly string[], sent = ''): string =>
    [`${line} HTTP/1.1`, 'Host: warm-up.invalid', ...fields, '', sent].join('\r\n')
  return [
    written('GET /open', []),
    written('POST /things', [bearer, ...json], body),
    written('GET /things/1', [`Authorization: DPoP ${bound}`, `DPoP: ${proofOf(key, bound)}`]),
    ...Array.from({ length: TURN - 3 }, (_, at) => written(`GET /things/${at}`, [bearer])),
  ]
}

const jwkOf = (key: KeyObject): object => {
  const { crv, kty, x, y } = key.export({ format: 'jwk' })
  return { crv, kty, x, y }
}

function tokenOf(key: KeyObject, jkt: string | null): string {
  const iat = Math.floor(Date.now() / 1_000)
  const ids = { iss: ISSUER, aud: AUDIENCE, sub: 's', client_id: 'c', org: 'o', jti: randomUUID() }
  const payload = { ...ids, iat, exp: iat + 60, ...(jkt !== null && { cnf: { jkt } }) }
  return signed({ alg: 'ES256', typ: 'at+jwt', kid: 'k' }, payload, key)
}

function proofOf(key: KeyObject, token: string): string {
  const [iat, ath] = [Math.floor(Date.now() / 1_000), hash('sha256', token, 'base64url')]
  const payload = { jti: randomUUID(), htm: 'GET', htu: `${AUDIENCE}/things/1`, iat, ath }
  return signed({ alg: 'ES256', typ: 'dpop+jwt', jwk: jwkOf(key) }, payload, key)
}

function signed(header: object, payload: object, key: KeyObject): string {
  const text = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Returns the port of a PDP that allows everything. */
function listenAsPdp(pdp: Server): Promise<number> {
  const { decideStream } = serviceDefinition(DecisionService)
  const answer: handleBidiStreamingCall<DecideStreamRequest, DecideStreamResponse> = (call) => {
    call.on('error', () => undefined)
    call.on('data', (message: DecideStreamRequest) => call.write(allowed(message)))
  }
  pdp.addService({ decideStream }, { decideStream: answer })
  return new Promise((resolve, reject) => {
    pdp.bindAsync(`${LOOPBACK.host}:0`, ServerCredentials.createInsecure(), (err, port) =>
      err === null ? resolve(port) : reject(err),
    )
  })
}

const allowed = ({ questions }: DecideStreamRequest): DecideStreamResponse =>
  create(DecideStreamResponseSchema, {
    answers: questions.map(({ id, permissions }) => ({
      id,
      outcome: {
        case: 'decision' as const,
        value: {
          active: true,
          subject: { type: 'user', id: 's' },
          organization: 'o',
          permissions: permissions.map(({ relation, resource }) => ({ relation, resource, allowed: true })),
        },
      },
    })),
  })
