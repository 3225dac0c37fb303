/** The three PDP processes of the history checker, and what can be asked of each. */
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import type { DecideResponse } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import { grpcClient, Unavailable } from './grpc.ts'
import type { Question } from './mix.ts'
import type { NodeCase, NodeWrite, Opened } from './node.ts'
import type { Audit } from './node-audit.ts'
import type { Answered, DecisionRecord, Written } from './records.ts'

export type OpenNode = {
  readonly served: Opened['served']
  decide(question: Question): Promise<Answered>
  /** `POST /oauth/decisions`. */
  decideByHttp(question: Question, token: string): Promise<Answered>
  decideByGrpc(question: Question, token: string): Promise<Answered>
  /** On the node's one stream, about the token's own subject. */
  decideOnStream(question: Question, token: string): Promise<Answered>
  /** `onAnswer` is called with every answer, and with null while nobody can say. Returns what ends it. */
  stand(question: Question, token: string, onAnswer: (answered: Answered | null) => void): () => void
  write(write: NodeWrite): Promise<Written>
  audit(): Promise<Audit>
  /** The process stands still, and its clock goes on. */
  stopFor(ms: number): Promise<void>
  close(): Promise<void>
}
export type Node = { open(options: NodeCase): Promise<OpenNode>; stop(): Promise<void> }

const SOCKETS_MAX = 48
const AUDIT_MS = 30_000
type Message = { ready?: true; opened?: Opened; closed?: true; failed?: string }

export async function startNode(): Promise<Node> {
  const child = fork(join(import.meta.dirname, 'node.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await nextMessage(child)
  return {
    async open(options) {
      const once = async (): Promise<Message> => {
        child.send(options)
        return nextMessage(child)
      }
      // At its start the whole process gives a busy machine less time than a run does.
      const { opened } = await once().catch((err: unknown) => {
        if (!String(err).includes('store_unavailable')) throw err
        return once()
      })
      if (opened === undefined) throw new Error('the node did not open')
      const close = async (): Promise<void> => {
        child.send('close')
        await nextMessage(child)
      }
      const stopFor = async (ms: number): Promise<void> => {
        child.kill('SIGSTOP')
        await delay(ms)
        child.kill('SIGCONT')
      }
      return connect(opened, { close, stopFor })
    },
    async stop() {
      const ended = new Promise((done) => child.once('exit', done))
      child.disconnect()
      await ended
    },
  }
}

function nextMessage(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('a node died'))
    child.once('exit', gone)
    child.once('message', (message: Message) => {
      child.off('exit', gone)
      if (message.failed === undefined) resolve(message)
      else reject(new Error(message.failed))
    })
  })
}

