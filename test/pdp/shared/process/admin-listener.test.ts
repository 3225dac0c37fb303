import { Gauge } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { createRegistry, type Operations, startOperations } from '../../../../pdp/shared/process/admin-listener.ts'

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
