/** `npm run bench -- transports`: the ways to ask a PDP, asked by processes of their own. */
import { clientToken } from '../../support/sign-in.ts'
import { staleness } from '../report/stale.ts'
import { type BenchPdp, startBenchPdp } from '../sidecar-pdp.ts'
import { show } from '../suite/print.ts'
import { type Extent, measureInTurn, type Part, USUAL, type Way } from '../suite/rows.ts'
import { startCallers } from './callers.ts'
import { ASKER, REFERENCE, waysToAsk } from './ways-to-ask.ts'

const CALLERS = 32
const PROCESSES = 2
const RATE = 500

export const bench = async (): Promise<void> => show([await measureTransports(USUAL)])

export async function measureTransports(extent: Extent): Promise<Part> {
  const pdp = await startBenchPdp()
  const { issuer, grpcAddress } = pdp
  try {
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
    try {
      const measured = Object.entries(ways).map(([name, { ask, weight }], at): Way => {
        const trial = (i: number): string => `t${at}-${i}`
        return {
          name,
          ours: true,
          unchecked: '',
          weight,
          callers: callers.pids,
          call: () => ask('1'),
          load: (manner) => callers.load(name, manner),
          stale: () =>
            staleness(
              {
                grant: (i) => change(pdp, 'write', trial(i)),
                revoke: (i) => change(pdp, 'delete', trial(i)),
                allowed: (i) => ask(trial(i)),
              },
              { count: extent.revocations, waitMs: extent.waitMs },
            ),
        }
      })
      const rows = await measureInTurn(measured, { ...extent, callers: CALLERS, rate: RATE })
      const title = `one PDP with its database; decisions/s with ${CALLERS} callers in ${PROCESSES} processes, latency at ${RATE} calls/s`
      return { name: 'transports', groups: [{ title, unit: 'decisions', reference: REFERENCE, rows }], missing: [] }
    } finally {
      callers.close()
      await close()
    }
  } finally {
    await pdp.stop()
  }
}

const change = (pdp: BenchPdp, kind: 'write' | 'delete', invoice: string): Promise<void> =>
  pdp.manage('POST', '/v1/organizations/acme/relationships', {
    [kind]: [`invoice:${invoice}#viewer@service:${ASKER.clientId}`],
  })
