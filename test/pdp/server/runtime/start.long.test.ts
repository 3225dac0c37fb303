/** How a PDP starts: when it says that it is ready, and what it says of a start that fails or is called off. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { PdpConfig } from '../../../../pdp/server/runtime/config.ts'
import { startPdp } from '../../../../pdp/server/runtime/start.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../../../e2e/demo-stack.ts'
import { pdpSettings } from '../../../e2e/pdp-settings.ts'
import { openTestDatabase } from '../../../support/database.ts'

const HOST = '127.0.0.1'

/** What starts a PDP, and the events that its log gets. */
async function prepare() {
  const events: string[] = []
  const write = (line: string): void => {
    const { event } = JSON.parse(line)
    // Where the database is, is known before anything can go wrong.
    if (event !== 'database_primary') events.push(event)
  }
  const destination = { write }
  const log = createLog({ service: 'test', level: 'info', destination })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-start-'))
  onTestFinished(async () => {
    await shutdown.run('test')
    await database.drop()
    await rm(dataDirectory, { recursive: true })
  })
  const settings: PdpConfig = pdpSettings({
    issuer: `http://${HOST}:${ports.http}`,
    adminSecret: 'secret-of-the-start-test-0123456789',
    host: HOST,
    ports,
    databaseUrl: database.connectionString,
    dataDirectory,
  })
  return { settings, log, shutdown, events }
}

test('a PDP is ready only once all of it is loaded', async () => {
  const { settings, log, shutdown } = await prepare()
  const gate = Promise.withResolvers<void>()
  let held = 0
  /** The start itself is held first, what is loaded later second. */
  const hold = async <T>(work: Promise<T>): Promise<T> => {
    held += 1
    const isLater = held > 1
    const value = await shutdown.hold(work)
    if (isLater) await gate.promise
    return value
  }
  const { metricsUrl, loaded } = await startPdp(settings, { log, shutdown: { ...shutdown, hold } })
  const ask = async () => {
    const answer = await fetch(`${metricsUrl}/readyz`)
    return [answer.status, await answer.text()]
  }
  expect(await ask()).toEqual([503, 'the identity service is still loading\n'])
  gate.resolve()
  await loaded
  expect(await ask()).toEqual([200, 'ok\n'])
})

test.each(['http', 'grpc', 'metrics'] as const)(
  'a start that fails for a taken port of %s is one error and no line of the log',
  async (name) => {
    const { settings, log, shutdown, events } = await prepare()
    const taken = createServer()
    await new Promise<void>((done) => taken.listen(settings[name].port, HOST, done))
    onTestFinished(() => new Promise<void>((done) => void taken.close(() => done())))
    await expect(startPdp(settings, { log, shutdown })).rejects.toThrow('another process uses this port')
    // What still ran would ask the closed database within this time, and log that it cannot.
    await delay(400)
    expect(events).toEqual([])
  },
)

test('a PDP that is told to stop while it starts does not say that it listens', async () => {
  const { settings, log, shutdown, events } = await prepare()
  const start = startPdp(settings, { log, shutdown })
  await Promise.allSettled([start, shutdown.run('SIGINT')])
  expect(events).toEqual(['shutdown'])
})
