/** Where there is only IPv6: the PDP, the sidecar, the app and their probes, all on ::1. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { openTestDatabase } from '../support/database.ts'
import { choosePorts, type DemoStack, startStack } from './demo-stack.ts'
import { createWorld, type World } from './demo-world.ts'

const shutdown = createShutdown({ log: createLog({ service: 'test', level: 'silent' }), timeoutMs: 20_000 })
let stack: DemoStack
let world: World
let metricsPort = 0

beforeAll(async () => {
  const [database, ports] = await Promise.all([openTestDatabase(), choosePorts({})])
  shutdown.add('database', database.drop)
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-ipv6-'))
  shutdown.add('folder', () => rm(dataDirectory, { recursive: true }))
  metricsPort = ports.metrics
  stack = await startStack({ host: '::1', databaseUrl: database.connectionString, dataDirectory, ports, shutdown })
  world = await createWorld(stack)
})
afterAll(() => shutdown.run('test'))

async function get(path: string, token: string): Promise<number> {
  const answer = await fetch(stack.sidecarUrl + path, { headers: { authorization: `Bearer ${token}` } })
  await answer.body?.cancel()
  return answer.status
}

test('a person signs in, and the sidecar lets through what is granted and nothing else', async () => {
  expect(new URL(stack.sidecarUrl).hostname).toBe('[::1]')
  expect(await get('/invoices/1', world.tokens.alice)).toBe(200)
  expect(await get('/invoices/2', world.tokens.alice)).toBe(403)
  expect(await get('/invoices/1', 'none')).toBe(401)
})

test('the probes of the PDP answer', async () => {
  expect((await fetch(`http://[::1]:${metricsPort}/readyz`)).status).toBe(200)
})
