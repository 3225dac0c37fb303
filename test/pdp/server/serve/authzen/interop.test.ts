import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONTEXT, type Json, type Served, seedAcme, serve } from '../harness.ts'

/** The interop scenarios of AuthZEN with people, rules and records of our own: Todo, gateway, search, identity provider. */
const MODEL = `model
  schema 1.1
type user
type role
  relations
    define holder: [user]
type person
  relations
    define can_read_user: [role#holder]
type todo
  relations
    define can_read_todos: [role#holder]
    define can_create_todo: [role#holder]
    define can_update_todo: [role#holder, user with owned]
    define can_delete_todo: [role#holder, user with owned]
type route
  relations
    define get: [role#holder]
    define post: [role#holder]
    define put: [role#holder]
    define delete: [role#holder]
type department
  relations
    define worker: [user]
    define head: [user]
type record
  relations
    define owner: [user]
    define department: [department]
    define view: owner or worker from department
    define edit: owner or head from department
    define delete: owner
condition owned(resource_ownerID: string, owner: string) {
  resource_ownerID == owner
}
`
const PEOPLE = {
  rick: ['admin', 'genius'],
  morty: ['editor'],
  summer: ['editor'],
  beth: ['viewer'],
  jerry: ['viewer'],
} as const
const ROLES = ['admin', 'genius', 'editor', 'viewer'] as const
type Role = (typeof ROLES)[number]
type Name = keyof typeof PEOPLE
const NAMES = Object.keys(PEOPLE) as Name[]
const mail = (name: string): string => `${name}@the-citadel.example`
const has = (name: Name, ...roles: readonly Role[]): boolean =>
  roles.some((role) => (PEOPLE[name] as readonly Role[]).includes(role))

const USERS = ['ann', 'ben', 'cara', 'dan', 'eve', 'fay']
const DEPARTMENTS = ['sales', 'legal', 'research']
/** Each record with its owner and department; everybody works in one department, and the first of it is its head. */
const RECORDS = Array.from({ length: 20 }, (_, i) => ({
  id: `${101 + i}`,
  owner: USERS[(i * 5) % 6] ?? '',
  department: DEPARTMENTS[i % 3] ?? '',
}))
const departmentOf = (user: string): string => DEPARTMENTS[USERS.indexOf(user) % 3] ?? ''
const isHead = (user: string): boolean => USERS.indexOf(user) < 3
const may = (user: string, action: string, { owner, department }: (typeof RECORDS)[number]): boolean => {
  if (owner === user) return true
  const works = departmentOf(user) === department
  return action === 'view' ? works : action === 'edit' && works && isHead(user)
}

const grant = (object: string, relation: string, subject: string, condition?: object): Json => ({
  kind: 'tuple',
  op: 'write',
  tuple: { object, relation, subject, expiresAtMs: null, ...(condition === undefined ? {} : { condition }) },
})
const roles = (object: string, relation: string, ...names: readonly Role[]): Json[] =>
  names.map((role) => grant(object, relation, `role:${role}#holder`))

