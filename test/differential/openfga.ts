/** A real OpenFGA server with its data in memory: a store for each world, asked over HTTP. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import openfga from '@openfga/syntax-transformer'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import { freePort } from '../support/free-port.ts'
import type { Check, ListObjects, ListUsers, World } from './worlds.ts'

/** What it says to one question: the answer, or the code of its error. */
export type Said<T> = { readonly value: T } | { readonly error: string }
export type PeerStore = {
  checks(asked: readonly Check[]): Promise<readonly Said<boolean>[]>
  listObjects(asked: ListObjects): Promise<Said<readonly string[]>>
  listUsers(asked: ListUsers): Promise<Said<readonly string[]>>
}
export type Peer = {
  readonly origin: string
  /** What it says of a model that it refuses, or the store. */
  open(world: World): Promise<PeerStore | { readonly refused: string }>
  close(): Promise<void>
}
type Answer = { readonly status: number; readonly body: { readonly [member: string]: unknown } }

const READY_TRIES_MAX = 300
const IN_ONE_CALL = 200

export async function startOpenFga(binary: string): Promise<Peer> {
  const [http, grpc] = [await freePort(), await freePort()]
  const words = [
    'run',
    ...['--datastore-engine', 'memory', '--http-addr', `127.0.0.1:${http}`, '--grpc-addr', `127.0.0.1:${grpc}`],
    ...['--log-level', 'none', '--metrics-enabled=false', '--playground-enabled=false', '--profiler-enabled=false'],
    ...['--max-tuples-per-write', `${IN_ONE_CALL}`, '--max-checks-per-batch-check', `${IN_ONE_CALL}`],
  ]
  const child = spawn(binary, words, { stdio: 'ignore' })
  const origin = `http://127.0.0.1:${http}`
  await ready(child, origin)
  const post = async (path: string, body: object): Promise<Answer> => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }
  return {
    origin,
    async open(world) {
      const { body: store } = await post('/stores', { name: 'differential' })
      const path = `/stores/${store.id}`
      const document = openfga.transformer.transformDSLToJSONObject(world.model)
      const model = await post(`${path}/authorization-models`, document)
      if (model.status !== 201) return { refused: String(model.body.message) }
      const authorization_model_id = model.body.authorization_model_id
      for (const tuple_keys of inParts(world.tuples)) {
        const writes = { tuple_keys: tuple_keys.map(tupleKey) }
        const written = await post(`${path}/write`, { writes, authorization_model_id })
        if (written.status !== 200) throw new Error(`OpenFGA took no tuples: ${JSON.stringify(written.body)}`)
      }
      return storeAt((call, body) => post(`${path}/${call}`, { ...body, authorization_model_id }))
    },
    async close() {
      child.kill()
      await once(child, 'exit')
    },
  }
}

function storeAt(post: (call: string, body: object) => Promise<Answer>): PeerStore {
  return {
    async checks(asked) {
      const checks = asked.map(({ subject: user, relation, object, context, contextual }, i) => ({
        tuple_key: { user, relation, object },
        context,
        contextual_tuples: { tuple_keys: contextual.map(tupleKey) },
        correlation_id: `q${i}`,
      }))
      const { body } = await post('batch-check', { checks, consistency: 'HIGHER_CONSISTENCY' })
      const result = (body.result ?? {}) as { readonly [id: string]: { allowed?: boolean; error?: object } }
      return asked.map((_, i) => {
        const found = result[`q${i}`]
        if (found === undefined) return { error: JSON.stringify(body) }
        return found.error === undefined ? { value: found.allowed === true } : { error: JSON.stringify(found.error) }
      })
    },
    async listObjects({ subject: user, relation, type, context, contextual }) {
      const { status, body } = await post('list-objects', {
        ...{ user, relation, type, context, consistency: 'HIGHER_CONSISTENCY' },
        contextual_tuples: { tuple_keys: contextual.map(tupleKey) },
      })
      return status === 200 ? { value: body.objects as readonly string[] } : { error: String(body.message) }
    },
    async listUsers({ object, relation, type, subjectRelation, context, contextual }) {
      const at = object.indexOf(':')
      const filter = subjectRelation === null ? { type } : { type, relation: subjectRelation }
      const { status, body } = await post('list-users', {
        object: { type: object.slice(0, at), id: object.slice(at + 1) },
        relation,
        user_filters: [filter],
        context,
        contextual_tuples: contextual.map(tupleKey),
        consistency: 'HIGHER_CONSISTENCY',
      })
      if (status !== 200) return { error: String(body.message) }
      return { value: (body.users as readonly User[]).map(userName) }
    },
  }
}

const tupleKey = ({ object, relation, subject: user, condition }: Tuple) => ({
  ...{ user, relation, object },
  ...(condition !== undefined && { condition }),
})

type User = {
  readonly object?: { readonly type: string; readonly id: string }
  readonly userset?: { readonly type: string; readonly id: string; readonly relation: string }
  readonly wildcard?: { readonly type: string }
}

function userName({ object, userset, wildcard }: User): string {
  if (object !== undefined) return `${object.type}:${object.id}`
  if (userset !== undefined) return `${userset.type}:${userset.id}#${userset.relation}`
  return `${wildcard?.type}:*`
}

function* inParts<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let from = 0; from < items.length; from += IN_ONE_CALL) yield items.slice(from, from + IN_ONE_CALL)
}

async function ready(child: ChildProcess, origin: string): Promise<void> {
  for (let tries = 0; tries < READY_TRIES_MAX && child.exitCode === null; tries++) {
    const answer = await fetch(`${origin}/healthz`).catch(() => null)
    if (answer?.ok === true) return
    await delay(100)
  }
  child.kill()
  throw new Error('OpenFGA did not start')
}