function connect(opened: Opened, { close, stopFor }: Pick<OpenNode, 'close' | 'stopFor'>): OpenNode {
  const pools = new Map<string, Pool>()
  const post = async (url: string, sent: { path: string; body: unknown; token?: string }): Promise<Reply> => {
    const pool = pools.get(url) ?? new Pool(url, { connections: SOCKETS_MAX })
    pools.set(url, pool)
    const headers = { 'content-type': 'application/json' }
    const {
      statusCode,
      headers: received,
      body,
    } = await pool.request({
      method: 'POST',
      path: sent.path,
      headers: sent.token === undefined ? headers : { ...headers, authorization: `Bearer ${sent.token}` },
      body: JSON.stringify(sent.body),
    })
    return { status: statusCode, revision: String(received['portcullis-revision'] ?? ''), body: await body.json() }
  }
  const grpc = opened.served === null ? null : grpcClient(opened.served.grpc)
  const served = () => {
    if (grpc === null) throw new TypeError('this case has no gRPC')
    return grpc
  }
  return {
    served: opened.served,
    async decide(question) {
      const { organization, permissions, entitlements, context, contextual: contextualTuples } = question
      const brought = { context, contextualTuples }
      return fromNode(
        expectOk(
          await post(opened.url, {
            path: '/decide',
            body: {
              organization,
              subject: subjectOf(question),
              ...actorOf(question),
              permissions,
              entitlements,
              ...brought,
            },
          }),
        ),
      )
    },
    async decideByHttp(question, token) {
      const { permissions, entitlements } = question
      // Who acts is in the token, and counts for its own subject alone.
      const about = question.actor === undefined ? { subject: subjectOf(question) } : {}
      const body = { permissions, entitlements, ...about }
      const reply = expectOk(await post(opened.served?.http ?? '', { path: '/oauth/decisions', body, token }))
      const active = (reply.body as { organization: string | null }).organization !== null
      return { ...fromNode(reply), active, vector: parseVector(reply.revision), validUntilMs: undefined }
    },
    decideByGrpc: async (question, token) => fromMessage(await served().decide(question, token)),
    decideOnStream: async (question, token) => fromMessage(await served().ask(question, token)),
    stand: (question, token, onAnswer) =>
      served().stand(question, token, (answer) => onAnswer(answer === null ? null : fromMessage(answer))),
    async write(write) {
      const reply = await post(opened.url, { path: '/write', body: write })
      return reply.status === 409 ? 'refused' : (expectOk(reply).body as Exclude<Written, 'refused'>)
    },
    async audit() {
      // A busy machine may let an evaluation run out of time, which is no wrong answer.
      const endMs = performance.now() + AUDIT_MS
      for (;;) {
        const reply = await post(opened.url, { path: '/audit', body: null })
        if (reply.status !== 503 || performance.now() > endMs) return expectOk(reply).body as Audit
        await delay(200)
      }
    },
    stopFor,
    async close() {
      grpc?.close()
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      await close()
    },
  }
}

const subjectOf = ({ subject }: Question): { readonly type: string; readonly id: string } => named(subject)
const actorOf = ({ actor }: Question) => (actor === undefined ? {} : { actor: named(actor) })

function named(text: string): { readonly type: string; readonly id: string } {
  const [type = '', id = ''] = text.split(':')
  return { type, id }
}

type Reply = { readonly status: number; readonly revision: string; readonly body: unknown }

function expectOk(reply: Reply): Reply {
  if (reply.status === 200) return reply
  if (reply.status === 503) throw new Unavailable()
  throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
}

type Said = {
  readonly permissions: readonly { readonly allowed: boolean; readonly error?: string }[]
  readonly entitlements: Readonly<Record<string, { value: { enabled?: unknown }; version: number } | null>>
  readonly revision?: string
  readonly validUntilMs?: number | null
}

const LACKS_A_VALUE = 'condition_failed'

function fromNode({ body }: Reply): Answered {
  const said = body as Said
  const failed = said.permissions.find(({ error }) => error !== undefined && error !== LACKS_A_VALUE)
  if (failed !== undefined) throw new Error(`an item could not be decided: ${failed.error}`)
  const gates = Object.entries(said.entitlements).map(([key, found]) => [
    key,
    found === null ? null : { enabled: found.value.enabled === true, version: found.version },
  ])
  return {
    active: true,
    allowed: said.permissions.map((p) => (p.error === undefined ? p.allowed : null)),
    gates: Object.fromEntries(gates),
    vector: parseVector(said.revision ?? ''),
    validUntilMs: said.validUntilMs,
  }
}

function fromMessage(answer: DecideResponse): Answered {
  const gates = Object.entries(answer.entitlements).map(([key, found]) => [
    key,
    found.value === undefined ? null : { enabled: found.value.enabled === true, version: Number(found.version) },
  ])
  return {
    active: answer.active,
    allowed: answer.permissions.map((p) => p.allowed),
    gates: Object.fromEntries(gates),
    vector: parseVector(answer.revision),
    validUntilMs: answer.validUntilMs === 0 ? null : answer.validUntilMs,
  }
}

const parseVector = (text: string): DecisionRecord['vector'] =>
  text === '' ? [] : JSON.parse(Buffer.from(text, 'base64url').toString())