function changes(): Json[] {
  const everyone = [...ROLES]
  return [
    ...NAMES.flatMap((name) => PEOPLE[name].map((role) => grant(`role:${role}`, 'holder', `user:${name}`))),
    ...NAMES.flatMap((name) => roles(`person:${name}`, 'can_read_user', ...everyone)),
    ...['1', '2'].flatMap((id) => [
      ...roles(`todo:${id}`, 'can_read_todos', ...everyone),
      ...roles(`todo:${id}`, 'can_create_todo', 'admin', 'editor'),
      ...roles(`todo:${id}`, 'can_update_todo', 'genius'),
      ...roles(`todo:${id}`, 'can_delete_todo', 'admin'),
      ...NAMES.filter((name) => has(name, 'editor')).flatMap((name) =>
        ['can_update_todo', 'can_delete_todo'].map((relation) =>
          grant(`todo:${id}`, relation, `user:${name}`, { name: 'owned', context: { owner: mail(name) } }),
        ),
      ),
    ]),
    ...roles('route:/users/{userId}', 'get', ...everyone),
    ...roles('route:/todos', 'get', ...everyone),
    ...roles('route:/todos', 'post', 'admin', 'editor'),
    ...roles('route:/todos/{todoId}', 'put', 'admin', 'editor'),
    ...roles('route:/todos/{todoId}', 'delete', 'admin', 'editor'),
    ...USERS.flatMap((user) => [
      grant(`department:${departmentOf(user)}`, 'worker', `user:${user}`),
      ...(isHead(user) ? [grant(`department:${departmentOf(user)}`, 'head', `user:${user}`)] : []),
    ]),
    ...RECORDS.flatMap(({ id, owner, department }) => [
      grant(`record:${id}`, 'owner', `user:${owner}`),
      grant(`record:${id}`, 'department', `department:${department}`),
    ]),
  ]
}

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  await seedAcme(served)
  const manager = await served.manager()
  const body = { audiences: [], permissions: {}, roles: {}, model: MODEL }
  expect((await served.send('PUT', '/v1/apps/interop/manifest', { token: manager, body })).status).toBe(201)
  await served.store.write('acme', changes(), { context: CONTEXT })
  for (const id of [...NAMES, ...USERS])
    await served.directory.putUser({ id, email: mail(id), emailVerified: true, name: id }, CONTEXT)
  token = await served.manager({ client: 'interop', organization: 'acme', scopes: ['decisions:read'] })
})
afterAll(() => served.close())

const post = (path: string, body: Json) => served.send('POST', `/access/v1/${path}`, { token, body })
const person = (id: string): Json => ({ type: 'user', id })
const evaluation = (name: string, action: string, resource: Json): Json => ({
  subject: person(name),
  action: { name: action },
  resource,
})

describe('the interop scenario Todo', () => {
  const todo = (owner: Name): Json => ({ type: 'todo', id: '1', properties: { ownerID: mail(owner) } })
  const other = (name: Name): Name => (name === 'rick' ? 'morty' : 'rick')
  const rules: readonly (readonly [string, (name: Name) => Json, (name: Name) => boolean])[] = [
    ['can_read_user', () => ({ type: 'person', id: 'beth' }), () => true],
    ['can_read_todos', () => ({ type: 'todo', id: '1' }), () => true],
    ['can_create_todo', () => ({ type: 'todo', id: '1' }), (name) => has(name, 'admin', 'editor')],
    ['can_update_todo', (name) => todo(name), (name) => has(name, 'genius', 'editor')],
    ['can_update_todo', (name) => todo(other(name)), (name) => has(name, 'genius')],
    ['can_delete_todo', (name) => todo(name), (name) => has(name, 'admin', 'editor')],
    ['can_delete_todo', (name) => todo(other(name)), (name) => has(name, 'admin')],
    ['can_delete_todo', () => ({ type: 'todo', id: '1' }), (name) => has(name, 'admin')],
  ]
  const cases = NAMES.flatMap((name) =>
    rules.map(([action, resource, expected]) => [evaluation(name, action, resource(name)), expected(name)] as const),
  )

  test.each(cases)('answers %j with %s', async (body, decision) => {
    expect((await post('evaluation', body)).body.decision).toBe(decision)
  })

  test('answers each person’s questions in one batch, as one by one', async () => {
    for (const name of NAMES) {
      const own = cases.filter(([body]) => body.subject.id === name)
      const evaluations = own.map(([{ action, resource }]) => ({ action, resource }))
      const { body } = await post('evaluations', { subject: person(name), evaluations })
      expect(body.evaluations.map((one: Json) => one.decision)).toEqual(own.map(([, decision]) => decision))
    }
  })

  test('stops at the first denial, or at the first permit, when it is told to', async () => {
    const evaluations = ['can_read_todos', 'can_create_todo', 'can_read_todos'].map((name) => ({ action: { name } }))
    const ask = async (semantic: string) =>
      (
        await post('evaluations', {
          ...{ subject: person('beth'), resource: { type: 'todo', id: '1' }, evaluations },
          options: { evaluations_semantic: semantic },
        })
      ).body.evaluations.map((one: Json) => one.decision)
    expect(await ask('execute_all')).toEqual([true, false, true])
    expect(await ask('deny_on_first_deny')).toEqual([true, false])
    expect(await ask('permit_on_first_permit')).toEqual([true])
  })
})

