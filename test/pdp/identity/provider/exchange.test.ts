import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { clientToken } from '../../../support/sign-in.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../flows.ts'
import { API, decode, openWorld, postToken, SECRET, type World } from '../harness.ts'
import { newClientKey, proveKey } from '../rfc/forge.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const token = (form: Record<string, string>, id = 'flows', headers = {}) => postToken(world, form, { id, headers })
describe('token exchange (RFC 8693)', () => {
  const exchange = (form: Record<string, string>, id = 'gateway') =>
    token({ grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN, ...form }, id)
  let subject: string
  beforeAll(async () => {
    subject = (await flows.code(eve)).tokens.access_token
  })

  test('narrows scope and resource, and says what it issued', async () => {
    const { status, headers, body } = await exchange({ subject_token: subject, resource: API, scope: 'orders:read' })
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toMatchObject({ issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', scope: 'orders:read' })
    expect(body).not.toHaveProperty('refresh_token')
    expect(decode(String(body.access_token)).payload).toMatchObject({
      sub: 'eve',
      client_id: 'gateway',
      aud: API,
      org: 'acme',
      org_role: 'developer',
    })
    expect(Number(decode(String(body.access_token)).payload.exp)).toBeLessThanOrEqual(
      Number(decode(subject).payload.exp),
    )
  })

  test('names who acts, and who acted before', async () => {
    const actor = (await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET })).access_token
    const acting = { actor_token: actor, actor_token_type: ACCESS_TOKEN }
    const first = (await exchange({ subject_token: subject, ...acting })).body.access_token
    expect(decode(String(first)).payload.act).toEqual({ sub: 'robot', act: { sub: 'gateway' } })
    const second = (await exchange({ subject_token: String(first), ...acting })).body.access_token
    const chain = { sub: 'robot', act: { sub: 'robot', act: { sub: 'gateway' } } }
    expect(decode(String(second)).payload.act).toEqual(chain)
    const third = (await exchange({ subject_token: String(second) })).body.access_token
    expect(decode(String(third)).payload.act).toEqual(chain)
  })

  test('can change to another organization of the person', async () => {
    const ann = (await flows.code({ person: 'ann', organization: 'acme' })).tokens.access_token
    const { body } = await exchange({ subject_token: ann, organization: 'beta' })
    expect(decode(String(body.access_token)).payload).toMatchObject({ org: 'beta', org_role: 'viewer' })
  })

  test('names the target by audience as by resource', async () => {
    for (const form of [{ audience: API }, { audience: API, resource: API }]) {
      const { status, body } = await exchange({ subject_token: subject, ...form })
      expect([status, decode(String(body.access_token)).payload.aud]).toEqual([200, API])
    }
  })

  test('ends after a few generations', async () => {
    let current = subject
    for (let generation = 0; generation < 8; generation += 1) {
      const { status, body } = await exchange({ subject_token: current })
      expect(status).toBe(200)
      current = String(body.access_token)
    }
    expect(await exchange({ subject_token: current })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  test.each([
    ['no subject_token', { subject_token: '' }, 'invalid_request'],
    ['a broken subject_token', { subject_token: 'a.b.c' }, 'invalid_request'],
    ['an unknown subject_token_type', { subject_token_type: 'urn:x' }, 'invalid_request'],
    ['an actor_token without its type', { actor_token: 'a.b.c' }, 'invalid_request'],
    ['an actor_token_type without its token', { actor_token_type: ACCESS_TOKEN }, 'invalid_request'],
    ['a broken actor_token', { actor_token: 'a.b.c', actor_token_type: ACCESS_TOKEN }, 'invalid_request'],
    [
      'another requested type',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
      'invalid_request',
    ],
    ['an audience that is no resource', { audience: 'x' }, 'invalid_target'],
    ['an unknown audience', { audience: 'https://unknown.example/' }, 'invalid_target'],
    ['an audience beside another resource', { audience: API, resource: 'https://x.example/' }, 'invalid_target'],
    ['an unknown resource', { resource: 'https://unknown.example/' }, 'invalid_target'],
    ['more scope', { scope: 'openid decisions:read' }, 'invalid_scope'],
    ['an organization of others', { organization: 'beta' }, 'invalid_request'],
  ])('is refused with %s', async (_, form, error) => {
    const answer = await exchange({ subject_token: subject, ...form })
    expect(answer).toMatchObject({ status: 400, body: { error } })
  })

  test('is refused for a service token, a bound token without its key, and a client that lacks it', async () => {
    const robot = (await clientToken({ issuer: world.issuer, clientId: 'robot', clientSecret: SECRET })).access_token
    expect((await exchange({ subject_token: robot })).body.error).toBe('invalid_request')
    const bound = (await flows.code({ ...eve, dpop: true })).tokens.access_token
    expect((await exchange({ subject_token: bound }, 'flows')).body.error).toBe('invalid_request')
    expect((await exchange({ subject_token: bound })).body.error).toBe('invalid_request')
    expect((await exchange({ subject_token: subject }, 'web')).body.error).toBe('unauthorized_client')
    const { tokens } = await flows.code(eve)
    expect((await exchange({ subject_token: tokens.id_token ?? '' })).body.error).toBe('invalid_request')
  })
})

describe('what a client may exchange', () => {
  const metadata = { scope: 'openid orders:read', grant_types: [EXCHANGE] }
  const register = (id: string, more: object, client: object = {}) =>
    world.putClient({ id, ...client, metadata: { ...metadata, ...more }, secretHash: hashGeneratedSecret(SECRET) })
  const tokenOf = async (client: string, resource?: string) =>
    (await flows.code({ ...eve, client, scope: 'openid orders:read', ...(resource && { resource }) })).tokens
      .access_token
  const exchange = (id: string, subject: string, form: Record<string, string> = {}) =>
    token({ grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN, ...form }, id)

  beforeAll(async () => {
    await register('names-nobody', {})
    await register('names-another', { exchange_clients: ['web'], exchange_resources: [API] })
    await register('names-flows', { exchange_clients: ['flows'] })
    await register('invoices-api', {}, { app: 'invoices' })
    await register('tenant-names', { exchange_clients: ['flows', 'tenant-flows'] }, { organization: 'acme' })
    await register('tenant-api', {}, { organization: 'acme', app: 'invoices' })
  })

  test.each([
    ['of a client that it does not name', 'names-nobody', 'flows', undefined],
    ['of a client that it does not name, though it names others', 'names-another', 'flows', undefined],
    ['of a client of the environment, as a tenant that names it', 'tenant-names', 'flows', undefined],
    ['that was sent to the app of which a tenant says to be', 'tenant-api', 'flows', API],
    ['that was sent to an app, as a client of no app', 'names-nobody', 'flows', API],
  ])('is no token %s', async (_, id, issuedTo, resource) => {
    const answer = await exchange(id, await tokenOf(issuedTo, resource))
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test.each([
    ['its own', 'flows', 'flows', undefined],
    ['that of a client that it names', 'names-flows', 'flows', undefined],
    ['that of another client of its tenant that it names', 'tenant-names', 'tenant-flows', undefined],
    ['what was sent to its app', 'invoices-api', 'flows', API],
  ])('is %s', async (_, id, issuedTo, resource) => {
    const form = resource === undefined ? {} : { resource }
    expect((await exchange(id, await tokenOf(issuedTo, resource), form)).status).toBe(200)
  })

  test('is no token for a resource that it does not name, not even its own token', async () => {
    for (const [id, issuedTo] of [
      ['tenant-flows', 'tenant-flows'],
      ['names-flows', 'flows'],
    ] as const) {
      const answer = await exchange(id, await tokenOf(issuedTo), { resource: API })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    }
  })

  test('is no bound token without a proof of its key, as subject or as actor, whoever it was issued to', async () => {
    const key = await newClientKey()
    const jkt = async (proofKey = key) => ({ dpop: await proveKey(world, proofKey) })
    const form = { grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN }
    const plain = await tokenOf('flows')
    const first = await token({ ...form, subject_token: plain }, 'gateway', await jkt())
    const bound = String(first.body.access_token)
    expect(first.body.token_type).toBe('DPoP')
    const acting = { subject_token: plain, actor_token: bound, actor_token_type: ACCESS_TOKEN }
    for (const wanted of [{ subject_token: bound }, acting]) {
      for (const headers of [{}, await jkt(await newClientKey())]) {
        const answer = await token({ ...form, ...wanted }, 'gateway', headers)
        expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
        expect(String(answer.body.error_description)).toContain('bound to a key')
      }
      expect((await token({ ...form, ...wanted }, 'gateway', await jkt())).status).toBe(200)
    }
  })
})
