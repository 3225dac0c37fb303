/** A membership that ends at the API takes every sign-in with it that is bound to the organization, at every door of a running PDP. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { credentials, Metadata, makeClientConstructor } from '@grpc/grpc-js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBindings } from '../../../../pdp/identity/issuer/tokens/bindings.ts'
import { hashGeneratedSecret } from '../../../../pdp/identity/people/passwords/password-hash.ts'
import { serviceDefinition } from '../../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
} from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import { createFlows, type Obtained, USER_GRANTS } from '../../identity/flows.ts'
import { CONTEXT, postToken, SECRET } from '../../identity/harness.ts'
import { openRunningWorld, type RunningWorld } from './running-world.ts'

const CA = readFileSync(join(import.meta.dirname, '../../../support/certificates/ca.pem'))
const EVERY_SCOPE = 'directory:write roles:write decisions:ask'
let world: RunningWorld
let flows: ReturnType<typeof createFlows>
let manager: string
beforeAll(async () => {
  world = await openRunningWorld()
  flows = createFlows(world)
  for (const [id, organization, scope] of [
    ['manager', null, EVERY_SCOPE],
    ['acme-directory', 'acme', 'scim'],
  ] as const) {
    const metadata = { grant_types: ['client_credentials'], scope }
    await world.directory.putClient(
      { id, app: null, organization, metadata, secretHash: hashGeneratedSecret(SECRET) },
      CONTEXT,
    )
  }
  manager = await serviceToken('manager', EVERY_SCOPE)
})
afterAll(() => world.close())
beforeEach(async () => {
  for (const user of ['ann', 'eve']) await api('PUT', user, { role: 'developer', status: 'active' })
})

async function serviceToken(id: string, scope: string): Promise<string> {
  return String((await postToken(world, { grant_type: 'client_credentials', scope }, { id })).body.access_token)
}

const send = (token: string, method: string, path: string, body?: object, type = 'application/json') =>
  fetch(world.issuer + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
async function api(method: string, user: string, body?: object): Promise<void> {
  const answer = await send(manager, method, `/v1/organizations/acme/members/${user}`, body)
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
}
const status = (wanted: string) => (user: string) => api('PUT', user, { role: 'developer', status: wanted })
const ENDS = {
  'is removed': (user: string) => api('DELETE', user),
  'is suspended': status('suspended'),
  'is only invited': status('invited'),
}

const renewal = ({ tokens }: Obtained) =>
  postToken(world, { grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' }, { id: 'flows' })
const isTaken = async ({ tokens }: Obtained) => (await send(tokens.access_token, 'GET', '/oauth/userinfo')).status
const eve = { person: 'eve', organization: 'acme' }

describe.each(Object.entries(ENDS))('who %s', (how, end) => {
  const grants = how === 'is removed' ? USER_GRANTS : (['code'] as const)
  test.each(grants)('has no token by %s any more, and gets none by renewal, also after coming back', async (grant) => {
    const had = await flows.obtain(grant, eve)
    expect(await isTaken(had)).toBe(200)
    await end('eve')
    expect(await isTaken(had)).toBe(401)
    await status('active')('eve')
    expect(await isTaken(had)).toBe(401)
    if (had.tokens.refresh_token !== undefined)
      expect(await renewal(had)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test.each(grants)('gets nothing by %s that was agreed before', async (grant) => {
    const asked = flows.obtain(grant, { ...eve, beforeMint: () => end('eve') })
    await expect(asked).rejects.toThrow()
    await status('active')('eve')
  })

  test('keeps the sign-ins of another organization, and ends nobody else’s', async () => {
    const elsewhere = await flows.code({ person: 'ann', organization: 'beta' })
    const [here, other] = [await flows.code({ person: 'ann', organization: 'acme' }), await flows.code(eve)]
    await end('ann')
    expect(await Promise.all([elsewhere, here, other].map(isTaken))).toEqual([200, 401, 200])
    expect((await renewal(elsewhere)).status).toBe(200)
  })

  test('ends a token that was exchanged from another organization’s, and not the one that it came from', async () => {
    const parent = await flows.code({ person: 'ann', organization: 'beta' })
    const child = await flows.exchangeOf(
      parent.tokens.access_token,
      { person: 'ann', client: 'flows' },
      { organization: 'acme' },
    )
    expect(await isTaken(child)).toBe(200)
    await end('ann')
    expect([await isTaken(parent), await isTaken(child)]).toEqual([200, 401])
  })

  test('is told so on an open stream', async () => {
    const { tokens } = await flows.code(eve)
    const stream = watch(tokens.access_token)
    await expect.poll(() => stream.told).toEqual([true])
    await end('eve')
    await expect.poll(() => stream.told.at(-1)).toBe(false)
    stream.close()
  })
})

test('a change of the tier ends nothing', async () => {
  const had = await flows.code(eve)
  await api('PUT', 'eve', { role: 'viewer', status: 'active' })
  expect(await isTaken(had)).toBe(200)
  expect((await renewal(had)).status).toBe(200)
})

test('a directory’s active:false ends them also for who is active elsewhere', async () => {
  const scim = await serviceToken('acme-directory', 'scim')
  const type = 'application/scim+json'
  const created = await send(scim, 'POST', '/scim/v2/Users', { userName: 'ida@x.example' }, type)
  const { id } = (await created.json()) as { id: string }
  await world.store.write(
    'beta',
    [{ kind: 'membership', user: id, membership: { role: 'viewer', status: 'active' } }],
    {
      context: CONTEXT,
    },
  )
  const grantId = 'grant-of-ida'
  await createBindings(world).bind({
    ...{
      grantId,
      organization: 'acme',
      user: id,
      client: 'flows',
      sessionUid: null,
      parentGrantId: null,
      offline: true,
    },
  })
  await world.sql.query("insert into oidc_record (kind, id, payload) values ('Grant', $1, '{}')", [grantId])
  const change = { Operations: [{ op: 'replace', path: 'active', value: false }] }
  expect((await send(scim, 'PATCH', `/scim/v2/Users/${encodeURIComponent(id)}`, change, type)).status).toBe(200)
  expect(await world.sql.query("select 1 from oidc_record where kind = 'Grant' and id = $1", [grantId])).toEqual([])
})

test('a renewal is refused also where the membership ended without the API', async () => {
  const had = await flows.code(eve)
  await world.store.write('acme', [{ kind: 'membership', user: 'eve', membership: null }], { context: CONTEXT })
  expect(await renewal(had)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
})

const WAITING = `
  select 1 from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock' and query like '%into grant_binding%'`

test('a sign-in is not bound to an organization that the person is removed from at the same moment', async () => {
  const bindings = createBindings(world)
  const binding = {
    organization: 'acme',
    user: 'eve',
    client: 'flows',
    sessionUid: null,
    parentGrantId: null,
    offline: true,
  }
  let bound: Promise<boolean> | undefined
  await world.sql.transaction(async (tx) => {
    await tx.query("delete from membership where organization_id = 'acme' and user_id = 'eve'")
    bound = bindings.bindMember({ ...binding, grantId: 'late' })
    // It waits for this transaction.
    await expect.poll(() => world.sql.query(WAITING)).toHaveLength(1)
  })
  expect(await bound).toBe(false)
  expect(await bindings.find('late')).toBeNull()
})

/** Answers to one watched question, in order: whether the token was active. */
function watch(token: string) {
  const definition = serviceDefinition(DecisionService)
  const Client = makeClientConstructor(definition, 'DecisionService')
  const client = new Client(world.grpc, credentials.createSsl(CA))
  const { path, requestSerialize, responseDeserialize } = definition.decideStream
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${manager}`)
  const call = client.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
    ...([path, requestSerialize, responseDeserialize, metadata] as const),
  )
  const told: boolean[] = []
  call.on('error', () => undefined)
  call.on('data', ({ answers }: DecideStreamResponse) => {
    for (const { outcome } of answers) told.push(outcome.case === 'decision' && outcome.value.active)
  })
  const message: MessageInitShape<typeof DecideStreamRequestSchema> = {
    tokens: [{ handle: 1, token }],
    questions: [{ id: 1, handle: 1, watched: true }],
  }
  call.write(create(DecideStreamRequestSchema, message))
  return {
    told,
    close() {
      call.cancel()
      client.close()
    },
  }
}