describe('the interop scenario API gateway', () => {
  const routes = [
    ['GET', '/users/{userId}'],
    ['GET', '/todos'],
    ['POST', '/todos'],
    ['PUT', '/todos/{todoId}'],
    ['DELETE', '/todos/{todoId}'],
  ] as const
  test.each(
    NAMES.flatMap((name) =>
      routes.map(([method, id]) => [name, method, id, method === 'GET' || !has(name, 'viewer')] as const),
    ),
  )('answers %s %s %s with %s', async (name, method, id, decision) => {
    const resource = {
      type: 'route',
      id,
      properties: { uri: `https://proxy.example${id}`, schema: 'https', ip: '::1' },
    }
    const body = { subject: { type: 'identity', id: name }, action: { name: method }, resource, context: {} }
    expect((await post('evaluation', body)).body.decision).toBe(decision)
  })
})

describe('the interop scenario search', () => {
  const ACTIONS = ['view', 'edit', 'delete']
  /** All pages of a search, a few results at a time. */
  const pages = async (path: string, body: Json): Promise<Json[]> => {
    const found: Json[] = []
    let next = ''
    do {
      const answer = await post(`search/${path}`, { ...body, page: next === '' ? { limit: 4 } : { token: next } })
      expect(answer.status).toBe(200)
      found.push(...answer.body.results)
      next = answer.body.page.next_token
    } while (next !== '')
    return found
  }
  const record = (id: string): Json => ({ type: 'record', id })

  test.each(USERS)('finds what %s may do on each record', async (user) => {
    for (const one of RECORDS) {
      const found = await pages('action', { subject: person(user), resource: record(one.id) })
      const names = found.map(({ name }) => name).filter((name) => ACTIONS.includes(name))
      expect([one.id, names]).toEqual([one.id, ACTIONS.filter((name) => may(user, name, one)).toSorted()])
    }
  })

  test.each(USERS.flatMap((user) => ACTIONS.map((action) => [user, action] as const)))(
    'finds the records that %s may %s',
    async (user, action) => {
      const body = { subject: person(user), action: { name: action }, resource: { type: 'record' } }
      const expected = RECORDS.filter((one) => may(user, action, one)).map(({ id }) => record(id))
      expect(await pages('resource', body)).toEqual(expected)
    },
  )

  test.each(ACTIONS)('finds who may %s each record', async (action) => {
    for (const one of RECORDS) {
      const body = { subject: { type: 'user' }, action: { name: action }, resource: record(one.id) }
      expect(await pages('subject', body)).toEqual(USERS.filter((user) => may(user, action, one)).map(person))
    }
  })

  // The scenario of identity providers: what somebody may see becomes a claim of their token.
  test.each(USERS)('lets an identity provider ask, for %s alone, for the records of a token', async (user) => {
    const own = served.token({ subject: { type: 'user', id: user } })
    const body = { subject: { type: 'identity', id: user }, action: { name: 'view' }, resource: { type: 'record' } }
    const { body: answer } = await served.send('POST', '/access/v1/search/resource', { token: own, body })
    expect(answer.results).toEqual(RECORDS.filter((one) => may(user, 'view', one)).map(({ id }) => record(id)))
    expect(answer.page).toEqual({ next_token: '', count: answer.results.length })
  })
})
