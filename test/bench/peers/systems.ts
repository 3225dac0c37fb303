/** OpenFGA, SpiceDB and this PDP, each a process of its own: one PostgreSQL, the same model, tuples and questions. */
import { setTimeout as delay } from 'node:timers/promises'
import openfga from '@openfga/syntax-transformer'
import { NODE_FLAGS } from '../../../pdp/shared/process/command/node-flags.ts'
import { freePort } from '../../support/free-port.ts'
import { clientToken } from '../../support/sign-in.ts'
import type { Grants, Question } from '../engine/data.ts'
import { finished, inParts, type Rig, retried, served } from './served.ts'

export type Way = {
  readonly name: string
  /** What our answer checks, or promises, and this one does not. */
  readonly unchecked: string
  ask(question: Asked): Promise<boolean>
}
export type Asked = Pick<Question, 'user' | 'document'>
export type System = {
  readonly ways: readonly Way[]
  /** One more tuple, which no question of the load is about. */
  write(asked: Asked): Promise<unknown>
  /** Null: it holds no relationships. */
  readonly remove: ((asked: Asked) => Promise<unknown>) | null
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
const SPICEDB_BEHIND_MS = 10_000
export const NO_TOKEN = 'token (one shared key)'

export async function startOpenFga(binary: string, rig: Rig): Promise<System> {
  const uri = `${await rig.database('openfga')}?sslmode=disable`
  const [http, grpc] = [await freePort(), await freePort()]
  const store = ['--datastore-engine', 'postgres', '--datastore-uri', uri]
  await finished(binary, ['migrate', ...store])
  const listen = ['--http-addr', `127.0.0.1:${http}`, '--grpc-addr', `127.0.0.1:${grpc}`]
  const quiet = ['--log-level', 'none', '--metrics-enabled=false', '--playground-enabled=false']
  // Off by default; `HIGHER_CONSISTENCY` goes past them.
  const caches = ['--check-query-cache-enabled=true', '--check-iterator-cache-enabled=true']
  const { post } = await served(rig, [binary, 'run', ...store, ...listen, ...quiet, ...caches], {
    origin: `http://127.0.0.1:${http}`,
    healthPath: '/healthz',
  })
  const { id } = await post('/stores', { name: 'bench' })
  const { authorization_model_id } = await post(
    `/stores/${id}/authorization-models`,
    openfga.transformer.transformDSLToJSONObject(MODEL),
  )
  const change = (kind: 'writes' | 'deletes') => (tuples: Grants['tuples']) =>
    post(`/stores/${id}/write`, {
      [kind]: { tuple_keys: tuples.map(({ subject, relation, object }) => ({ user: subject, relation, object })) },
      authorization_model_id,
    })
  await inParts(rig.data.tuples, 100, change('writes'))
  const way = (name: string, consistency: string, unchecked: string): Way => ({
    name,
    unchecked,
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
      way('OpenFGA, higher consistency', 'HIGHER_CONSISTENCY', NO_TOKEN),
      way('OpenFGA, its caches on', 'MINIMIZE_LATENCY', `${NO_TOKEN}; freshness`),
    ],
    write: (asked) => change('writes')([tupleOf(asked)]),
    remove: (asked) => change('deletes')([tupleOf(asked)]),
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
  const change = (operation: 'OPERATION_TOUCH' | 'OPERATION_DELETE') => (tuples: Grants['tuples']) =>
    post('/v1/relationships/write', {
      updates: tuples.map(({ object, relation, subject }) => {
        const [name = '', optionalRelation = ''] = subject.split('#')
        const relationship = {
          resource: spiceObject(object),
          relation,
          subject: { object: spiceObject(name), optionalRelation },
        }
        return { operation, relationship }
      }),
    })
  await inParts(rig.data.tuples, 1_000, change('OPERATION_TOUCH'))
  // By default it answers as things stood up to some five seconds ago.
  await delay(SPICEDB_BEHIND_MS)
  const way = (name: string, consistency: object, unchecked: string): Way => ({
    name,
    unchecked,
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
      way('SpiceDB, fully consistent', { fullyConsistent: true }, NO_TOKEN),
      way('SpiceDB, its default, cached', { minimizeLatency: true }, `${NO_TOKEN}; freshness`),
    ],
    write: (asked) => change('OPERATION_TOUCH')([tupleOf(asked)]),
    remove: (asked) => change('OPERATION_DELETE')([tupleOf(asked)]),
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
  const main = new URL('../../../pdp/main.ts', import.meta.url).pathname
  const server = await served(rig, [process.execPath, ...NODE_FLAGS.pdp, main, 'serve'], {
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
  const change = (kind: 'write' | 'delete') => (tuples: Grants['tuples']) =>
    manage('POST', '/v1/organizations/acme/relationships', {
      [kind]: tuples.map(({ object, relation, subject }) => `${object}#${relation}@${subject}`),
    })
  await inParts(rig.data.tuples, 1_000, change('write'))
  const reader = await clientToken({ issuer, clientId: 'reader', clientSecret: READER_SECRET, scope: 'decisions:read' })
  const authorization = `Bearer ${reader.access_token}`
  const ask: Way['ask'] = async ({ user, document }) => {
    const body = { subject: { type: 'user', id: user }, permissions: [{ relation: 'viewer', resource: document }] }
    return (await server.send('POST', '/oauth/decisions', { body, authorization })).permissions[0].allowed === true
  }
  return {
    ways: [{ name: 'Portcullis, always fresh', unchecked: '', ask }],
    write: (asked) => change('write')([tupleOf(asked)]),
    remove: (asked) => change('delete')([tupleOf(asked)]),
  }
}

export const tupleOf = ({ user, document }: Asked): Grants['tuples'][number] => ({
  object: document,
  relation: 'viewer',
  subject: `user:${user}`,
  expiresAtMs: null,
})

function spiceObject(name: string): { objectType: string; objectId: string } {
  const colon = name.indexOf(':')
  return { objectType: name.slice(0, colon), objectId: name.slice(colon + 1) }
}
