/** One question of one PDP by each way to ask it, each with an access token that is verified and looked up for revocation. */
import { Pool } from 'undici'
import { grpcClient } from '../../consistency/history-grpc.ts'
import { clientToken } from '../../support/sign-in.ts'
import { staleness } from '../report/stale.ts'
import { type BenchPdp, startBenchPdp } from '../sidecar-pdp.ts'
import { type Extent, measureInTurn, type Part, type Way } from './rows.ts'

const CALLERS = 32
const BATCH = 8
const REFERENCE = 'a gRPC stream (DecideStream)'
const ASKER = { clientId: 'asker', clientSecret: 'asker-secret-of-no-value-anywhere' }

/** Whether the invoice may be viewed by the asker. */
type Ask = (invoice: string) => Promise<boolean>

export async function measureTransports(extent: Extent): Promise<Part> {
  const pdp = await startBenchPdp()
  const pool = new Pool(pdp.issuer, { connections: CALLERS })
  const client = grpcClient(pdp.grpcAddress)
  try {
    await pdp.manage('PUT', `/v1/clients/${ASKER.clientId}`, {
      organization: 'acme',
      grant_types: ['client_credentials'],
      scope: 'decisions:read',
      client_secret: ASKER.clientSecret,
    })
    await change(pdp, 'write', '1')
    const grant = await clientToken({ issuer: pdp.issuer, ...ASKER, scope: 'decisions:read' })
    const asks = waysToAsk({ pool, client, token: grant.access_token })
    const ways = Object.entries(asks).map(([name, { ask, weight }], at): Way => {
      const trial = (i: number): string => `t${at}-${i}`
      return {
        name,
        ours: true,
        unchecked: '',
        weight,
        async call() {
          if (!(await ask('1'))) throw new Error(`${name} is wrong`)
        },
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
    const rows = await measureInTurn(ways, { ...extent, callers: CALLERS })
    const title = `one PDP with its database, ${CALLERS} callers`
    return { name: 'transports', groups: [{ title, unit: 'decisions', reference: REFERENCE, rows }], missing: [] }
  } finally {
    client.close()
    await pool.destroy()
    await pdp.stop()
  }
}

const change = (pdp: BenchPdp, kind: 'write' | 'delete', invoice: string): Promise<void> =>
  pdp.manage('POST', '/v1/organizations/acme/relationships', {
    [kind]: [`invoice:${invoice}#viewer@service:${ASKER.clientId}`],
  })

function waysToAsk({ pool, client, token }: { pool: Pool; client: ReturnType<typeof grpcClient>; token: string }) {
  const permissions = (invoice: string, count: number) =>
    Array.from({ length: count }, () => ({ relation: 'viewer', resource: `invoice:${invoice}` }))
  async function post(path: string, body: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await pool.request({ method: 'POST', path, headers, body: JSON.stringify(body) })
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${await response.body.text()}`)
    return response.body.json()
  }
  const http =
    (count: number): Ask =>
    async (invoice) => {
      const answer = await post('/oauth/decisions', { permissions: permissions(invoice, count) })
      return (answer as { permissions: { allowed: boolean }[] }).permissions[0]?.allowed === true
    }
  const authzen: Ask = async (invoice) => {
    const subject = { type: 'service', id: ASKER.clientId }
    const body = { subject, action: { name: 'viewer' }, resource: { type: 'invoice', id: invoice } }
    return ((await post('/access/v1/evaluation', body)) as { decision: boolean }).decision
  }
  const question = (invoice: string, count: number, subject = '') => ({
    organization: 'acme',
    subject,
    permissions: permissions(invoice, count),
    entitlements: [],
  })
  const streamed =
    (count: number): Ask =>
    async (invoice) =>
      (await client.ask(question(invoice, count), token)).permissions[0]?.allowed === true
  const unary: Ask = async (invoice) =>
    (await client.decide(question(invoice, 1, `service:${ASKER.clientId}`), token)).permissions[0]?.allowed === true
  return {
    [REFERENCE]: { ask: streamed(1), weight: 1 },
    [`a gRPC stream, ${BATCH} checks in a question`]: { ask: streamed(BATCH), weight: BATCH },
    'a gRPC call (Decide)': { ask: unary, weight: 1 },
    'HTTP (POST /oauth/decisions)': { ask: http(1), weight: 1 },
    [`HTTP, ${BATCH} checks in a question`]: { ask: http(BATCH), weight: BATCH },
    'AuthZEN (POST /access/v1/evaluation)': { ask: authzen, weight: 1 },
  } as const
}
