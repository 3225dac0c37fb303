/**
 * `npm run bench -- transports [MAIN...]`: the ways to ask a PDP, asked by processes of their own. `MAIN`: builds to compare in
 * turn, such as `dist/pdp/bin.js`; default `pdp/main.ts`.
 */
import { resolve } from 'node:path'
import { clientToken } from '../../support/sign-in.ts'
import { staleness } from '../report/stale.ts'
import { type BenchPdp, startBenchPdp } from '../sidecar/pdp.ts'
import { show } from '../suite/print.ts'
import { type Extent, measureInTurn, type Part, USUAL, type Way } from '../suite/rows.ts'
import { startCallers } from './callers.ts'
import { ASKER, REFERENCE, type WayToAsk, waysToAsk } from './ways-to-ask.ts'

const CALLERS = 32
const PROCESSES = 2
const RATE = 500

export const bench = async (mains: readonly string[]): Promise<void> => show([await measureTransports(USUAL, mains)])

export async function measureTransports(extent: Extent, mains: readonly string[] = []): Promise<Part> {
  const closers: (() => Promise<void> | void)[] = []
  try {
    const ways: Way[] = []
    const missing: string[] = []
    for (const main of mains.length === 0 ? [undefined] : mains) {
      const pdp = await startBenchPdp(main === undefined ? main : resolve(main))
      closers.unshift(() => pdp.stop())
      const prefix = mains.length > 1 ? `${main}: ` : ''
      for (const way of await waysOf(pdp, { extent, prefix, closers })) {
        const has = await Promise.resolve(way.call(0)).catch(() => false)
        if (has === true) ways.push(way)
        else missing.push(way.name)
      }
    }
    const rows = await measureInTurn(ways, { ...extent, callers: CALLERS, rate: RATE })
    const title = `one PDP with its database; decisions/s with ${CALLERS} callers in ${PROCESSES} processes, latency at ${RATE} calls/s`
    const reference = ways.find(({ name }) => name.endsWith(REFERENCE))?.name ?? ''
    return { name: 'transports', groups: [{ title, unit: 'decisions', reference, rows }], missing }
  } finally {
    for (const close of closers) await close()
  }
}

type Run = {
  readonly extent: Extent
  /** Of each name. */
  readonly prefix: string
  readonly closers: (() => Promise<void> | void)[]
}

async function waysOf(pdp: BenchPdp, { extent, prefix, closers }: Run): Promise<readonly Way[]> {
  const { issuer, grpcAddress } = pdp
  await pdp.manage('PUT', `/v1/clients/${ASKER.clientId}`, {
    organization: 'acme',
    grant_types: ['client_credentials'],
    scope: 'decisions:read',
    client_secret: ASKER.clientSecret,
  })
  await change(pdp, 'write', '1')
  const grant = await clientToken({ issuer, ...ASKER, scope: 'decisions:read' })
  const asked = { issuer, grpcAddress, token: grant.access_token }
  const callers = startCallers(asked, { processes: PROCESSES, callers: CALLERS / PROCESSES })
  const { ways, close } = waysToAsk(asked, CALLERS)
  closers.unshift(close, () => callers.close())
  return Object.entries(ways).map(
    ([name, { ask, weight }], at): Way => ({
      name: `${prefix}${name}`,
      ours: true,
      unchecked: '',
      weight,
      callers: callers.pids,
      call: () => ask('1'),
      load: (manner) => callers.load(name, manner),
      stale: () => revocations(pdp, { ask, at, extent }),
    }),
  )
}

function revocations(pdp: BenchPdp, { ask, at, extent }: { ask: WayToAsk['ask']; at: number; extent: Extent }) {
  const trial = (i: number): string => `t${at}-${i}`
  return staleness(
    {
      grant: (i) => change(pdp, 'write', trial(i)),
      revoke: (i) => change(pdp, 'delete', trial(i)),
      allowed: (i) => ask(trial(i)),
    },
    { count: extent.revocations, waitMs: extent.waitMs },
  )
}

const change = (pdp: BenchPdp, kind: 'write' | 'delete', invoice: string): Promise<void> =>
  pdp.manage('POST', '/v1/organizations/acme/relationships', {
    [kind]: [`invoice:${invoice}#viewer@service:${ASKER.clientId}`],
  })
