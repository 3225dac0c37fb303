/** A PDP with records that some may read and write, and a service that asks about them over AuthZEN. */
import { type Answer, CONTEXT, type Json, type SendOptions, type Served, seedAcme, serve } from '../harness.ts'

const MODEL = `model
  schema 1.1
type user
type record
  relations
    define read: [user, user:*, group#member]
    define write: [user]
    define delete: [user with soft_only]
    define blocked: [group#member]
    define review: [group#member] but not blocked
type route
  relations
    define get: [user]
    define post: [user]
condition soft_only(action_soft: bool) {
  action_soft
}
`
const TUPLES = [
  'record:record-1#read@user:alice',
  'record:record-1#write@user:alice',
  'record:record-1#read@user:bob',
  'record:record-2#write@user:bob',
  'record:a:b#read@user:alice',
  'record:record-2#read@group:staff#member',
  'group:staff#member@user:alice',
  'record:record-1#review@group:~corp~group:staff#member',
  'record:record-2#review@group:~corp~group:staff#member',
  'record:record-2#blocked@group:~corp~group:trainees#member',
  'route:/todos/{id}#get@user:alice',
]

export type World = Served & {
  /** Token of a service with `decisions:read`. */
  readonly pep: string
  post(path: string, body: unknown, options?: SendOptions): Promise<Answer>
}

export async function openRecords(): Promise<World> {
  const served = await serve()
  await seedAcme(served)
  const manager = await served.manager()
  const body = { audiences: [], permissions: { 'records:audit': 'Audit' }, roles: {}, model: MODEL }
  const { status } = await served.send('PUT', '/v1/apps/records/manifest', { token: manager, body })
  if (status !== 201) throw new Error(`the manifest was answered with ${status}`)
  const tuples = TUPLES.map((tuple) => {
    const [, object = '', relation = '', subject = ''] = /^([^#]+)#([^@]+)@(.*)$/.exec(tuple) ?? []
    return { kind: 'tuple', op: 'write', tuple: { object, relation, subject, expiresAtMs: null } } as const
  })
  const condition = { name: 'soft_only', context: {} }
  const conditional = {
    object: 'record:record-1',
    relation: 'delete',
    subject: 'user:alice',
    expiresAtMs: null,
    condition,
  }
  const changes = [...tuples, { kind: 'tuple', op: 'write', tuple: conditional } as const]
  await served.store.write('acme', changes, { context: CONTEXT })
  const pep = await served.manager({ client: 'pep', organization: 'acme', scopes: ['decisions:read'] })
  return {
    ...served,
    pep,
    post: (path, body, options = {}) => served.send('POST', `/access/v1/${path}`, { token: pep, body, ...options }),
  }
}

export const user = (id: string) => ({ type: 'user', id })
export const record = (id: string) => ({ type: 'record', id })
export const question = (subject: string, action: string, resource: string): Json => ({
  subject: user(subject),
  action: { name: action },
  resource: record(resource),
})
export const decisions = ({ body }: { body: Json }): readonly boolean[] =>
  body.evaluations.map((one: Json) => one.decision)
