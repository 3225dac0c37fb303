import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { redisReplayMemory } from '../../../pdp/shared/token/replay-redis.ts'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { makeCertificate } from '../../../sidecar/injector/certificate/certificate.ts'
import { ecKeys, type Issuer, proof, thumbprint } from '../../support/peers/issuer.ts'
import { hasRedis, startRedis } from '../../support/peers/redis.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, PROMPT_MS, startHarness } from '../support/harness.ts'

/** Whatever fails: a stated status, soon, and nothing reaches the upstream. */
const ROUTES = 'GET /invoices/{id}: viewer invoice:{id}'
const script = tuples(['alice viewer invoice:1'])

let h: Harness | null = null
const closers: (() => void)[] = []
afterEach(async () => {
  await h?.close()
  h = null
  for (const close of closers.splice(0)) close()
})
async function start(options: Partial<Parameters<typeof startHarness>[0]> = {}): Promise<Harness> {
  h = await startHarness({ routes: ROUTES, script, limits: { pdpTimeoutMs: 500 }, ...options })
  return h
}

async function expectClosed({ send, upstream }: Harness, status: number): Promise<void> {
  const startedMs = performance.now()
  expect((await send('GET /invoices/1')).status).toBe(status)
  expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
  expect(upstream.reached).toEqual([])
}

/** The same route file with the PDP at another place. */
function movePdp(harness: Harness, pdp: object, certificates = NO_CERTIFICATES): void {
  const file = harness.file()
  harness.sidecar.apply({ file: { ...file, pdp: { ...file.pdp, ...pdp } }, certificates, hash: 'moved' })
}

function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${(server.address() as AddressInfo).port}`)),
  )
}

describe('the PDP', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['takes connections and says nothing', () => undefined],
    ['answers rubbish', (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nallowed')],
    ['closes every connection', (socket) => void socket.destroy()],
  ])('%s: 503', async (_name, onConnection) => {
    const harness = await start()
    movePdp(harness, { addresses: [await listen(onConnection)] })
    await expectClosed(harness, 503)
    expect((await harness.send('GET /invoices/1')).status).toBe(503)
  })

  test('has a certificate of another name, or of an unknown authority: 503', async () => {
    const made = await makeCertificate({ names: ['other.test'], days: 1, nowMs: Date.now() })
    const server = new Server()
    const pair = { private_key: Buffer.from(made.key), cert_chain: Buffer.from(made.certificate) }
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]), (err, bound) =>
        err === null ? resolve(bound) : reject(err),
      ),
    )
    closers.push(() => server.forceShutdown())
    const harness = await start()
    const trusting = { ca: Buffer.from(made.authority), cert: null, key: null }
    movePdp(harness, { addresses: [`localhost:${port}`], insecure: false }, { ...NO_CERTIFICATES, pdp: trusting })
    await expectClosed(harness, 503)
    movePdp(harness, { addresses: [`other.test:${port}`], insecure: false })
    await expectClosed(harness, 503)
  })

  test('cannot be told who asks, since the token file is gone: 503', async () => {
    const harness = await start({
      readToken() {
        throw new Error('ENOENT')
      },
    })
    movePdp(harness, { tokenFile: '/nowhere' })
    await expectClosed(harness, 503)
  })

  test('goes silent on an open connection: 503, and 200 again once there is another', async () => {
    const harness = await start({ limits: { pdpTimeoutMs: 150 } })
    harness.pdp.script = () => null
    await expectClosed(harness, 503)
    harness.pdp.script = script
    await until(async () => (await harness.send('GET /invoices/1')).status === 200)
  })
})

describe.skipIf(!hasRedis())('Redis (skipped where Debian’s redis-server is not installed)', () => {
  async function bound(issuer: Issuer) {
    const keys = ecKeys()
    const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
    return async (): Promise<string[]> => {
      const text = await proof({ keys, method: 'GET', url: 'https://app.test/invoices/1', token, clock: Date.now })
      return [`Authorization: DPoP ${token}`, `DPoP: ${text}`]
    }
  }

  test('is dead while it remembers proofs: bound tokens are 503, bearer tokens go on, and all is well when it is back', async () => {
    const redis = await startRedis()
    const replay = await redisReplayMemory({
      url: redis.url,
      clock: Date.now,
      timeoutMs: 2_000,
      onError: () => undefined,
    })
    closers.push(
      () => replay.close(),
      () => void redis.kill(),
    )
    const { send, issuer, upstream } = await start({ replay })
    const fields = await bound(issuer)
    expect((await send('GET /invoices/1', { token: null, fields: await fields() })).status).toBe(200)
    await redis.kill()
    upstream.reached.length = 0
    const refused = await send('GET /invoices/1', { token: null, fields: await fields() })
    expect(refused.status).toBe(503)
    expect(JSON.parse(refused.body)).toMatchObject({ code: 'replay_memory_unavailable' })
    expect(upstream.reached).toEqual([])
    expect((await send('GET /invoices/1')).status).toBe(200)
    await redis.start()
    await until(async () => (await send('GET /invoices/1', { token: null, fields: await fields() })).status === 200)
  })
})

describe('the key set', () => {
  test('of a rotated key is fetched once it is needed, and a removed key is believed no longer', async () => {
    const harness = await start({ limits: { keyCooldownMs: 0, keyRefreshMs: 50 } })
    const { issuer, send } = harness
    const old = await issuer.token()
    expect((await send('GET /invoices/1', { token: old })).status).toBe(200)
    issuer.jwks = { keys: [{ ...(issuer.jwks.keys[0] as object), kid: 'k2' }] }
    expect((await send('GET /invoices/1', { token: await issuer.token({}, { kid: 'k2' }) })).status).toBe(200)
    issuer.jwks = { keys: [] }
    await until(async () => (await send('GET /invoices/1', { token: old })).status === 401)
  })

  test('that cannot be had any more is used until its maximum age, then 503', async () => {
    const harness = await start({ limits: { keyCooldownMs: 0, keyRefreshMs: 20, keyAgeMaxMs: 2_000 } })
    harness.issuer.jwks = { keys: Array.from({ length: 100 }, () => ({})) }
    expect((await harness.send('GET /invoices/1')).status).toBe(200)
    await until(async () => (await harness.send('GET /invoices/1')).status === 503)
    harness.upstream.reached.length = 0
    await expectClosed(harness, 503)
  })

  test('of an issuer that was away at first is fetched without a request, since no request comes before the sidecar is ready', async () => {
    const { issuer, sidecar, log, ...harness } = await start()
    const good = issuer.jwks
    issuer.jwks = { keys: Array.from({ length: 100 }, () => ({})) }
    const file = harness.file()
    const issuers = file.issuers.map((entry) => ({ ...entry, jwksUri: `${issuer.issuer}/jwks` }))
    sidecar.apply({ file: { ...file, issuers }, certificates: NO_CERTIFICATES, hash: 'elsewhere' })
    const failures = (): number => log.filter((line) => 'event' in line && line.event === 'keys_failed').length
    await until(() => failures() === 1)
    expect(sidecar.notReady()).toBe(`no keys yet of ${issuer.issuer}`)
    issuer.jwks = good
    await until(() => sidecar.notReady() === null)
    expect(failures()).toBe(1)
  })
})
