/** Delegation at a whole PDP: an agent that exchanges a person's token may what both may, while the person lets it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../../identity/flows.ts'
import { API, CONTEXT, decode, postToken, SECRET } from '../../identity/harness.ts'
import { openRunningWorld, type RunningWorld } from './running-world.ts'

const SCOPES = 'manifest:write relationships:write directory:write roles:write'
type Registered = JsonObject & { readonly organization?: string }
let world: RunningWorld
let flows: ReturnType<typeof createFlows>
let person: string
let manager: string
let writer: string

beforeAll(async () => {
  world = await openRunningWorld()
  flows = createFlows(world)
  const clients = {
    manager: { grant_types: ['client_credentials'], scope: SCOPES },
    writer: { grant_types: ['client_credentials'], scope: 'relationships:write' },
    bot: {
      grant_types: [EXCHANGE, 'client_credentials'],
      scope: 'orders:read',
      exchange_clients: ['flows', 'bot'],
      exchange_resources: [API],
    },
    'beta-bot': {
      organization: 'beta',
      grant_types: [EXCHANGE],
      scope: 'orders:read',
      exchange_clients: ['flows'],
      exchange_resources: [API],
    },
    helper: {
      grant_types: [EXCHANGE],
      scope: 'orders:read',
      exchange_clients: ['flows', 'bot'],
      exchange_resources: [API],
    },
  }
  for (const [id, { organization = null, ...metadata }] of Object.entries<Registered>(clients)) {
    const secretHash = hashGeneratedSecret(SECRET)
    await world.directory.putClient({ id, app: null, organization, metadata, secretHash }, CONTEXT)
  }
  manager = await serviceToken('manager', SCOPES)
  writer = await serviceToken('writer', 'relationships:write')
  const current = await jsonOf(send(manager, 'GET', '/v1/apps/invoices/manifest'))
  await must('PUT', '/v1/apps/invoices/manifest', { ...manifestOf(current), actors: 'both' })
  person = (await flows.code({ person: 'eve', organization: 'acme' })).tokens.access_token
})
afterAll(() => world.close())
beforeEach(() => tuples({ write: [...RIGHTS, LINK] }))

const RIGHTS = [
  'doc:1#viewer@user:eve',
  'doc:1#viewer@service:bot',
  'doc:2#viewer@user:eve',
  'doc:3#viewer@service:bot',
]
const LINK = 'service:bot#acts_for@user:eve'
type Json = { readonly [name: string]: unknown }
const manifestOf = ({ version: _, ...manifest }: Json) => manifest
const jsonOf = async (answer: Promise<Response>): Promise<Json> => (await (await answer).json()) as Json

async function serviceToken(id: string, scope: string): Promise<string> {
  return String((await postToken(world, { grant_type: 'client_credentials', scope }, { id })).body.access_token)
}
const send = (token: string, method: string, path: string, body?: object) =>
  fetch(world.issuer + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
async function must(method: string, path: string, body: object): Promise<void> {
  const answer = await send(manager, method, path, body)
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
}
const tuples = (body: object) => must('POST', '/v1/organizations/acme/relationships', body)

const exchange = (subject: string, id: string, more: Record<string, string> = {}) =>
  postToken(
    world,
    { grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN, subject_token: subject, resource: API, ...more },
    { id },
  )
async function exchanged(subject: string, id = 'bot', more: Record<string, string> = {}): Promise<string> {
  const { status, body } = await exchange(subject, id, more)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return String(body.access_token)
}
/** What each document gets. */
async function decide(token: string): Promise<readonly string[]> {
  const permissions = [1, 2, 3].map((id) => ({ relation: 'viewer', resource: `doc:${id}` }))
  const body = await jsonOf(send(token, 'POST', '/oauth/decisions', { permissions }))
  return (body.permissions as { allowed: boolean }[]).map((one) => (one.allowed ? 'allowed' : 'denied'))
}

