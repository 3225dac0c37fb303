/** `DecideStream` end to end: real tokens, the sidecar's own client in a process of its own, the PDP, and PostgreSQL. */
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLog } from '../../pdp/process/log.ts'
import { createShutdown } from '../../pdp/process/shutdown.ts'
import { startPdp } from '../../pdp/runtime/start.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { createWorld } from '../e2e/demo-world.ts'
import { median, perSecond } from './engine-data.ts'
import type { Load, Measured } from './engine-stream-client.ts'

const BATCHES = [1, 8]

export async function benchStream(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const log = createLog({ service: 'bench', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const ports = await choosePorts({})
  const at = (port: number) => ({ host: '127.0.0.1', port })
  const pdp = await startPdp(
    {
      issuer: `http://127.0.0.1:${ports.http}`,
      adminSecret: null,
      masterKey: null,
      nextMasterKey: null,
      http: at(ports.http),
      grpc: at(ports.grpc),
      grpcTls: null,
      serviceAccounts: null,
      metrics: at(ports.metrics),
      trustedProxies: [],
      databaseUrl: null,
      databaseSchema: null,
      redisUrl: null,
      entitlementSource: null,
      embedEntitlements: 'claims-mode',
      internalHosts: [],
      changesKeptDays: null,
      console: false,
      decisionsKept: 0,
      checkTuplesMax: 100_000,
      dataDirectory,
      logLevel: 'silent',
      logAllowedOneIn: 1,
      tracing: null,
    },
    { log, shutdown },
  )
  const { tokens } = await createWorld(pdp)
  try {
    const measured = await ask({ address: pdp.grpcAddress, token: tokens.bob, batches: BATCHES })
    console.log('DecideStream with tokens, end to end')
    for (const batch of BATCHES) {
      const rounds = measured.filter((m) => m.batch === batch)
      console.log(
        `  32 in flight, ${batch} check${batch === 1 ? '' : 's'} each: ${perSecond(median(rounds.map((r) => r.rate)))} decisions  p99 ${median(rounds.map((r) => r.p99Ms)).toFixed(2)} ms`,
      )
    }
  } finally {
    await pdp.close()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

function ask(load: Load): Promise<readonly Measured[]> {
  const client = fork(fileURLToPath(new URL('engine-stream-client.ts', import.meta.url)))
  return new Promise((resolve, reject) => {
    client.once('message', (measured) => resolve(measured as readonly Measured[]))
    client.once('exit', (code) => reject(new Error(`the client ended with ${code}`)))
    client.send(load)
  })
}
