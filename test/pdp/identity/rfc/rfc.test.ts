/** The token endpoint's nonces for every grant, and a second client that we did not write. */
import * as client from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EXCHANGE } from '../flows.ts'
import { openWorld, postToken, SECRET, type World } from '../harness.ts'
import { newClientKey, proveKey } from './forge.ts'

let world: World
let flows: ReturnType<typeof createFlows>
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
})
afterAll(() => world.close())

describe('a token request with a stale proof', () => {
  test.each(['client_credentials', 'refresh_token', DEVICE_CODE, CIBA, EXCHANGE])(
    'is sent a nonce for grant %s, exactly one, that other clients may read',
    async (grant) => {
      const proof = await proveKey(world, await newClientKey(), { iat: 1 })
      const form = {
        grant_type: grant,
        refresh_token: 'x',
        device_code: 'x',
        auth_req_id: 'x',
        subject_token: 'x',
        subject_token_type: ACCESS_TOKEN,
      }
      const id = grant === 'client_credentials' ? 'robot' : 'flows'
      const { status, headers, body } = await postToken(world, form, { id, headers: { dpop: proof } })
      expect([status, body.error]).toEqual([400, 'use_dpop_nonce'])
      expect(headers.get('dpop-nonce')).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]+$/)
    },
  )
})

describe('oauth4webapi', () => {
  test('accepts our metadata, our tokens and our introspection', async () => {
    const issuer = new URL(world.issuer)
    const insecure = { [client.allowInsecureRequests]: true } as const
    const server = await client.processDiscoveryResponse(issuer, await client.discoveryRequest(issuer, insecure))
    const resource = await client.processResourceDiscoveryResponse(
      issuer,
      await client.resourceDiscoveryRequest(issuer, insecure),
    )
    expect(resource.resource).toBe(world.issuer)
    const { tokens } = await flows.code({ person: 'eve', organization: 'acme' })
    const request = new Request(`${world.issuer}/oauth/userinfo`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    const claims = await client.validateJwtAccessToken(server, request, world.issuer, insecure)
    expect(claims.sub).toBe('eve')
    const own = { client_id: 'flows' }
    const answer = await client.introspectionRequest(
      server,
      own,
      client.ClientSecretBasic(SECRET),
      tokens.access_token,
      insecure,
    )
    expect(await client.processIntrospectionResponse(server, own, answer)).toMatchObject({ active: true, org: 'acme' })
    const info = await client.userInfoRequest(server, own, tokens.access_token, insecure)
    expect(await client.processUserInfoResponse(server, own, 'eve', info)).toMatchObject({ org_role: 'developer' })
  })
})
