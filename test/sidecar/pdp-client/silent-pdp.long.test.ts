import { connect, createServer, type Server, type Socket } from 'node:net'
import { credentials } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { createPdpClient, type PdpClient } from '../../../sidecar/pdp-client/client.ts'
import { QUESTION, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

/** A link that is half open: connections are accepted and nothing is ever said, until it is told to relay. */
type HalfOpen = { readonly address: string; readonly open: () => number; relayTo: string | null; close(): void }
const CONNECT_MS = 200
const ALLOW = tuples(['alice viewer invoice:1'])

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function startHalfOpen(): Promise<HalfOpen> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    if (link.relayTo === null) return void socket.resume()
    const [host, port] = link.relayTo.split(':')
    const far = connect(Number(port), host ?? '')
    sockets.add(far)
    far.on('error', () => socket.destroy()).once('close', () => sockets.delete(far))
    socket.pipe(far).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const link: HalfOpen = {
    address: `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    open: () => sockets.size,
    relayTo: null,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
  closers.push(link.close)
  return link
}

function openClient(addresses: readonly string[], secure = false): { client: PdpClient; tries: () => number } {
  let tries = 0
  const client = createPdpClient({
    addresses,
    credentials: secure ? credentials.createSsl() : credentials.createInsecure(),
    random: () => 0.5,
    clock: Date.now,
    timeoutMs: 2_000,
    connectMs: CONNECT_MS,
    onConnectionChange({ open }) {
      if (!open) tries += 1
    },
  })
  closers.push(() => client.close())
  return { client, tries: () => tries }
}

const answers = (client: PdpClient): Promise<boolean> =>
  client.ask(QUESTION).then(
    ({ permissions }) => permissions[0] === 'allowed',
    () => false,
  )

describe('a link that accepts connections and stays silent', () => {
  test('is tried again, each time with a new connection, and used once it speaks', async () => {
    const pdp = await startScriptedPdp(ALLOW)
    const link = await startHalfOpen()
    closers.push(() => pdp.stop())
    const { client, tries } = openClient([link.address])
    await until(() => tries() >= 3)
    link.relayTo = pdp.address
    await until(() => answers(client))
  })

  test.each([
    ['in plain text', false],
    ['in the middle of the TLS handshake', true],
  ])('leaves no sockets behind %s', async (_name, secure) => {
    const link = await startHalfOpen()
    const { client, tries } = openClient([link.address], secure)
    await until(() => tries() >= 4)
    expect(link.open()).toBeLessThanOrEqual(2)
    client.close()
    await until(() => link.open() === 0)
  })

  test('keeps nobody from the other addresses, and says nothing of silence', async () => {
    const pdp = await startScriptedPdp(ALLOW)
    const link = await startHalfOpen()
    closers.push(() => pdp.stop())
    const { client, tries } = openClient([link.address, pdp.address])
    await until(() => answers(client))
    await until(() => tries() >= 2)
    expect(await Promise.all(Array.from({ length: 10 }, () => answers(client)))).not.toContain(false)
    expect(client.silentSinceMs()).toBeNull()
  })

  test('that all are, is told with the moment since when, and is over when one speaks', async () => {
    const pdp = await startScriptedPdp(ALLOW)
    const links = await Promise.all([startHalfOpen(), startHalfOpen()])
    closers.push(() => pdp.stop())
    const startedMs = Date.now()
    const { client, tries } = openClient(links.map(({ address }) => address))
    await until(() => tries() >= 4)
    const sinceMs = client.silentSinceMs() ?? 0
    expect(sinceMs).toBeGreaterThanOrEqual(startedMs)
    expect(sinceMs).toBeLessThan(Date.now())
    for (const link of links) link.relayTo = pdp.address
    await until(() => answers(client))
    expect(client.silentSinceMs()).toBeNull()
    await pdp.stop()
    await until(() => client.silentSinceMs() !== null)
    expect(client.silentSinceMs()).toBeGreaterThan(sinceMs)
  })
})

test('a sidecar that no PDP has answered yet is not ready, however short the time', async () => {
  const h = await startHarness({ routes: 'GET /a: signed_in', script: tuples([]) })
  closers.push(h.close)
  const file = h.file()
  const moved = { ...file, pdp: { ...file.pdp, addresses: ['127.0.0.1:1'] } }
  h.sidecar.apply({ file: moved, certificates: NO_CERTIFICATES, hash: 'moved' })
  expect(h.sidecar.notReady()).toBe('connecting to the PDP')
  await until(() => h.sidecar.notReady() !== 'connecting to the PDP')
  expect(h.sidecar.notReady()).toMatch(/^no PDP answers since /)
})

describe('a client that has just begun', () => {
  test('is connecting until its first attempt has failed, so that nobody waits for a PDP that is down', async () => {
    const link = await startHalfOpen()
    const { client, tries } = openClient([link.address])
    expect(client.isConnecting()).toBe(true)
    await until(() => tries() > 0)
    expect(client.isConnecting()).toBe(false)
  })

  test('is connecting no more when one address has connected', async () => {
    const pdp = await startScriptedPdp(ALLOW)
    closers.push(() => pdp.stop())
    const link = await startHalfOpen()
    const { client } = openClient([pdp.address, link.address])
    expect(client.isConnecting()).toBe(true)
    await until(() => !client.isConnecting())
    expect(await answers(client)).toBe(true)
  })
})

describe('while no PDP answers', () => {
  let nowMs = Date.now()
  async function start(routes: string): Promise<Harness> {
    const harness = await startHarness({ routes, script: ALLOW, clock: () => nowMs })
    closers.push(() => harness.close())
    await harness.pdp.stop()
    await until(async () => /_pdp_silent_since_timestamp_seconds [1-9]/.test(await harness.registry.metrics()))
    return harness
  }

  test('for longer than a restart takes, a sidecar of guarded routes alone is not ready and says since when', async () => {
    const { sidecar, pdp, registry, send } = await start('GET /invoices/{id}: viewer invoice:{id}')
    expect(sidecar.notReady()).toBeNull()
    const since = new Date(nowMs).toISOString()
    nowMs += 10_000
    expect(sidecar.notReady()).toBe(`no PDP answers since ${since}`)
    await pdp.start()
    await until(async () => (await send('GET /invoices/1')).status === 200)
    expect(sidecar.notReady()).toBeNull()
    expect(await registry.metrics()).toContain('_pdp_silent_since_timestamp_seconds 0\n')
  })

  test('one with public routes is ready for them, and makes a note', async () => {
    const { sidecar, send } = await start('GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}')
    const since = new Date(nowMs).toISOString()
    nowMs += 10_000
    expect(sidecar.notReady()).toEqual({ note: `no PDP answers since ${since}` })
    expect((await send('GET /public/x', { token: null })).status).toBe(200)
  })
})
