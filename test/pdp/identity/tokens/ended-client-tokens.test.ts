/** Tokens end with what their client loses: those that were issued, and those whose request was under way. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/decision-point/create-pdp.ts'
import type { JsonObject } from '../../../../pdp/domain/json.ts'
import { hashGeneratedSecret } from '../../../../pdp/identity/keys/password-hash.ts'
import { CONTEXT, openWorld, postToken, SECRET, type World } from '../harness.ts'

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
