/** Two PDPs: people sign in at the first one, and a sidecar of the second one accepts their tokens until the first one says no. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { signIn } from '../support/sign-in.ts'
import { call, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

const REDIRECT_URI = 'https://spa.test/cb'
const PASSWORD = 'the password of everybody there'
const RECEIVER = { id: 'the-other-pdp', secret: 'the-secret-of-the-other-pdp' }
/** Both are on this machine. */
const NEAR = { internalHosts: ['127.0.0.1'] }
let provider: OwnIssuerWorld
let ours: OwnIssuerWorld
let sidecar: string

beforeAll(async () => {
  provider = await openOwnIssuerWorld(NEAR)
  ours = await openOwnIssuerWorld(NEAR)
  await provider.manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await provider.manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE] })
  const web = { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'none', scope: 'openid' }
  await provider.manage('PUT', '/v1/clients/web', web)
  await provider.manage('PUT', `/v1/clients/${RECEIVER.id}`, {
    client_secret: RECEIVER.secret,
    grant_types: ['client_credentials'],
    scope: 'ssf.manage',
  })
  await ours.manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await ours.manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE] })
  const external = { subject_prefix: 'them:', organizations: ['acme'], audience: RESOURCE }
  sidecar = await ours.startOn('  GET /me: signed_in\n', { issuer: provider.issuer, external })
})
afterAll(async () => {
  await ours.close()
  await provider.close()
})

async function tokenOf(person: string): Promise<string> {
  const email = `${person}@acme.test`
  await provider.manage('PUT', `/v1/users/${person}`, { email, email_verified: true, password: PASSWORD })
  await provider.manage('PUT', `/v1/organizations/acme/members/${person}`, { role: 'member', status: 'active' })
  // The first password is a change of credentials, which ends tokens that were issued up to the end of its second.
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  const client = { issuer: provider.issuer, clientId: 'web', redirectUri: REDIRECT_URI }
  const { tokens } = await signIn({ ...client, email, password: PASSWORD, resource: RESOURCE, organization: 'acme' })
  return tokens.access_token
}

describe.each(['poll', 'push'] as const)('with signals by %s', (delivery) => {
  beforeAll(async () => {
    await ours.manage('PUT', `/v1/trusted-issuers/${encodeURIComponent(provider.issuer)}`, {
      ...{ subject_prefix: 'them:', organizations: ['acme'], audience: RESOURCE },
      ...{ jwks_uri: `${provider.issuer}/oauth/jwks`, algorithms: ['RS256'] },
      ssf: {
        delivery,
        authorization: {
          token_endpoint: `${provider.issuer}/oauth/token`,
          client_id: RECEIVER.id,
          client_secret: RECEIVER.secret,
        },
      },
    })
    const path = `/v1/trusted-issuers/${encodeURIComponent(provider.issuer)}/signals`
    await vi.waitFor(
      async () => expect(await ours.read(path)).toMatchObject({ delivery, error: null, heard_at: expect.any(String) }),
      { timeout: 60_000, interval: 200 },
    )
  })

  test('a session that is revoked at the first PDP is refused by a sidecar of the second', async () => {
    const [ann, bob] = [await tokenOf(`ann-${delivery}`), await tokenOf(`bob-${delivery}`)]
    const statuses = async () => [(await call(`${sidecar}/me`, ann)).status, (await call(`${sidecar}/me`, bob)).status]
    expect(await statuses()).toEqual([200, 200])
    await provider.manage('POST', `/v1/users/ann-${delivery}/sessions:revoke`)
    await vi.waitFor(async () => expect(await statuses()).toEqual([401, 200]), { timeout: 60_000, interval: 200 })
  })
})
