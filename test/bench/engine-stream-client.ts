/** The asking side of `engine-stream.ts`, a process of its own as a sidecar is: asks what it is told, and reports. */
import { hash } from 'node:crypto'
import { credentials } from '@grpc/grpc-js'
import { createPdpStream, type PdpStream } from '../../sidecar/pdp-client/stream.ts'

export type Load = { readonly address: string; readonly token: string; readonly batches: readonly number[] }
export type Measured = { readonly batch: number; readonly rate: number; readonly p99Ms: number }

const IN_FLIGHT = 32
const WARM_MS = 2_000
const ROUND_MS = 3_000
const ROUNDS = 3

process.once('message', (load) => {
  measure(load as Load).then(
    (measured) => process.send?.(measured, () => process.disconnect()),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})

async function measure({ address, token, batches }: Load): Promise<readonly Measured[]> {
  const link = await openLink(address)
  const measured: Measured[] = []
  for (const batch of batches) {
    await round(link, { token, batch, ms: WARM_MS })
    for (let i = 0; i < ROUNDS; i++) measured.push({ batch, ...(await round(link, { token, batch, ms: ROUND_MS })) })
  }
  link.close()
  return measured
}

function openLink(address: string): Promise<PdpStream> {
  return new Promise((resolve) => {
    const link: PdpStream = createPdpStream({
      address,
      credentials: credentials.createInsecure(),
      authorize: null,
      random: Math.random,
      onOpen: () => resolve(link),
      connectMs: 3_000,
      clock: Date.now,
      onDate: () => undefined,
      onClosed: () => {},
    })
  })
}

async function round(
  link: PdpStream,
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
        {
          token: load.token,
          digest,
          subject: 'bob',
          organization: 'acme',
          permissions,
          entitlements: [],
          context: '',
          requestId: '',
        },
        (outcome) => {
          const right =
            outcome.kind === 'answer' && outcome.decision.active && outcome.decision.permissions[0]?.allowed === true
          if (!right) return reject(new Error(`wrong: ${JSON.stringify(outcome)}`))
          if (done++ % 10 === 0) times.push(performance.now() - sent)
          resolve()
        },
      )
    })
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (performance.now() - begin < load.ms) await ask()
    }),
  )
  times.sort((a, b) => a - b)
  return {
    rate: ((done * load.batch) / (performance.now() - begin)) * 1_000,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
  }
}
