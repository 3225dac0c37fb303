/** OpenFGA, SpiceDB and this PDP on one PostgreSQL, each a process of its own, with the same model, tuples and questions. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import openfga from '@openfga/syntax-transformer'
import { Pool } from 'undici'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import type { Grants, Question } from './engine-data.ts'

export type Rig = {
  /** Creates a database on the PostgreSQL that all share, and says where it is. */
  database(name: string): Promise<string>
  readonly data: Grants
  /** Whom questions are about. */
  readonly users: readonly string[]
  readonly dataDirectory: string
  /** What has to be ended, in any case. */
  readonly endings: (() => Promise<unknown>)[]
}
export type Way = { readonly name: string; ask(question: Question): Promise<boolean> }
export type System = {
  readonly ways: readonly Way[]
  /** One more tuple, which no question is about. */
  write(i: number): Promise<unknown>
}

const MODEL = `model
  schema 1.1
type user
type group
  relations
    define member: [user, group#member]
type doc
  relations
    define viewer: [user, group#member]
`
const SCHEMA = `
definition user {}
definition group {
  relation member: user | group#member
}
definition doc {
  relation viewer: user | group#member
}`
const ADMIN_SECRET = 'bench-secret-of-no-value-anywhere-else'
const READER_SECRET = 'bench-reader-secret-of-no-value-anywhere'
const READY_TRIES_MAX = 300
const CONNECTIONS = 64

export async function startOpenFga(binary: string, rig: Rig): Promise<System> {
  const uri = `${await rig.database('openfga')}?sslmode=disable`
  const [http, grpc] = [await freePort(), await freePort()]
  const store = ['--datastore-engine', 'postgres', '--datastore-uri', uri]
  await finished(binary, ['migrate', ...store])
  const listen = ['--http-addr', `127.0.0.1:${http}`, '--grpc-addr', `127.0.0.1:${grpc}`]
  const quiet = ['--log-level', 'none', '--metrics-enabled=false', '--playground-enabled=false']
  const { post } = await served(rig, [binary, 'run', ...store, ...listen, ...quiet], {
    origin: `http://127.0.0.1:${http}`,
    healthPath: '/healthz',
  })
  const { id } = await post('/stores', { name: 'bench' })
  const { authorization_model_id } = await post(
    `/stores/${id}/authorization-models`,
    openfga.transformer.transformDSLToJSONObject(MODEL),
  )
  const write = (tuples: Grants['tuples']) =>
    post(`/stores/${id}/write`, {
      writes: { tuple_keys: tuples.map(({ subject, relation, object }) => ({ user: subject, relation, object })) },
      authorization_model_id,
    })
  await inParts(rig.data.tuples, 100, write)
  const way = (name: string, consistency: string): Way => ({
    name,
    ask: async ({ user, document }) =>
      (
        await post(`/stores/${id}/check`, {
          tuple_key: { user: `user:${user}`, relation: 'viewer', object: document },
          authorization_model_id,
          consistency,
        })
      ).allowed === true,
  })
  return {
    ways: [
      way('OpenFGA over HTTP, higher consistency', 'HIGHER_CONSISTENCY'),
      way('OpenFGA over HTTP, its default', 'MINIMIZE_LATENCY'),
    ],
    write: (i) => write([written(i)]),
  }
}

export async function startSpiceDb(binary: string, rig: Rig): Promise<System> {
  const uri = `${await rig.database('spicedb')}?sslmode=disable`
  const [http, grpc] = [await freePort(), await freePort()]
  const store = ['--datastore-engine', 'postgres', '--datastore-conn-uri', uri]
  await finished(binary, ['datastore', 'migrate', 'head', ...store])
  const listen = ['--http-enabled', '--http-addr', `127.0.0.1:${http}`, '--grpc-addr', `127.0.0.1:${grpc}`]
  const quiet = ['--log-level', 'error', '--metrics-enabled=false', '--telemetry-endpoint', '', '--skip-release-check']
  const { post } = await served(
    rig,
    [binary, 'serve', ...store, ...listen, ...quiet, '--grpc-preshared-key', 'bench'],
    {
      origin: `http://127.0.0.1:${http}`,
      healthPath: '/healthz',
      authorization: 'Bearer bench',
    },
  )
  // It is healthy a moment before its connections are.
  await retried(() => post('/v1/schema/write', { schema: SCHEMA }))
  const write = (tuples: Grants['tuples']) =>
    post('/v1/relationships/write', {
      updates: tuples.map(({ object, relation, subject }) => {
        const [name = '', optionalRelation = ''] = subject.split('#')
        const relationship = {
          resource: spiceObject(object),
          relation,
          subject: { object: spiceObject(name), optionalRelation },
        }
        return { operation: 'OPERATION_TOUCH', relationship }
      }),
    })
  await inParts(rig.data.tuples, 1_000, write)
  const way = (name: string, consistency: object): Way => ({
    name,
    ask: async ({ user, document }) =>
      (
        await post('/v1/permissions/check', {
          consistency,
          resource: spiceObject(document),
          permission: 'viewer',
          subject: { object: { objectType: 'user', objectId: user } },
        })
      ).permissionship === 'PERMISSIONSHIP_HAS_PERMISSION',
  })
  return {
    ways: [
      way('SpiceDB over its HTTP gateway, fully consistent', { fullyConsistent: true }),
      way('SpiceDB over its HTTP gateway, its default', { minimizeLatency: true }),
    ],
    write: (i) => write([written(i)]),
  }
}

