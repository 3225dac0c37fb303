/** PDPs that end in order, one after the other, while questions are asked: each question is answered. */
import { credentials } from '@grpc/grpc-js'
import { afterEach, expect, test } from 'vitest'
import { type GrpcServer, startGrpcServer } from '../../../pdp/server/serve/grpc/server.ts'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { createPdpClient, type PdpClient } from '../../../sidecar/pdp-client/client.ts'
import { freePort } from '../../support/free-port.ts'
import { QUESTION } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'

const TOKEN = {
  active: true,
  subject: { type: 'user', id: 'alice' },
  organization: 'acme',
  clientId: 'app',
  app: null,
  scopes: new Set<string>(),
  audiences: [],
} as const
/** Long beside an answer, and short beside what the system under test may wait for. */
const TIMEOUT_MS = 10_000
const ROUNDS = 6
const ASKERS = 16

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** The PDP's real gRPC server. Each answer takes `answerMs`, so that some are under way whenever it ends. */
async function startPdp(port: number, answerMs: number): Promise<GrpcServer> {
  return startGrpcServer(
    {
      recognize: async () => TOKEN as never,
      async answer(_token, { permissions }) {
        await new Promise((resolve) => setTimeout(resolve, answerMs))
        return {
          active: true,
          subject: TOKEN.subject,
          organization: TOKEN.organization,
          permissions: permissions.map((check) => ({ ...check, allowed: true, reasonCode: 'tuple' as const })),
          entitlements: new Map(),
          decisionId: 'one',
          revision: null,
          validUntilMs: null,
          acr: null,
          authTime: null,
          app: null,
        }
      },
      watched: { ask: () => () => undefined, close: async () => undefined },
      authenticate: async () => ({ name: 'anybody', group: null }),
      tls: null,
      log: createLog({ service: 'test', level: 'silent' }),
    },
    { host: '127.0.0.1', port },
  )
}

function openClient(ports: readonly number[], onOpen: () => void): PdpClient {
  const client = createPdpClient({
    addresses: ports.map((port) => `127.0.0.1:${port}`),
    credentials: credentials.createInsecure(),
    random: () => 0.5,
    clock: Date.now,
    timeoutMs: TIMEOUT_MS,
    onConnectionChange: ({ open }) => open && onOpen(),
  })
  closers.push(() => client.close())
  return client
}

/** Asks until it is stopped; what went wrong, in words. */
function keepAsking(client: PdpClient): { readonly failures: string[]; count(): number; stop(): Promise<void> } {
  const failures: string[] = []
  let count = 0
  let stopped = false
  const askers = Array.from({ length: ASKERS }, async () => {
    while (!stopped) {
      await client.ask(QUESTION).catch((err: unknown) => void failures.push(String(err)))
      count += 1
    }
  })
  return {
    failures,
    count: () => count,
    async stop() {
      stopped = true
      await Promise.all(askers)
    },
  }
}

async function restartEach(ports: readonly number[], { answerMs }: { readonly answerMs: number }): Promise<string[]> {
  const pdps = await Promise.all(ports.map((port) => startPdp(port, answerMs)))
  closers.push(() => Promise.all(pdps.map((pdp) => pdp.close())))
  let opened = 0
  const client = openClient(ports, () => {
    opened += 1
  })
  await until(() => opened === ports.length)
  const load = keepAsking(client)
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [at, port] of ports.entries()) {
      const before = load.count()
      await pdps[at]?.close()
      pdps[at] = await startPdp(port, answerMs)
      await until(() => load.count() > before + ASKERS)
    }
  }
  await load.stop()
  return load.failures
}

test.each([
  ['three PDPs that answer at once', 3, 0],
  ['three PDPs that take a while for each answer', 3, 30],
  ['two PDPs', 2, 5],
  ['a single PDP', 1, 5],
])('%s lose no question when they restart one after the other', async (_who, count, answerMs) => {
  const ports: number[] = []
  for (let at = 0; at < count; at += 1) ports.push(await freePort())
  expect(await restartEach(ports, { answerMs })).toEqual([])
})

test('a question that is turned away by one ending PDP after the other is asked until one answers', async () => {
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()]
  // All but the last end as soon as they are asked.
  const pdps = await Promise.all(ports.map((port) => startPdp(port, 50)))
  closers.push(() => Promise.all(pdps.map((pdp) => pdp.close())))
  let opened = 0
  const client = openClient(ports, () => {
    opened += 1
  })
  await until(() => opened === ports.length)
  const askMany = (): Promise<string>[] =>
    Array.from({ length: 40 }, () =>
      client.ask(QUESTION).then(
        () => 'answered',
        (err: unknown) => String(err),
      ),
    )
  const asked = askMany()
  for (const pdp of pdps.slice(0, 3)) {
    void pdp.close()
    asked.push(...askMany())
    await new Promise((resolve) => setTimeout(resolve, 0))
    asked.push(...askMany())
  }
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['answered']))
})
