/** When a PDP says that it is ready: a rollout ends the old one at that word. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../../pdp/process/log.ts'
import { createShutdown } from '../../../pdp/process/shutdown.ts'
import { startPdp } from '../../../pdp/runtime/start.ts'
import { choosePorts } from '../../e2e/demo-stack.ts'
import { pdpSettings } from '../../e2e/pdp-settings.ts'
import { openTestDatabase } from '../../support/database.ts'

test('a PDP is ready only once all of it is loaded', async () => {
  const log = createLog({ service: 'test', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-readiness-'))
  onTestFinished(async () => {
    await shutdown.run('test')
    await database.drop()
    await rm(dataDirectory, { recursive: true })
  })
  const host = '127.0.0.1'
  const settings = pdpSettings({
    issuer: `http://${host}:${ports.http}`,
    adminSecret: 'secret-of-the-readiness-test-0123456789',
    host,
    ports,
    databaseUrl: database.connectionString,
    dataDirectory,
  })
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