/** As a process; asked by a client that names the subject. */
export async function startOurs(rig: Rig): Promise<System> {
  const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()]
  const issuer = `http://127.0.0.1:${http}`
  const env = {
    PATH: process.env.PATH,
    PORTCULLIS_DATA_DIR: rig.dataDirectory,
    PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
    PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
    PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
    PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
    PORTCULLIS_LOG_LEVEL: 'warn',
    DATABASE_URL: await rig.database('portcullis'),
  }
  const main = new URL('../../pdp/main.ts', import.meta.url).pathname
  const server = await served(rig, [process.execPath, main, 'serve'], {
    origin: issuer,
    healthPath: '/openapi.json',
    env,
  })
  const scope = 'directory:write clients:write relationships:write manifest:write decisions:read'
  const admin = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
  const manage = (method: 'PUT' | 'POST', path: string, body: object) =>
    server.send(method, path, { body, authorization: `Bearer ${admin.access_token}` })
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/docs/manifest', { model: MODEL })
  await manage('PUT', '/v1/clients/reader', {
    grant_types: ['client_credentials'],
    scope: 'decisions:read',
    organization: 'acme',
    client_secret: READER_SECRET,
  })
  await inParts(rig.users, 1, ([user]) => manage('PUT', `/v1/users/${user}`, {}))
  const write = (tuples: Grants['tuples']) =>
    manage('POST', '/v1/organizations/acme/relationships', {
      write: tuples.map(({ object, relation, subject }) => `${object}#${relation}@${subject}`),
    })
  await inParts(rig.data.tuples, 1_000, write)
  const reader = await clientToken({ issuer, clientId: 'reader', clientSecret: READER_SECRET, scope: 'decisions:read' })
  const authorization = `Bearer ${reader.access_token}`
  const ask: Way['ask'] = async ({ user, document }) => {
    const body = { subject: { type: 'user', id: user }, permissions: [{ relation: 'viewer', resource: document }] }
    return (await server.send('POST', '/oauth/decisions', { body, authorization })).permissions[0].allowed === true
  }
  return { ways: [{ name: 'ours over HTTP, always fresh', ask }], write: (i) => write([written(i)]) }
}

const written = (i: number): Grants['tuples'][number] => ({
  object: `doc:written-${process.pid}-${i}`,
  relation: 'viewer',
  subject: 'user:0',
  expiresAtMs: null,
})

function spiceObject(name: string): { objectType: string; objectId: string } {
  const colon = name.indexOf(':')
  return { objectType: name.slice(0, colon), objectId: name.slice(colon + 1) }
}

/** Eight parts at a time. */
async function inParts<T>(
  items: readonly T[],
  size: number,
  work: (part: readonly T[]) => Promise<unknown>,
): Promise<void> {
  const starts = Array.from({ length: Math.ceil(items.length / size) }, (_, i) => i * size).values()
  const worker = async (): Promise<void> => {
    for (const start of starts) await work(items.slice(start, start + size))
  }
  await Promise.all(Array.from({ length: 8 }, worker))
}

type Sent = { readonly body: object; readonly authorization?: string | undefined }
// biome-ignore lint/suspicious/noExplicitAny: what a peer answers is used as it is, and a wrong answer ends the run
type Answer = any

async function served(
  { endings }: Rig,
  [binary = '', ...words]: readonly string[],
  at: { origin: string; healthPath: string; authorization?: string; env?: NodeJS.ProcessEnv },
) {
  const child = spawn(binary, words, { stdio: ['ignore', 'ignore', 'inherit'], env: at.env ?? process.env })
  const pool = new Pool(at.origin, { connections: CONNECTIONS })
  endings.push(
    () => pool.destroy(),
    () => ended(child),
  )
  // However this process ends, no server stays behind.
  process.once('exit', () => child.kill('SIGKILL'))
  const send = async (method: 'PUT' | 'POST', path: string, { body, authorization }: Sent): Promise<Answer> => {
    const headers = { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) }
    const response = await pool.request({ method, path, headers, body: JSON.stringify(body) })
    if (response.statusCode >= 300)
      throw new Error(`${method} ${path}: ${response.statusCode} ${await response.body.text()}`)
    return response.body.json()
  }
  await ready(child, `${at.origin}${at.healthPath}`)
  const post = (path: string, body: object) => send('POST', path, { body, authorization: at.authorization })
  return { send, post }
}

async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let triesLeft = 10; ; triesLeft--) {
    try {
      return void (await work())
    } catch (error) {
      if (triesLeft === 0) throw error
      await delay(300)
    }
  }
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  for (let tries = 0; tries < READY_TRIES_MAX && child.exitCode === null; tries++) {
    if ((await fetch(url).catch(() => null))?.ok === true) return
    await delay(100)
  }
  throw new Error(`${child.spawnfile} did not become ready`)
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exit
  clearTimeout(timer)
}

async function finished(binary: string, words: readonly string[]): Promise<void> {
  const child = spawn(binary, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  const status = await new Promise((resolve) => child.once('exit', resolve))
  if (status !== 0) throw new Error(`${binary} ${words[0]} ended with ${status}: ${said}`)
}
