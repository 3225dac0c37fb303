import { createHash } from 'node:crypto'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signIn } from '../../../support/sign-in.ts'
import { ALL_SCOPES, createFlow } from '../flow.ts'
import { API, CONTEXT, decode, openWorld, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
beforeAll(async () => {
  world = await openWorld()
  flow = createFlow(world)
})
afterAll(() => world.close())

describe('tokens of the code flow', () => {
  test('carry exactly the claims of the claims table for a member', async () => {
    const { tokens } = await signIn(
      flow.as('ann', { clientId: 'invoices-web', organization: 'acme', scope: ALL_SCOPES }),
    )
    const keys = createRemoteJWKSet(new URL(`${world.issuer}/oauth/jwks`))
    const access = await jwtVerify(tokens.access_token, keys, {
      typ: 'at+jwt',
      issuer: world.issuer,
      audience: world.issuer,
    })
    expect(access.payload).toEqual({
      iss: world.issuer,
      sub: 'ann',
      aud: world.issuer,
      client_id: 'invoices-web',
      scope: ALL_SCOPES,
      jti: expect.stringMatching(/^[\w-]{43}$/),
      iat: expect.any(Number),
      exp: (access.payload.iat ?? 0) + 900,
      org: 'acme',
      org_name: 'Acme & Co',
      org_role: 'owner',
      roles: ['approver', 'auditor'],
      permissions: ['invoices:approve', 'invoices:read', 'logs:read'],
      ent: { 'feature.sso': { enabled: true } },
      ent_ver: 1,
    })
    const id = await jwtVerify(tokens.id_token ?? '', keys, { issuer: world.issuer, audience: 'invoices-web' })
    expect(id.payload).toEqual({
      iss: world.issuer,
      sub: 'ann',
      aud: 'invoices-web',
      iat: expect.any(Number),
      exp: (id.payload.iat ?? 0) + 900,
      nonce: expect.any(String),
      auth_time: expect.any(Number),
      acr: 'pwd',
      amr: ['pwd'],
      at_hash: createHash('sha256').update(tokens.access_token).digest().subarray(0, 16).toString('base64url'),
      org: 'acme',
      org_name: 'Acme & Co',
      org_role: 'owner',
      groups: ['approver', 'auditor'],
    })
  })

  test("have the roles of the audience's app, whatever the client's own app is", async () => {
    expect(await flow.accessClaims(flow.as('ann', { organization: 'acme' }))).toMatchObject({ roles: ['auditor'] })
    const claims = await flow.accessClaims(
      flow.as('ann', { organization: 'acme', resource: API, scope: 'openid orders:read' }),
    )
    expect(claims).toMatchObject({ aud: API, scope: 'openid orders:read', roles: ['approver', 'auditor'] })
  })

  test('have no ID token without openid, and no groups without their scope', async () => {
    expect((await signIn(flow.as('eve', { scope: 'email' }))).tokens.id_token).toBeUndefined()
    const { tokens } = await signIn(flow.as('ann', { organization: 'acme' }))
    expect(decode(tokens.id_token ?? '').payload).not.toHaveProperty('groups')
  })

  test('say nothing about an organization for a person who belongs to none', async () => {
    const { tokens, steps } = await signIn(flow.as('cy', { scope: ALL_SCOPES }))
    expect(steps).toEqual(['login'])
    for (const payload of [decode(tokens.access_token).payload, decode(tokens.id_token ?? '').payload]) {
      for (const claim of ['org', 'org_name', 'org_role', 'roles', 'permissions', 'groups', 'ent', 'ent_ver']) {
        expect(payload).not.toHaveProperty(claim)
      }
    }
  })

  test.each(['email', 'email_verified', 'name', 'organizations', 'sid'])('never have %s', async (claim) => {
    const { tokens } = await signIn(flow.as('eve', { scope: ALL_SCOPES }))
    expect(decode(tokens.access_token).payload).not.toHaveProperty(claim)
    expect(decode(tokens.id_token ?? '').payload).not.toHaveProperty(claim)
  })

  test('lose org_role but keep org when the membership is suspended before the code is redeemed', async () => {
    const suspend = (status: 'active' | 'suspended') =>
      world.store.write('acme', [{ kind: 'membership', user: 'eve', membership: { role: 'developer', status } }], {
        context: CONTEXT,
      })
    const code = await flow.newCode()
    await suspend('suspended')
    const { body } = await flow.redeem(code)
    await suspend('active')
    const payload = decode(String(body.access_token)).payload
    expect(payload).toMatchObject({ org: 'acme', org_name: 'Acme & Co' })
    expect(payload).not.toHaveProperty('org_role')
    expect(decode(String(body.id_token)).payload).not.toHaveProperty('org_role')
  })

  test('work for a public client, which has PKCE alone', async () => {
    const { clientSecret: _, ...request } = flow.as('eve', { clientId: 'spa' })
    expect(await flow.accessClaims(request)).toMatchObject({ client_id: 'spa', org_role: 'developer' })
  })
})

describe('the code', () => {
  test('is redeemed once; a second time ends the grant and the token it gave', async () => {
    const code = await flow.newCode()
    const first = await flow.redeem(code)
    const token = String(first.body.access_token)
    expect(await world.identity.introspect(token)).toMatchObject({ active: true })
    expect(await flow.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await world.identity.introspect(token)).toEqual({ active: false })
  })

  test('is redeemed once even when 20 try at the same time', async () => {
    const code = await flow.newCode()
    const answers = await Promise.all(Array.from({ length: 20 }, () => flow.redeem(code)))
    expect(answers.filter((a) => a.status === 200)).toHaveLength(1)
    expect(answers.filter((a) => a.body.error === 'invalid_grant')).toHaveLength(19)
  })

  test.each([
    ['a wrong verifier', { code_verifier: 'w'.repeat(43) }, 'web', 'invalid_grant'],
    ['a verifier that is too short', { code_verifier: 'v'.repeat(42) }, 'web', 'invalid_request'],
    ['no verifier', { code_verifier: '' }, 'web', 'invalid_grant'],
    ['another redirect_uri', { redirect_uri: 'https://app.example/other' }, 'web', 'invalid_grant'],
    ['no redirect_uri', { redirect_uri: '' }, 'web', 'invalid_request'],
    ['another client', {}, 'invoices-web', 'invalid_grant'],
    ['another resource', { resource: API }, 'web', 'invalid_target'],
    ['something added', { code: 'x' }, 'web', 'invalid_grant'],
    ['a NUL character', { code: '\0' }, 'web', 'invalid_grant'],
  ])('is not redeemed with %s', async (_, form, client, error) => {
    const code = await flow.newCode()
    expect(await flow.redeem(code, form, client)).toMatchObject({ status: 400, body: { error } })
  })

  test('is stored as a digest only', async () => {
    const code = await flow.newCode()
    const rows = await world.sql.query<{ text: string }>('select r::text as text from oidc_record r')
    expect(rows.some(({ text }) => text.includes('AuthorizationCode'))).toBe(true)
    expect(rows.filter(({ text }) => text.includes(code))).toEqual([])
  })

  test('is worth nothing once the person is gone', async () => {
    const passwordHash = (await world.directory.userByEmail('eve@x.example'))?.passwordHash ?? null
    await world.directory.putUser(
      { id: 'gone', email: 'gone@x.example', emailVerified: false, name: null, passwordHash },
      CONTEXT,
    )
    const code = await flow.newCode('gone')
    await world.directory.deleteUser('gone', CONTEXT)
    expect(await flow.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })
})