describe('an agent with a token of a person', () => {
  test('may what both may, and neither more than the other', async () => {
    expect(await decide(await exchanged(person))).toEqual(['allowed', 'denied', 'denied'])
    expect(await decide(person)).toEqual(['allowed', 'allowed', 'denied'])
  })

  test('acts also when it leaves its actor_token out, or brings it', async () => {
    const own = await serviceToken('bot', '')
    const told = await exchanged(person, 'bot', { actor_token: own, actor_token_type: ACCESS_TOKEN })
    const untold = await exchanged(person)
    expect([told, untold].map((token) => decode(token).payload.act)).toEqual([{ sub: 'bot' }, { sub: 'bot' }])
    expect(await decide(told)).toEqual(await decide(untold))
  })

  test('loses everything with the next question once the delegation is taken back, and gets no new token', async () => {
    const token = await exchanged(person)
    await tuples({ delete: [LINK] })
    expect(await decide(token)).toEqual(['denied', 'denied', 'denied'])
    expect(await exchange(person, 'bot')).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    await tuples({ write: [LINK] })
    expect(await decide(token)).toEqual(['allowed', 'denied', 'denied'])
  })

  test('has a token that does not outlive the delegation', async () => {
    const until = Date.now() + 60_000
    await tuples({ delete: [LINK] })
    const [object, relation, subject] = ['service:bot', 'acts_for', 'user:eve']
    await tuples({ write: [{ object, relation, subject, expires_at: new Date(until).toISOString() }] })
    expect(Number(decode(await exchanged(person)).payload.exp) * 1_000).toBeLessThanOrEqual(until)
    await tuples({ delete: [LINK] })
  })

  test('of a chain, each link must stand, and the last one’s rights count', async () => {
    await tuples({ write: ['service:helper#acts_for@user:eve', 'doc:2#viewer@service:helper'] })
    const chain = await exchanged(await exchanged(person), 'helper')
    expect(decode(chain).payload.act).toEqual({ sub: 'helper', act: { sub: 'bot' } })
    expect(await decide(chain)).toEqual(['denied', 'allowed', 'denied'])
    await tuples({ delete: [LINK] })
    expect(await decide(chain)).toEqual(['denied', 'denied', 'denied'])
    await tuples({ write: [LINK], delete: ['service:helper#acts_for@user:eve'] })
    expect(await decide(chain)).toEqual(['denied', 'denied', 'denied'])
    await tuples({ delete: ['doc:2#viewer@service:helper'] })
  })

  test('finds by a search what it may, and no more', async () => {
    await must('PUT', '/v1/apps/docs/manifest', {
      model:
        'model\n  schema 1.1\ntype user\ntype service\ntype doc\n  relations\n    define viewer: [user, service]\n',
    })
    const body = { subject: { type: 'user', id: 'eve' }, action: { name: 'viewer' }, resource: { type: 'doc' } }
    const found = async (token: string) =>
      ((await jsonOf(send(token, 'POST', '/access/v1/search/resource', body))).results as { id: string }[]).map(
        ({ id }) => id,
      )
    expect([await found(person), await found(await exchanged(person))]).toEqual([['1', '2'], ['1']])
  })

  test('acts as the person does where the app does not ask for more', async () => {
    const current = await jsonOf(send(manager, 'GET', '/v1/apps/invoices/manifest'))
    const token = await exchanged(person)
    await must('PUT', '/v1/apps/invoices/manifest', { ...manifestOf(current), actors: 'subject' })
    expect(await decide(token)).toEqual(['allowed', 'allowed', 'denied'])
    await must('PUT', '/v1/apps/invoices/manifest', { ...manifestOf(current), actors: 'both' })
    expect(await decide(token)).toEqual(['allowed', 'denied', 'denied'])
  })

  test('carries the permissions that both have', async () => {
    const permissionsOf = (token: string): unknown => decode(token).payload.permissions ?? []
    const give = (subject: string) =>
      must('POST', '/v1/organizations/acme/role-grants', { app: 'invoices', role: 'approver', subject })
    await give('user:eve')
    const whole = (await flows.code({ person: 'eve', organization: 'acme' })).tokens.access_token
    expect(permissionsOf(whole)).toEqual(['invoices:approve', 'invoices:read'])
    expect(permissionsOf(await exchanged(whole))).toEqual([])
    await give('service:bot')
    expect(permissionsOf(await exchanged(whole))).toEqual(['invoices:approve', 'invoices:read'])
  })
})

