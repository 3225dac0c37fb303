/** One question of one PDP by each way to ask it, each with an access token that is verified and looked up for revocation. */
import { Pool } from 'undici'
import { connectPdp } from '../../../pdp/shared/client/client.ts'
import { grpcClient } from '../../consistency/history/grpc.ts'

export const ASKER = { clientId: 'asker', clientSecret: 'asker-secret-of-no-value-anywhere' }
export const REFERENCE = 'a gRPC stream (DecideStream)'
const BATCH = 8

export type Asked = { readonly issuer: string; readonly grpcAddress: string; readonly token: string }
/** Whether the invoice may be viewed by the asker. */
export type Ask = (invoice: string) => Promise<boolean>
/** `weight`: decisions of one call. */
export type WayToAsk = { readonly ask: Ask; readonly weight: number }

export function waysToAsk({ issuer, grpcAddress, token }: Asked, connections: number) {
  const pool = new Pool(issuer, { connections })
  const client = grpcClient(grpcAddress)
  const packaged = connectPdp({ address: grpcAddress, tls: null })
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
  const unary =
    (count: number): Ask =>
    async (invoice) => {
      const asked = question(invoice, count, `service:${ASKER.clientId}`)
      return (await client.decide(asked, token)).permissions[0]?.allowed === true
    }
  const ways: { readonly [name: string]: WayToAsk } = {
    [REFERENCE]: { ask: streamed(1), weight: 1 },
    [`a gRPC stream, ${BATCH} checks in a question`]: { ask: streamed(BATCH), weight: BATCH },
    'the client of the package (portcullis/client)': {
      ask: (invoice) => packaged.can(token, 'viewer', `invoice:${invoice}`),
      weight: 1,
    },
    'a gRPC call (Decide)': { ask: unary(1), weight: 1 },
    [`a gRPC call, ${BATCH} checks in a question`]: { ask: unary(BATCH), weight: BATCH },
    'HTTP (POST /oauth/decisions)': { ask: http(1), weight: 1 },
    [`HTTP, ${BATCH} checks in a question`]: { ask: http(BATCH), weight: BATCH },
    'AuthZEN (POST /access/v1/evaluation)': { ask: authzen, weight: 1 },
  }
  return {
    ways,
    async close(): Promise<void> {
      client.close()
      packaged.close()
      await pool.destroy()
    },
  }
}
