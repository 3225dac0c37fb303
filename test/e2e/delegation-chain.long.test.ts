/** A chain of three exchanges behind a real sidecar: the end of any link ends the next call, and what is open. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signIn } from '../support/sign-in.ts'
import { type ForeignProvider, startForeignProvider } from './foreign-issuer.ts'
import { call, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const REDIRECT = 'http://127.0.0.1:9/callback'
const PASSWORD = 'correct horse battery staple'
const AGENTS = ['one', 'two', 'three'] as const
const RELATIONSHIPS = '/v1/organizations/acme/relationships'
const secretOf = (client: string): string => `secret-of-the-client-${client}`
const linkOf = (agent: string): string => `service:${agent}#acts_for@user:alice`

let world: OwnIssuerWorld
let idp: ForeignProvider
let sidecar: string
let person: string
/** Of each agent, made from that of the one before. */
let chain: readonly string[]

beforeAll(async () => {
  world = await openOwnIssuerWorld()
  idp = await startForeignProvider()
  const { manage, issuer } = world
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE], permissions: {}, roles: {}, actors: 'both' })
  await manage('PUT', '/v1/users/alice', { email: 'alice@x.example', email_verified: true, password: PASSWORD })
  await manage('PUT', '/v1/organizations/acme/members/alice', { role: 'member', status: 'active' })
  const web = { redirect_uris: [REDIRECT], scope: 'openid', client_secret: secretOf('web') }
  await manage('PUT', '/v1/clients/web', web)
  for (const agent of AGENTS) {
    const exchange = { grant_types: [EXCHANGE], exchange_clients: ['web', ...AGENTS], exchange_resources: [RESOURCE] }
    await manage('PUT', `/v1/clients/${agent}`, { ...exchange, client_secret: secretOf(agent) })
  }
  const entry = {
    issuer: idp.issuer,
    external: { subject_prefix: 'idp:', organizations: ['acme'], audience: RESOURCE },
  }
  sidecar = await world.startOn(
    '  GET /orders/{id}: viewer order:{id}\n  GET /streams/{id}: viewer order:{id}\n  GET /me: signed_in\n  GET /any/{id}: {check: {any: ["viewer order:{id}", signed_in]}}\n',
    entry,
  )
  const request = {
    issuer,
    clientId: 'web',
    clientSecret: secretOf('web'),
    redirectUri: REDIRECT,
    organization: 'acme',
  }
  const signedIn = await signIn({ ...request, email: 'alice@x.example', password: PASSWORD })
  person = signedIn.tokens.access_token
})
afterAll(async () => {
  await world?.close()
  await idp?.stop()
})
beforeEach(async () => {
  const rights = ['order:1#viewer@user:alice', 'order:1#viewer@service:three', 'order:2#viewer@service:three']
  await world.manage('POST', RELATIONSHIPS, { write: [...rights, 'order:3#viewer@user:alice', ...AGENTS.map(linkOf)] })
  const made: string[] = []
  for (const agent of AGENTS) made.push(await exchanged(made.at(-1) ?? person, agent))
  chain = made
  world.reached.length = 0
  world.lines.length = 0
})

const asClient = (client: string, path: string, form: Record<string, string>): Promise<Response> =>
  fetch(`${world.issuer}/oauth/${path}`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client}:${secretOf(client)}`).toString('base64')}` },
    body: new URLSearchParams(form),
  })
async function exchanged(subject: string, agent: string): Promise<string> {
  const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN, resource: RESOURCE }
  const body = (await (await asClient(agent, 'token', form)).json()) as { access_token?: string }
  if (body.access_token === undefined) throw new Error(JSON.stringify(body))
  return body.access_token
}
const last = (): string => chain.at(-1) ?? ''

async function refusalOf(order: number): Promise<unknown> {
  const headers = { authorization: `Bearer ${last()}` }
  const response = await fetch(`${sidecar}/orders/${order}`, { headers })
  return response.status === 403 ? response.json() : null
}

/** Resolves when the open stream has ended. */
async function opened(): Promise<{ readonly ended: Promise<void> }> {
  const response = await fetch(`${sidecar}/streams/1`, { headers: { authorization: `Bearer ${last()}` } })
  const reader = response.body?.getReader()
  if (response.status !== 200 || reader === undefined) throw new Error(`the stream was refused: ${response.status}`)
  await reader.read()
  const drain = async (): Promise<void> => {
    while (!(await reader.read()).done);
  }
  return { ended: drain().catch(() => undefined) }
}

test('the last agent may what it and the person may, and the service learns its name, not one that the client gives', async () => {
  const headers = { authorization: `Bearer ${last()}`, 'x-auth-actor': 'admin', x_auth_actor: 'admin' }
  expect((await fetch(`${sidecar}/orders/1`, { headers })).status).toBe(200)
  expect(world.reached).toMatchObject([{ 'x-auth-subject': 'alice', 'x-auth-actor': 'three' }])
  expect(world.reached[0]).not.toHaveProperty('x_auth_actor')
  expect(await refusalOf(2)).not.toHaveProperty('detail')
  expect(await refusalOf(3)).toMatchObject({ detail: expect.stringMatching(/^actor_denied: /) })
  expect(
    (await fetch(`${sidecar}/orders/1`, { headers: { ...headers, authorization: `Bearer ${person}` } })).status,
  ).toBe(401)
})

test.each(AGENTS)('the end of the delegation to agent %s ends the next call and the open stream', async (agent) => {
  const stream = await opened()
  await world.manage('POST', RELATIONSHIPS, { delete: [linkOf(agent)] })
  expect(await refusalOf(1)).toMatchObject({
    code: 'permission_denied',
    detail: expect.stringMatching(/^delegation_missing: /),
  })
  await stream.ended
  expect(world.lines.join('')).toContain('delegation_missing')
  expect(await call(`${sidecar}/me`, last())).toMatchObject({ status: 401 })
  expect(await call(`${sidecar}/any/1`, last())).toMatchObject({ status: 403 })
  const told = await asClient('three', 'introspect', { token: last() })
  expect(await told.json()).toEqual({ active: false })
})

test.each(AGENTS)('the end of the token of agent %s ends the next call and the open stream', async (agent) => {
  const stream = await opened()
  const token = chain[AGENTS.indexOf(agent)] ?? ''
  expect((await asClient(agent, 'revoke', { token })).status).toBe(200)
  expect(await call(`${sidecar}/orders/1`, last())).toMatchObject({ status: 401 })
  await stream.ended
})

test.each(['order:1#viewer@user:alice', 'order:1#viewer@service:three'])(
  'the end of %s ends both, too',
  async (right) => {
    const stream = await opened()
    await world.manage('POST', RELATIONSHIPS, { delete: [right] })
    expect(await call(`${sidecar}/orders/1`, last())).toMatchObject({ status: 403 })
    await stream.ended
  },
)

test.each(AGENTS)('the delegation to agent %s that runs out ends both, too', async (agent) => {
  const expires_at = new Date(Date.now() + 4_000).toISOString()
  const [object, relation, subject] = [`service:${agent}`, 'acts_for', 'user:alice']
  const stream = await opened()
  await world.manage('POST', RELATIONSHIPS, { write: [{ object, relation, subject, expires_at }] })
  await stream.ended
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at))
  expect(await refusalOf(1)).toMatchObject({ code: 'permission_denied' })
})
