import { Gauge } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import {
  createRegistry,
  NO_REFUSAL,
  type Operations,
  startOperations,
} from '../../../../pdp/shared/process/admin-listener.ts'

let operations: Operations | null = null
afterEach(async () => {
  await operations?.close()
})

test('metrics that cannot be collected are 500, and the process goes on', async () => {
  const registry = createRegistry()
  new Gauge({
    name: 'broken',
    help: 'fails',
    registers: [registry],
    collect() {
      throw new Error('fails')
    },
  })
  operations = await startOperations({
    listen: { host: '127.0.0.1', port: 0 },
    registry,
    probes: { '/readyz': () => null },
  })
  const origin = `http://127.0.0.1:${operations.address.port}`
  expect((await fetch(`${origin}/metrics`)).status).toBe(500)
  expect((await fetch(`${origin}/readyz`)).status).toBe(200)
  registry.removeSingleMetric('broken')
  const { status } = await fetch(`${origin}/metrics`)
  expect(status).toBe(200)
})

test('a refusal is found by its request id only, and where nobody knows refusals there is no such page', async () => {
  const known = new Map([['a1', { reason: 'token_missing', status: 401 }]])
  const refusal = (id: string): object | null => known.get(id) ?? null
  const given = { listen: { host: '127.0.0.1', port: 0 }, registry: createRegistry(), probes: {} }
  operations = await startOperations({ ...given, refusal })
  const ask = async (path: string): Promise<readonly [number, string]> => {
    const found = await fetch(`http://127.0.0.1:${operations?.address.port}${path}`)
    return [found.status, await found.text()]
  }
  expect(await ask('/refusals/a1')).toEqual([200, '{"reason":"token_missing","status":401}\n'])
  for (const id of ['', 'a2', 'a1/', 'A1', '%61%31', 'toString'])
    expect(await ask(`/refusals/${id}`)).toEqual([404, NO_REFUSAL])
  expect(await ask('/refusals')).toEqual([404, 'not found\n'])
  await operations.close()
  operations = await startOperations({ ...given, registry: createRegistry() })
  expect(await ask('/refusals/a1')).toEqual([404, 'not found\n'])
})
