/** A guard on the database of the identity service refuses a token as soon as anything that it comes from has ended. */
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { createGuard, type GuardOptions } from '../../../../pdp/engine/middleware/guard.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { type Browser, createBrowser, hiddenFields } from '../../../support/browser.ts'
import { ACCESS_TOKEN, createFlows, EXCHANGE, type Obtained } from '../../identity/flows.ts'
import { API, CONTEXT, decode, openWorld, postToken, type World } from '../../identity/harness.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let pdp: EmbeddedPdp
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  pdp = createPdp({ store: world.store })
})
afterAll(() => world.close())

const guardOf = (asked: GuardOptions['pdp'] = pdp) =>
  createGuard({ pdp: asked, issuer: world.issuer, resource: API, publicUrl: 'https://invoices.example' })
async function answer(guard: ReturnType<typeof guardOf>, token: string): Promise<string> {
  const request = { method: 'GET', path: '/', authorization: [`Bearer ${token}`], proofs: [], parameters: {} }
  const outcome = await guard(request, [])
  return 'caller' in outcome ? outcome.caller.subject.id : JSON.parse(outcome.denial.body).code
}
const exchanged = async ({ tokens }: Obtained): Promise<string> => {
  const subject = { subject_token: tokens.access_token, subject_token_type: ACCESS_TOKEN }
  const form = { grant_type: EXCHANGE, ...subject, resource: API, scope: 'orders:read' }
  return String((await postToken(world, form, { id: 'gateway' })).body.access_token)
}

const EVE = { person: 'eve', organization: 'acme', scope: 'openid orders:read', resource: API }

test('a token of another issuer may have names that no database keeps', async () => {
  expect(await pdp.tokenKeys({ jti: 'a\0b', keyId: 'k' })).toEqual([])
  expect(await pdp.tokenKeys({ jti: 'a', keyId: 'k\0' })).toEqual([])
})

test('a token that has lost its record is refused', async () => {
  const { tokens } = await flows.code(EVE)
  await world.sql.query('delete from oidc_record where id = $1', [decode(tokens.access_token).payload.jti])
  let reads = 0
  const guard = guardOf({ ...pdp, tokenKeys: (token) => pdp.tokenKeys(token).finally(() => (reads += 1)) })
  for (let i = 0; i < 3; i += 1) expect(await answer(guard, tokens.access_token)).toBe('token_invalid')
  expect(reads).toBe(1)
})

test('where a token comes from is read once, and a guard that cannot read it lets nobody in', async () => {
  const { tokens } = await flows.code(EVE)
  let reads = 0
  let isAway = true
  const guard = guardOf({
    ...pdp,
    async tokenKeys(token) {
      if (isAway) throw new PdpError('store_unavailable', 'down')
      reads += 1
      return pdp.tokenKeys(token)
    },
  })
  expect(await answer(guard, tokens.access_token)).toBe('store_unavailable')
  isAway = false
  for (let i = 0; i < 3; i += 1) expect(await answer(guard, tokens.access_token)).toBe('eve')
  expect(reads).toBe(1)
})

type Signed = Obtained & { readonly browser: Browser; readonly client: string }
const OFFLINE = 'openid offline_access orders:read'
const ENDS: readonly (readonly [string, string, (from: Signed) => Promise<unknown>])[] = [
  [
    'its refresh token was revoked',
    OFFLINE,
    ({ config, tokens }) => oauth.tokenRevocation(config, tokens.refresh_token ?? ''),
  ],
  [
    'the browser session that it comes from ended',
    EVE.scope,
    async ({ browser }) =>
      browser.send('/oauth/logout/confirm', {
        form: { ...hiddenFields(await (await browser.send('/oauth/logout')).text()), logout: 'yes' },
      }),
  ],
  [
    'the tokens of the client that asked for it ended',
    OFFLINE,
    ({ client }) => world.reach({ logs: [] }, (at) => at.moves.endTokens(client, CONTEXT)),
  ],
]
describe.each(ENDS)('when %s', (_, scope, end) => {
  test.each([
    ['a token', 'flows', async ({ tokens }: Obtained) => tokens.access_token],
    ['what it was exchanged for', 'tenant-flows', exchanged],
  ])('%s is refused by a guard that has seen it, and by one that has not', async (_, client, tokenOf) => {
    const browser = createBrowser(new URL(world.issuer).origin)
    const from = await flows.code({ ...EVE, client, scope, browser })
    const token = await tokenOf(from)
    const knows = guardOf()
    expect(await answer(knows, token)).toBe('eve')
    await end({ ...from, browser, client })
    expect(await answer(knows, token)).toBe('token_invalid')
    expect(await answer(guardOf(), token)).toBe('token_invalid')
  })
})
