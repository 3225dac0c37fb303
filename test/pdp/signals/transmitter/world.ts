/** A transmitter behind real servers and a real database, and receivers that a test tells what to answer. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose'
import { appendEvents, type OutboxEvent } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { parseSet, parseSetClaims, type SetClaims } from '../../../../pdp/signals/set/set.ts'
import type { TransmitterDeps } from '../../../../pdp/signals/transmitter/transmitter.ts'
import { type Answer, CONTEXT, ISSUER, type Served, serve } from '../../server/serve/harness.ts'

export { CONTEXT, ISSUER }
export const PUSH = 'urn:ietf:rfc:8935'
export const POLL = 'urn:ietf:rfc:8936'
export const VERIFICATION = 'https://schemas.openid.net/secevent/ssf/event-type/verification'

export type Pushed = {
  readonly token: string
  readonly claims: SetClaims
  readonly headers: IncomingMessage['headers']
  readonly atMs: number
}
export type Receiver = {
  readonly url: string
  readonly pushed: readonly Pushed[]
  /** What it answers from now on; by default 202. */
  answer: (pushed: Pushed, res: ServerResponse) => void
  /** As soon as there are so many. */
  received(count: number): Promise<readonly Pushed[]>
  close(): Promise<void>
}
export const accept = (_pushed: Pushed, res: ServerResponse): void => void res.writeHead(202).end()
export const status =
  (code: number, body = '', headers: { [name: string]: string } = {}) =>
  (_pushed: Pushed, res: ServerResponse): void =>
    void res.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body)

export async function startReceiver(): Promise<Receiver> {
  const pushed: Pushed[] = []
  const waiting = new Set<() => void>()
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const token = Buffer.concat(chunks).toString()
    const one = { token, claims: parseSetClaims(parseSet(token).payload), headers: req.headers, atMs: Date.now() }
    pushed.push(one)
    receiver.answer(one, res)
    for (const check of [...waiting]) check()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address === null || typeof address === 'string' ? 0 : address.port
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/events`,
    pushed,
    answer: accept,
    received: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (pushed.length < count) return
          waiting.delete(check)
          resolve([...pushed])
        }
        waiting.add(check)
        check()
      }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return receiver
}

export type SignalWorld = Served & {
  /** A client with these scopes; its token. */
  client(id: string, options?: { organization?: string; app?: string; scopes?: readonly string[] }): Promise<string>
  /** A stream of the client; its configuration. */
  stream(token: string, body?: object): Promise<{ readonly stream_id: string; readonly [member: string]: unknown }>
  poll(token: string, stream: string, body?: object): Promise<Answer>
  /** Events of the outbox in a transaction of their own. */
  emit(...events: readonly OutboxEvent[]): Promise<void>
  /** True when the key of this world signed it. */
  verifies(token: string): Promise<boolean>
  /** From now on another key signs, and the former one is not published any more. */
  rotateKey(): Promise<void>
  sql: Served['sql']
}

export async function openSignals(signals: Partial<TransmitterDeps> = {}): Promise<SignalWorld> {
  let number = 1
  let pair = await generateKeyPair('RS256', { extractable: true })
  const served = await serve({
    signals: {
      signSet: async (claims) => {
        const kid = `key-${number}`
        const header = { alg: 'RS256', typ: 'secevent+jwt', kid }
        return { kid, token: await new SignJWT({ ...claims }).setProtectedHeader(header).sign(pair.privateKey) }
      },
      publishedKids: () => new Set([`key-${number}`]),
      ...signals,
    },
  })
  const { send, directory, store } = served
  const organizations = [
    { id: 'acme', parent: null },
    { id: 'acme-lab', parent: 'acme' },
    { id: 'beta', parent: null },
  ]
  for (const { id, parent } of organizations)
    await store.write(ENVIRONMENT, [{ kind: 'organization', id, organization: { id, name: id, parent } }], {
      context: CONTEXT,
    })
  for (const id of ['alice', 'bob'])
    await directory.putUser({ id, email: `${id}@acme.test`, emailVerified: true, name: id }, CONTEXT)
  return {
    ...served,
    async client(id, { organization, app, scopes = ['ssf.manage'] } = {}) {
      const token = await served.manager({
        client: id,
        scopes,
        ...(organization === undefined ? {} : { organization }),
      })
      const stored = await directory.client(id)
      if (app !== undefined && stored !== null)
        await directory.putClient({ id, app, organization: stored.organization, metadata: stored.metadata }, CONTEXT)
      return token
    },
    async stream(token, body = {}) {
      const answer = await send('POST', '/ssf/stream', { token, body })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    poll: (token, stream, body = { returnImmediately: true }) => send('POST', `/ssf/poll/${stream}`, { token, body }),
    async emit(...events) {
      await served.sql.transaction((tx) => appendEvents(tx, events))
      served.transmitter.poke()
    },
    async verifies(token) {
      const key = await exportJWK(pair.publicKey)
      return jwtVerify(token, key, { typ: 'secevent+jwt', algorithms: ['RS256'] }).then(
        () => true,
        () => false,
      )
    },
    async rotateKey() {
      number += 1
      pair = await generateKeyPair('RS256', { extractable: true })
    },
  }
}

export const pushTo = ({ url }: Receiver, more: object = {}): object => ({
  delivery: { method: PUSH, endpoint_url: url, ...more },
})

/** An event of an organization that names it by its version. */
export const entitlement = (organization: string, version: number): OutboxEvent => ({
  type: 'entitlement.updated',
  organization,
  data: { organization, keys: ['seats'], version },
})
export const versionsOf = (pushed: readonly Pushed[]): readonly unknown[] =>
  pushed.map(({ claims }) => claims.event.members.version)
/** The SETs of a poll, in order. */
export const setsOf = ({ body }: Answer): readonly SetClaims[] =>
  Object.values((body as { sets: JsonObject }).sets).map((token) => parseSetClaims(parseSet(String(token)).payload))
