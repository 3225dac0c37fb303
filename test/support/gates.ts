/** A small system of its own that owns entitlements and answers as an entitlement source has to. */
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { Entitlement } from '../../pdp/shared/domain/entitlement.ts'

export const GATES_SECRET = 'gates-secret-0123456789'

export type Gates = {
  readonly url: string
  readonly requests: { readonly headers: IncomingHttpHeaders; readonly question: unknown }[]
  /** Committed once this returns; nobody is told. */
  set(organization: string, key: string, entitlement: Entitlement | null): void
  /** The correct answer, as an object. */
  answer(organization: string, keys: readonly string[] | null): object
  /** Answers in place of the correct one from now on; null: as it should. */
  misbehave(listener: RequestListener | null): void
  close(): Promise<void>
}

export async function startGates(): Promise<Gates> {
  const held = new Map<string, Map<string, Entitlement>>()
  const requests: Gates['requests'] = []
  let changes = 0
  let misbehaviour: RequestListener | null = null
  const answer = (organization: string, keys: readonly string[] | null) => ({
    organization,
    state: `after ${changes}`,
    values: Object.fromEntries([...(held.get(organization) ?? [])].filter(([key]) => keys?.includes(key) ?? true)),
  })
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => void chunks.push(chunk))
    req.on('end', () => {
      const question = JSON.parse(Buffer.concat(chunks).toString())
      requests.push({ headers: req.headers, question })
      if (misbehaviour !== null) return misbehaviour(req, res)
      if (req.headers.authorization !== `Bearer ${GATES_SECRET}`) return void res.writeHead(401).end()
      res.end(JSON.stringify(answer(question.organization, question.keys)))
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/gates`,
    requests,
    set(organization, key, entitlement) {
      changes++
      const gates = held.get(organization) ?? new Map<string, Entitlement>()
      if (entitlement === null) gates.delete(key)
      else gates.set(key, entitlement)
      held.set(organization, gates)
    },
    answer,
    misbehave(listener) {
      misbehaviour = listener
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
