/** Tokens end with what their client loses: those that were issued, and those whose request was under way. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { hashGeneratedSecret } from '../../../../../pdp/identity/people/passwords/password-hash.ts'
import type { JsonObject } from '../../../../../pdp/shared/domain/json.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE } from '../../flows.ts'
import { CONTEXT, openWorld, postToken, REDIRECT, SECRET, type World } from '../../harness.ts'

let world: World
/** Runs while the token hook is asked: by then the client of the request has proved who it is. */
let meanwhile = async (): Promise<unknown> => undefined
beforeAll(async () => {
  world = await openWorld({
    fetch: async () => {
      await meanwhile()
      return new Response('{"claims": {}}')
    },
  })
  await world.identity.hook.configure({ url: 'https://hook.example/', secret: 'a-secret-of-the-hook' }, CONTEXT)
})
afterAll(() => world.close())
let client = ''
let count = 0
beforeEach(async () => {
  meanwhile = async () => undefined
  client = `client-${++count}`
  await put()
})

const metadata = { grant_types: ['client_credentials'], scope: 'decisions:read decisions:ask' }
type Change = { metadata?: JsonObject; organization?: string; secret?: string; endTokens?: boolean }
const put = ({ organization = 'acme', secret = SECRET, ...change }: Change = {}) =>
  world.directory.putClient(
    { id: client, app: null, metadata, ...change, organization, secretHash: hashGeneratedSecret(secret) },
    CONTEXT,
  )
const ask = () => postToken(world, { grant_type: 'client_credentials' }, { id: client })

async function stands(token: unknown): Promise<string> {
  const known = await world.identity.recognize(String(token))
  const { active } = await world.identity.introspect(String(token))
  const decides = known.active && !(await createPdp({ store: world.store }).isRevoked(known))
  return `${active ? 'active' : 'inactive'}, ${decides ? 'decides' : 'decides nothing'}`
}

const LOSSES: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['lost a scope', () => put({ metadata: { ...metadata, scope: 'decisions:ask' } })],
  ['went to another organization', () => put({ organization: 'beta' })],
  ['got another secret from somebody else', () => put({ secret: 'a-secret-that-only-others-know', endTokens: true })],
  ['lost its secret by a move', () => world.reach({ logs: [] }, ({ moves }) => moves.dropSecret(client, CONTEXT))],
  [
    'is of an organization that lost another',
    () => world.reach({ logs: [] }, (at) => at.moves.endTokens(client, CONTEXT)),
  ],
  ['was deleted', () => world.directory.deleteClient(client, CONTEXT)],
]

describe('when a client', () => {
  test.each(LOSSES)('%s, its tokens are not active any more', async (_, lose) => {
    const { body } = await ask()
    expect(await stands(body.access_token)).toBe('active, decides')
    await lose()
    expect(await stands(body.access_token)).toBe('inactive, decides nothing')
  })

  test.each(LOSSES)('%s, a request that was under way gets no token', async (_, lose) => {
    meanwhile = lose
    expect(await ask()).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })
})

test('a client that lost a scope gets other tokens', async () => {
  await put({ metadata: { ...metadata, scope: 'decisions:ask' } })
  const { body } = await ask()
  expect(await world.identity.introspect(String(body.access_token))).toMatchObject({ active: true })
})

describe('a token that another client exchanged', () => {
  const exchange = (subject: string) =>
    postToken(
      world,
      { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN },
      { id: 'gateway-of-many' },
    )
  const scope = 'openid orders:read'
  const redirects = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', EXCHANGE] }
  const own = { ...redirects, scope: `${scope} decisions:read`, exchange_clients: ['gateway-of-many'] }
  /** People's tokens of a client of the environment. */
  const putOrigin = (change: Partial<Parameters<World['directory']['putClient']>[0]> = {}) =>
    world.directory.putClient(
      { id: client, app: null, organization: null, metadata: own, secretHash: hashGeneratedSecret(SECRET), ...change },
      CONTEXT,
    )
  let flows: ReturnType<typeof createFlows>
  beforeEach(async () => {
    flows = createFlows(world)
    client = `origin-${++count}`
    await putOrigin()
    const gateway = { scope, grant_types: [EXCHANGE], exchange_clients: [client, 'gateway-of-many'] }
    await world.directory.putClient(
      {
        id: 'gateway-of-many',
        app: null,
        organization: null,
        metadata: gateway,
        secretHash: hashGeneratedSecret(SECRET),
      },
      CONTEXT,
    )
  })
  const subjectToken = async () =>
    (await flows.code({ person: 'eve', organization: 'acme', client, scope })).tokens.access_token
  const ENDS: typeof LOSSES = [
    ['lost a scope', () => putOrigin({ metadata: { ...own, scope } })],
    ['went to an organization', () => putOrigin({ organization: 'acme' })],
    [
      'got another secret from somebody else',
      () => putOrigin({ secretHash: hashGeneratedSecret('a-secret-that-only-others-know'), endTokens: true }),
    ],
    ['lost its secret by a move', () => world.reach({ logs: [] }, ({ moves }) => moves.dropSecret(client, CONTEXT))],
    ['was deleted', () => world.directory.deleteClient(client, CONTEXT)],
  ]

  test.each(ENDS)(
    'ends when the client of the first token %s, and so does what was exchanged from it',
    async (_, lose) => {
      const first = String((await exchange(await subjectToken())).body.access_token)
      const second = String((await exchange(first)).body.access_token)
      for (const token of [first, second]) expect(await stands(token)).toBe('active, decides')
      await lose()
      for (const token of [first, second]) expect(await stands(token)).toBe('inactive, decides nothing')
      expect((await exchange(second)).status).toBe(400)
    },
  )

  test.each(ENDS)('is not issued when the client of the first token %s meanwhile', async (_, lose) => {
    const subject = await subjectToken()
    meanwhile = lose
    expect(await exchange(subject)).toMatchObject({ status: 400 })
  })
})
