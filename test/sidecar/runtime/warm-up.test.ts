import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../pdp/shared/process/shutdown.ts'
import { readConfig } from '../../../sidecar/config/config.ts'
import { startSidecar } from '../../../sidecar/runtime/start.ts'
import { warmUp } from '../../../sidecar/runtime/warm-up.ts'
import { freePort, isOpen } from '../../support/free-port.ts'
import { createIssuer } from '../../support/peers/issuer.ts'
import { hasRedis, startRedis, type TestRedis } from '../../support/peers/redis.ts'
import { type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Counts connections and requests. */
async function startCounted(answer: object) {
  const counted = { connections: 0, requests: 0, origin: '' }
  const server: Server = createServer((_req, res) => {
    counted.requests += 1
    res.end(JSON.stringify(answer))
  })
  server.on('connection', () => {
    counted.connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close().closeAllConnections())
  counted.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return counted
}

type Started = {
  readonly service: Awaited<ReturnType<typeof startCounted>>
  readonly keys: Awaited<ReturnType<typeof startCounted>>
  readonly pdp: ScriptedPdp
  readonly redis: TestRedis | null
  readonly lines: string[]
  readonly ports: { readonly data: number; readonly admin: number }
  readonly starting: Promise<void>
  admin(path: string): Promise<string>
}

async function start(level: 'info' | 'debug'): Promise<Started> {
  const issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
  const service = await startCounted({})
  const keys = await startCounted(issuer.jwks)
  const pdp = await startScriptedPdp(tuples([]))
  closing.push(() => pdp.stop())
  const redis = hasRedis() ? await startRedis() : null
  if (redis !== null) closing.push(() => redis.kill())
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-warm-up-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'routes.yaml')
  writeFileSync(
    file,
    JSON.stringify({
      portcullis: 'v1',
      resource: 'https://app.test',
      issuers: [{ issuer: 'https://as.test', jwks_uri: keys.origin }],
      upstream: service.origin,
      pdp: { address: pdp.address, insecure: true },
      routes: { 'GET /invoices/{id}': 'viewer invoice:{id}', 'GET /things/{id}': 'public' },
    }),
  )
  const ports = { data: await freePort(), admin: await freePort() }
  const listen = `127.0.0.1:${ports.data}`
  const settings = redis === null ? {} : { REDIS_URL: redis.url }
  const config = readConfig(settings, { file, listen, adminListen: `127.0.0.1:${ports.admin}` })
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const log = createLog({ service: 'test', level, destination })
  const shutdown = createShutdown({ log, timeoutMs: 10_000 })
  closing.push(() => shutdown.run('SIGINT'))
  const starting = startSidecar(config, { log, shutdown })
  const admin = async (path: string) => (await fetch(`http://127.0.0.1:${ports.admin}${path}`)).text()
  return { service, keys, pdp, redis, lines, ports, starting, admin }
}

describe('warming up', () => {
  test('serves made-up requests, which the made-up PDP allows', async () => {
    expect(await warmUp(50_000, createLog({ service: 'test', level: 'silent' }))).toBeGreaterThan(0)
  })

  test('reaches no peer of the route file, and leaves no line, count or used proof behind', async () => {
    const { service, keys, pdp, redis, lines, starting, admin } = await start('info')
    await starting
    await until(async () => (await admin('/readyz')) === 'ok\n')
    expect(service).toMatchObject({ connections: 0, requests: 0 })
    expect(pdp.asked).toEqual([])
    expect(pdp.tokens()).toBe(0)
    // Its own keys, once.
    expect(keys.requests).toBe(1)
    if (redis !== null) expect(await redis.command('DBSIZE')).toBe('0')
    const events = lines.map((line) => JSON.parse(line).event)
    expect(events.filter((event) => !['listening', 'pdp_connected'].includes(event))).toEqual([])
    const metrics = await admin('/metrics')
    expect(metrics).toContain('portcullis_sidecar_enforcement_seconds_count 0')
    expect(metrics).not.toMatch(/^portcullis_sidecar_(?:requests|upstream_responses)_total\{/m)
    expect(metrics).not.toContain('warm-up')
  })

  test('is over before the sidecar is ready and listens', async () => {
    const { ports, starting, admin } = await start('info')
    const seen: string[] = []
    await until(async () => {
      const listened = await isOpen(ports.data)
      seen.push(await admin('/readyz').catch(() => ''))
      if (listened) expect(seen.at(-1)).not.toBe('warming up\n')
      return seen.at(-1) === 'ok\n'
    })
    await starting
    expect(seen).toContain('warming up\n')
    expect(await isOpen(ports.data)).toBe(true)
  })

  test('that fails or takes too long is said at debug, and the sidecar starts without it', async () => {
    const lines: string[] = []
    const log = createLog({ service: 'test', level: 'debug', destination: { write: (line) => void lines.push(line) } })
    expect(await warmUp(0, log)).toBe(0)
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 'debug', event: 'warm_up_failed' }])
  })
})
