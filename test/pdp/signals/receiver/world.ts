/** A receiver over a real database, and a transmitter of somebody else that it knows. */
import { createServer } from 'node:http'
import { expect, vi } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Sql } from '../../../../pdp/engine/store/directory.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { createExternalIssuers, type ExternalIssuers } from '../../../../pdp/identity/issuer/tokens/external-issuers.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import type { IntakeOutcome } from '../../../../pdp/signals/receiver/intake.ts'
import { RECEIVER_PATH } from '../../../../pdp/signals/receiver/push.ts'
import { type Receiver, type ReceiverDeps, startReceiver } from '../../../../pdp/signals/receiver/receiver.ts'
import type { SignalsDocument } from '../../../../pdp/signals/receiver/registration.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { freePort } from '../../../support/free-port.ts'
import { context } from '../../../support/tuples.ts'
import { logInto } from '../../identity/harness.ts'
import { CLIENT, startTransmitter, type Transmitter, type Ways } from './transmitter.ts'

export const MASTER_KEY = Buffer.alloc(32, 5)
export type ReceiverWorld = {
  readonly transmitter: Transmitter
  readonly issuers: ExternalIssuers
  readonly sql: Sql
  readonly pdp: Pdp
  readonly log: string[]
  readonly outcomes: IntakeOutcome[]
  /** As the entry of the issuer names its transmitter. */
  readonly ssf: (change?: Partial<SignalsDocument>) => SignalsDocument
  readonly receiver: Receiver
  /** Registers the issuer with this transmitter, and waits until its stream is made and has shown that it lives. */
  connect(change?: Partial<SignalsDocument>): Promise<void>
  put(issuer: string, change?: Partial<SignalsDocument>): Promise<void>
  /** Without a transmitter. */
  putPlain(): Promise<void>
  readonly connectionString: string
  /** Another process on the same database. */
  another(deps?: Partial<ReceiverDeps>): Receiver
  /** Ids in the token log, as `<cause> <id>`. */
  ended(): Promise<readonly string[]>
  state(): Promise<Awaited<ReturnType<Receiver['states']>>[number] | undefined>
  close(): Promise<void>
}

export async function openReceiver(
  given: Partial<Ways> = {},
  options: Partial<ReceiverDeps> & { readonly prefix?: string } = {},
): Promise<ReceiverWorld> {
  const database = await openTestDatabase()
  const { sql, store, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 8 })
  const log: string[] = []
  const outcomes: IntakeOutcome[] = []
  const transmitter = await startTransmitter(await freePort(), given)
  const port = await freePort()
  const parts = { sql, appendJournal, fetch, clock: Date.now, log: logInto(log), masterKeys: masterKeysOf(MASTER_KEY) }
  const issuers = createExternalIssuers({ ...parts, issuer: `http://127.0.0.1:${port}` })
  const receivers: Receiver[] = []
  const another = (deps: Partial<ReceiverDeps> = {}): Receiver => {
    const made = startReceiver({
      ...parts,
      issuer: `http://127.0.0.1:${port}`,
      onOutcome: (_, outcome) => void outcomes.push(outcome),
      ...{ tickMs: 50, leaseMs: 2_000, verifyEveryMs: 500 },
      ...options,
      ...deps,
    })
    receivers.push(made)
    return made
  }
  const receiver = another()
  const server = createServer((req, res) => {
    const path = req.url ?? ''
    if (path.startsWith(RECEIVER_PATH)) void receiver.push(req, res, path.slice(RECEIVER_PATH.length))
    else res.writeHead(404).end()
  })
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))

  const ssf = (change: Partial<SignalsDocument> = {}): SignalsDocument => ({
    delivery: 'poll',
    authorization: {
      token_endpoint: `${transmitter.issuer}/token`,
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
    },
    ...change,
  })
  const states = () => receiver.states()
  const register = async (issuer: string, more: { readonly ssf?: SignalsDocument }): Promise<void> => {
    const document = {
      ...{ jwks: transmitter.jwks, algorithms: ['RS256'] as const, audience: 'https://orders.test' },
      ...{ subject_prefix: `${issuer.replace(/\W/g, '')}:`, organizations: ['acme'] },
    }
    await issuers.put(issuer, { ...document, ...more }, context)
  }
  const world: ReceiverWorld = {
    ...{ transmitter, issuers, sql, log, outcomes, ssf, receiver, another },
    pdp: createPdp({ store }),
    connectionString: database.connectionString,
    put: (issuer, change) => register(issuer, { ssf: ssf({ issuer: transmitter.issuer, ...change }) }),
    putPlain: () => register(transmitter.issuer, {}),
    async connect(change) {
      await world.put(transmitter.issuer, change)
      await eventually(async () => expect((await world.state())?.heard_at).toEqual(expect.any(String)))
    },
    async ended() {
      const rows = await sql.query<{ by: string; id: string }>(
        "select change ->> 'by' as by, change ->> 'id' as id from change_log where organization_id = '#tokens' order by revision, seq",
      )
      return rows.map(({ by, id }) => `${by} ${id}`)
    },
    async state() {
      return (await states()).find(({ issuer }) => issuer === transmitter.issuer)
    },
    async close() {
      await Promise.all(receivers.map((made) => made.close()))
      await transmitter.stop()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await close()
      await database.drop()
    },
  }
  return world
}

/** Waits for what is expected; a busy machine may take its time. */
export const eventually = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 30_000, interval: 20 })
