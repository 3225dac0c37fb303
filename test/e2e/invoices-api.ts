/** The service behind the sidecar in the demo: it serves invoices to whoever asks, and knows nothing of authorization. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { formatAddress } from '../../pdp/shared/process/listen.ts'

export type InvoicesApi = {
  readonly url: string
  /** Requests that have arrived so far. */
  requestCount(): number
  close(): Promise<void>
}

const INVOICES: { readonly [id: string]: { readonly id: string; readonly customer: string; readonly total: number } } =
  {
    '1': { id: '1', customer: 'Wile E. Coyote', total: 120 },
    '2': { id: '2', customer: 'Road Runner', total: 340 },
  }

export async function startInvoicesApi(host = '127.0.0.1'): Promise<InvoicesApi> {
  let count = 0
  const server = createServer((req, res) => {
    count += 1
    const [, collection, id = '', view] = (req.url ?? '').split('/')
    const answer = (status: number, body: object): void => {
      res.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
    }
    if (collection === 'public') return answer(200, { service: 'invoices', status: 'up' })
    const invoice = collection === 'invoices' ? INVOICES[id] : undefined
    if (invoice === undefined) return answer(404, { error: 'no such invoice' })
    // It trusts these fields as it would those of any gateway; whether it may is what the demo shows.
    return answer(200, {
      ...invoice,
      ...(view === 'export' ? { format: 'csv' } : {}),
      requested_by: req.headers['x-auth-subject'] ?? null,
      token_seen: req.headers.authorization !== undefined,
    })
  })
  await new Promise<void>((done) => server.listen(0, host, done))
  return {
    url: `http://${formatAddress({ host, port: portOf(server.address()) })}`,
    requestCount: () => count,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function portOf(address: AddressInfo | string | null): number {
  return address === null || typeof address === 'string' ? 0 : address.port
}