describe('a delegation', () => {
  test('cannot be written by whoever may write relationships alone', async () => {
    for (const tuple of ['service:writer#acts_for@user:eve', 'service:bot#acts_for@user:ann']) {
      const answer = await send(writer, 'POST', '/v1/organizations/acme/relationships', { write: [tuple] })
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        403,
        expect.stringContaining('directory:write'),
      ])
    }
    const other = await send(writer, 'POST', '/v1/organizations/acme/relationships', {
      write: ['doc:9#viewer@user:eve'],
    })
    expect(other.status).toBe(200)
  })

  test('can be ended by whoever may write relationships', async () => {
    const answer = await send(writer, 'POST', '/v1/organizations/acme/relationships', { delete: [LINK] })
    expect(answer.status).toBe(200)
  })
})

describe('a stranger', () => {
  const bothLinked = { write: [LINK, 'service:helper#acts_for@user:eve'] }

  test('does not act by the actor_token of another client without a delegation of its own', async () => {
    const acting = { actor_token: await serviceToken('bot', ''), actor_token_type: ACCESS_TOKEN }
    expect(await exchange(person, 'helper', acting)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    await tuples(bothLinked)
    const token = await exchanged(person, 'helper', acting)
    expect(decode(token).payload.act).toEqual({ sub: 'bot', act: { sub: 'helper' } })
    expect(await decide(token)).toEqual(['allowed', 'denied', 'denied'])
    await tuples({ delete: ['service:helper#acts_for@user:eve'] })
    expect(await decide(token)).toEqual(['denied', 'denied', 'denied'])
  })

  test('does not act as a person', async () => {
    const acting = { actor_token: person, actor_token_type: ACCESS_TOKEN }
    expect((await exchange(person, 'helper', acting)).status).toBe(400)
  })

  test('is not helped by a delegation of another organization, nor by being of one', async () => {
    await tuples({ delete: [LINK] })
    await must('POST', '/v1/organizations/beta/relationships', { write: [LINK] })
    expect((await exchange(person, 'bot')).status).toBe(400)
    await tuples({ write: [LINK, 'service:beta-bot#acts_for@user:eve'] })
    expect((await exchange(person, 'beta-bot')).status).toBe(400)
  })

  test('gets no token that lasts', async () => {
    const { body } = await exchange(person, 'bot')
    const members = ['access_token', 'expires_in', 'issued_token_type', 'scope', 'token_type']
    expect(Object.keys(body).sort()).toEqual(members)
    const more = await exchange(person, 'bot', { scope: 'offline_access' })
    expect([more.status, more.body.refresh_token]).toEqual([400, undefined])
  })

  test('asks as the person alone by no form of question', async () => {
    const token = await exchanged(person)
    const permissions = [{ relation: 'viewer', resource: 'doc:2' }]
    for (const more of [{ subject: { type: 'user', id: 'eve' } }, { app: 'docs' }, { contextual_tuples: [LINK] }])
      expect((await send(token, 'POST', '/oauth/decisions', { permissions, ...more })).status).toBe(403)
    const subject = { type: 'user', id: 'eve' }
    const evaluation = { subject, action: { name: 'viewer' }, resource: { type: 'doc', id: '2' } }
    const answer = await jsonOf(send(token, 'POST', '/access/v1/evaluation', evaluation))
    expect(answer.decision).toBe(false)
  })

  test('imports no delegation, and hides none in a condition', async () => {
    const path = '/v1/organizations/acme/relationships:import'
    const lines = [
      'service:writer#acts_for@user:eve',
      '{"object":"service:writer","relation":"acts_for","subject":"user:eve","condition":{"name":"scopes","context":{"scopes":[]}}}',
    ]
    for (const line of lines) {
      const headers = { authorization: `Bearer ${writer}`, 'content-type': 'text/plain' }
      const answer = await fetch(world.issuer + path, { method: 'POST', headers, body: `${line}\n` })
      expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('lets a client act')])
    }
    const page = { after: null, countMax: 1 }
    expect(await world.store.tuples('acme', { object: 'service:writer' }, page)).toEqual([])
  })

  test('keeps nothing when an app begins to ask for both', async () => {
    const current = await jsonOf(send(manager, 'GET', '/v1/apps/invoices/manifest'))
    await must('PUT', '/v1/apps/invoices/manifest', { ...manifestOf(current), actors: 'subject' })
    await tuples({ delete: [LINK] })
    const token = await exchanged(person)
    expect(await decide(token)).toEqual(['allowed', 'allowed', 'denied'])
    await must('PUT', '/v1/apps/invoices/manifest', { ...manifestOf(current), actors: 'both' })
    expect(await decide(token)).toEqual(['denied', 'denied', 'denied'])
  })
})
