/** `DecideStream` end to end: real tokens, the sidecar's own client, PDP and PostgreSQL sharing the two cores. */
import { hash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { createLog } from '../../pdp/process/log.ts'
import { createShutdown } from '../../pdp/process/shutdown.ts'
import { startPdp } from '../../pdp/start.ts'
import { createPdpLink, type PdpLink } from '../../sidecar/pdp-link.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { createWorld } from '../e2e/demo-world.ts'
import { median, perSecond } from './engine-data.ts'

const ROUND_MS = 3_000

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
      http: at(ports.http),
      grpc: at(ports.grpc),
      grpcTls: null,
      serviceAccounts: null,
      metrics: at(ports.metrics),
      databaseUrl: null,
      redisUrl: null,
      entitlementSource: null,
      embedEntitlements: 'claims-mode',
      dataDirectory,
      logLevel: 'silent',
    },
    { log, shutdown },
  )
  const { tokens } = await createWorld(pdp)
  let opened: () => void = () => {}
  const open = new Promise<void>((resolve) => {
    opened = resolve
  })
  const link = createPdpLink({
    address: pdp.grpcAddress,
    credentials: credentials.createInsecure(),
    authorize: null,
    random: Math.random,
    onOpen: () => opened(),
    onClosed: () => {},
  })
  try {
    await open
    console.log('DecideStream with tokens, end to end')
    for (const batch of [1, 8]) {
      await round(link, { token: tokens.bob, batch, ms: 1_500 })
      const rounds: { rate: number; p99Ms: number }[] = []
      for (let i = 0; i < 3; i++) rounds.push(await round(link, { token: tokens.bob, batch, ms: ROUND_MS }))
      console.log(
        `  32 in flight, ${batch} check${batch === 1 ? '' : 's'} each: ${perSecond(median(rounds.map((r) => r.rate)))} decisions  p99 ${median(rounds.map((r) => r.p99Ms)).toFixed(2)} ms`,
      )
    }
  } finally {
    link.close()
    await pdp.close()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function round(
  link: PdpLink,
  load: { token: string; batch: number; ms: number },
): Promise<{ rate: number; p99Ms: number }> {
  const permissions = Array.from({ length: load.batch }, (_, i) => ({
    relation: 'viewer',
    resource: i % 2 === 0 ? 'invoice:2' : 'invoice:1',
  }))
  const digest = hash('sha256', load.token, 'base64url')
  const times: number[] = []
  const begin = performance.now()
  let done = 0
  const ask = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = performance.now()
      link.send(
        { token: load.token, digest, subject: 'bob', organization: 'acme', permissions, entitlements: [] },
        (outcome) => {
          const right =
            outcome.kind === 'answer' && outcome.response.active && outcome.response.permissions[0]?.allowed === true
          if (!right) return reject(new Error(`wrong: ${JSON.stringify(outcome)}`))
          if (done++ % 10 === 0) times.push(performance.now() - sent)
          resolve()
        },
      )
    })
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      while (performance.now() - begin < load.ms) await ask()
    }),
  )
  times.sort((a, b) => a - b)
  return {
    rate: ((done * load.batch) / (performance.now() - begin)) * 1_000,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
  }
}
