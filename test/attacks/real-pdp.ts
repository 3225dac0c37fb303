/** The real PDP for attack cases: the engine over a memory store, behind the real gRPC service. */
import { randomUUID } from 'node:crypto'
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../pdp/engine/store/contract.ts'
import type { Directory } from '../../pdp/engine/store/directory.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { INACTIVE, type TokenState } from '../../pdp/identity/issuer/tokens/token-state.ts'
import { createAnswerQuestion } from '../../pdp/server/serve/decisions/answer.ts'
import { createWatchedQuestions } from '../../pdp/server/serve/decisions/watched-questions.ts'
import { startGrpcServer } from '../../pdp/server/serve/grpc/server.ts'
import type { Change } from '../../pdp/shared/domain/change.ts'
import { createLog } from '../../pdp/shared/process/log.ts'

export type RealPdp = {
  readonly address: string
  readonly store: Store
  /** Tuples are written as at the start. */
  change(op: 'write' | 'delete', tuples: readonly string[]): Promise<void>
  stop(): Promise<void>
}

const CONTEXT = { actor: 'attacks', requestId: 'attacks' }
// The same tuple would name people of another type in an app's own terms; the fixture's subjects are users.
const TUPLE = /^(\S+) (\S+) (\S+:\S+)$/

/** `tuples` as in the fixture: `alice viewer invoice:1`; all are of the given organization. */
export async function startRealPdp(tuples: readonly string[], organization: string): Promise<RealPdp> {
  const store = memoryStore()
  await store.write(
    '#environment',
    [{ kind: 'organization', id: organization, organization: { id: organization, name: organization, parent: null } }],
    { context: CONTEXT },
  )
  const change = async (op: 'write' | 'delete', texts: readonly string[]): Promise<void> => {
    const changes = texts.map((text): Change => {
      const [, user = '', relation = '', object = ''] = TUPLE.exec(text) ?? []
      return { kind: 'tuple', op, tuple: { object, relation, subject: `user:${user}`, expiresAtMs: null } }
    })
    await store.write(organization, changes, { context: CONTEXT })
  }
  await change('write', tuples)
  const pdp = createPdp({ store })
  const log = createLog({ service: 'attacks', level: 'silent' })
  const answer = createAnswerQuestion({ pdp, directory: NOBODY, randomId: randomUUID })
  const watched = createWatchedQuestions({
    store,
    pdp,
    recognize,
    answer,
    clock: Date.now,
    log,
  })
  const authenticate = async () => ({ name: 'anybody', group: null })
  const server = await startGrpcServer(
    { recognize, answer, watched, authenticate, tls: null, log },
    { host: '127.0.0.1', port: 0 },
  )
  return {
    address: server.address,
    store,
    change,
    async stop() {
      await watched.close()
      await server.close()
      await pdp.close()
    },
  }
}

/** Nobody asks about others over the stream, so nobody is looked up. */
const NOBODY = { user: async () => null, client: async () => null } as unknown as Directory

/** The sidecar has verified what the identity service would look up; only bound tokens are active. */
async function recognize(token: string): Promise<TokenState> {
  const {
    sub,
    org,
    client_id: clientId,
    exp,
    aud,
    acr,
    auth_time: authTime,
  } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString() || '{}')
  if (sub === undefined) return INACTIVE
  return {
    active: true,
    subject: { type: sub === clientId ? 'service' : 'user', id: sub },
    organization: org ?? null,
    clientId,
    app: null,
    scopes: new Set(),
    audiences: [aud].flat(),
    jkt: null,
    revocationKeys: [],
    actors: [],
    jti: 'attack',
    grantId: null,
    issuedAtMs: 0,
    expiresAtMs: exp * 1_000,
    // The identity service knows of the sign-in what a case writes into its token.
    acr: typeof acr === 'string' ? acr : null,
    authTime: typeof authTime === 'number' ? authTime : null,
  }
}
