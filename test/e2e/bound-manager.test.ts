/** A client whose tokens are bound to its key manages and asks for reasons, as openid-client sends proofs. */
import * as oauth from 'openid-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientToken, discover } from '../support/sign-in.ts'
import { choosePorts } from './demo-stack.ts'
import { ADMIN_SECRET, type OwnPdp, startOwnPdp } from './pdp-settings.ts'

let issuer: string
let secret: string
let pdp: OwnPdp
beforeAll(async () => {
  pdp = await startOwnPdp(await choosePorts({}))
  issuer = pdp.issuer
  const scope = 'directory:write relationships:write relationships:read decisions:read clients:write'
  const { access_token: admin } = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
  const put = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
    const answer = await fetch(issuer + path, { method: 'PUT', headers, body: JSON.stringify(body) })
    return JSON.parse(await answer.text())
  }
  await put('/v1/organizations/acme', { name: 'Acme' })
  await put('/v1/users/ann', {})
  const grants = { grant_types: ['client_credentials'], organization: 'acme', dpop_bound_access_tokens: true }
  secret = (await put('/v1/clients/bound', { ...grants, scope: scope.replace(' clients:write', '') })).client_secret
})
afterAll(() => pdp?.close())

test('writes, reads and explains with its proofs, and gets nowhere without them', async () => {
  const config = await discover({ issuer, clientId: 'bound', clientSecret: secret })
  const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair('ES256'))
  const scope = 'relationships:write relationships:read decisions:read'
  await expect(oauth.clientCredentialsGrant(config, { scope })).rejects.toMatchObject({ error: 'invalid_dpop_proof' })
  const { access_token: token } = await oauth.clientCredentialsGrant(config, { scope }, { DPoP })

  const call = async (method: string, path: string, body: object | null) => {
    const headers = new Headers(body === null ? {} : { 'content-type': 'application/json' })
    const text = body === null ? null : JSON.stringify(body)
    const url = new URL(path, issuer)
    const answer = await oauth.fetchProtectedResource(config, token, url, method, text, headers, { DPoP })
    return { status: answer.status, body: JSON.parse(await answer.text()) }
  }
  const relationships = '/v1/organizations/acme/relationships'
  expect((await call('POST', relationships, { write: ['invoice:1#viewer@user:ann'] })).status).toBe(200)
  expect((await call('GET', `${relationships}?object=invoice:1`, null)).body.items).toHaveLength(1)
  const question = {
    subject: { type: 'user', id: 'ann' },
    permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
    explain: true,
  }
  expect(await call('POST', '/oauth/decisions', question)).toMatchObject({
    status: 200,
    body: { organization: 'acme', permissions: [{ allowed: true, reason: expect.any(Object) }] },
  })

  const stolen = async (authorization: string) =>
    (await fetch(issuer + relationships, { headers: { authorization } })).status
  expect([await stolen(`Bearer ${token}`), await stolen(`DPoP ${token}`)]).toEqual([401, 401])
})
