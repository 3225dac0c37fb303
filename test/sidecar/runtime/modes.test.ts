import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { SubjectSchema } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { field } from '../../support/peers/raw-http.ts'
import { fieldOf } from '../support/upstream.ts'
import { openRuntimeWorld, ROUTES, script } from './runtime-world.ts'

const world = openRuntimeWorld()
const start = world.start.bind(world)

describe('step-up (RFC 9470)', () => {
  const routes = `GET /a: {check: scope invoices:read, step_up: {acr_values: [mfa, hw], max_age: 300}}`
  const signedIn = (acr: string, authTime: number) => (asked: Parameters<typeof script>[0]) => {
    const decision = script(asked)
    return decision === null || typeof decision === 'string' ? decision : { ...decision, acr, authTime }
  }
  const nowSeconds = Math.floor(Date.now() / 1_000)

  test.each([
    ['hw', nowSeconds - 10, 200],
    ['pwd', nowSeconds - 10, 401],
    ['', nowSeconds - 10, 401],
    ['mfa', nowSeconds - 400, 401],
    ['mfa', 0, 401],
  ])('with acr %j at %i is %i', async (acr, authTime, status) => {
    const { send } = await start({ routes, script: signedIn(acr, authTime) })
    const answer = await send('GET /a')
    expect(answer.status).toBe(status)
    if (status === 401)
      expect(field(answer, 'www-authenticate')).toMatch(
        /^Bearer error="insufficient_user_authentication", acr_values="mfa hw", max_age="300", resource_metadata=/,
      )
  })

  test('is asked for under the DPoP scheme too, and only once token and proof were good', async () => {
    const { send, issuer } = await start({ routes, script: signedIn('pwd', nowSeconds) })
    const keys = ecKeys()
    const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
    const options = { keys, method: 'GET', token, clock: Date.now }
    const attempt = async (url: string, presented = token) => {
      const fields = [`Authorization: DPoP ${presented}`, `DPoP: ${await proof({ ...options, url })}`]
      return field(await send('GET /a', { token: null, fields }), 'www-authenticate')
    }
    expect(await attempt('https://app.test/a')).toMatch(
      /^DPoP error="insufficient_user_authentication", acr_values="mfa hw", max_age="300"/,
    )
    expect(await attempt('https://app.test/b')).toMatch(/^DPoP error="invalid_dpop_proof"/)
    expect(await attempt('https://app.test/a', 'a.b.c')).toMatch(/^DPoP error="invalid_token"/)
    const bearer = await send('GET /a', { token: 'a.b.c' })
    expect(field(bearer, 'www-authenticate')).toMatch(/^Bearer error="invalid_token"/)
  })

  test('believes the token of an external issuer, and of no other', async () => {
    const { send, issuer, sidecar, file, pdp } = await start({ routes, script: signedIn('', 0) })
    const token = await issuer.token({ acr: 'mfa', auth_time: nowSeconds })
    expect((await send('GET /a', { token })).status).toBe(401)
    const external = {
      audience: 'https://app.test',
      subject_prefix: 'idp:',
      organizations: ['acme'],
      claims: { organization: 'org' },
    }
    const issuers = file().issuers.map((entry) => ({ ...entry, external }))
    const plain = signedIn('', 0)
    pdp.script = (asked) => {
      const decision = plain(asked)
      return decision === null || typeof decision === 'string'
        ? decision
        : { ...decision, subject: create(SubjectSchema, { type: 'user', id: `~idp:${decision.subject?.id}` }) }
    }
    sidecar.apply({ file: { ...file(), issuers }, certificates: NO_CERTIFICATES, hash: 'external' })
    expect((await send('GET /a', { token })).status).toBe(200)
    expect((await send('GET /a', { token: await issuer.token({ acr: 'mfa' }) })).status).toBe(401)
  })
})

describe('shadow mode', () => {
  const routes = `GET /a/{id}: {check: "viewer invoice:{id}", mode: shadow}\nGET /b/{id}: viewer invoice:{id}`

  test('lets through what it would have refused, and says so', async () => {
    const { send, upstream, log, registry } = await start({ routes })
    expect((await send('GET /a/2')).status).toBe(200)
    expect((await send('GET /a/2', { token: null })).status).toBe(200)
    expect((await send('GET /a/2', { token: 'rubbish' })).status).toBe(200)
    expect(upstream.reached.map((one) => fieldOf(one, 'x-auth-subject'))).toEqual(['alice', null, null])
    expect(log.filter((line) => 'decision' in line && line.decision === 'shadow').length).toBe(3)
    expect(log).toContainEqual({ event: 'routes_shadowed', routes: ['GET /a/{id}'] })
    const metrics = await registry.metrics()
    expect(metrics).toContain('portcullis_sidecar_shadowed_route{route="GET /a/{id}"} 1')
    expect(metrics).toContain('decision="shadow",outcome="permission_denied"} 1')
  })

  test('keeps refusing what is malformed, unknown or of another route', async () => {
    const { send, pdp } = await start({ routes })
    expect((await send('GET /a/%2e%2e')).status).toBe(400)
    expect((await send('GET /c')).status).toBe(404)
    expect((await send('POST /a/1')).status).toBe(405)
    expect((await send('GET /b/2')).status).toBe(403)
    await pdp.stop()
    expect((await send('GET /a/1')).status).toBe(200)
    expect((await send('GET /b/1')).status).toBe(503)
  })

  test('does not name a subject whose token was revoked', async () => {
    const { send, upstream } = await start({ routes, script: (asked) => dead(asked) })
    expect((await send('GET /a/1')).status).toBe(200)
    expect(fieldOf(upstream.reached[0], 'x-auth-subject')).toBeNull()
  })
  const dead = (asked: Parameters<typeof script>[0]) => {
    const decision = script(asked)
    return decision === null || typeof decision === 'string' ? decision : { ...decision, active: false }
  }

  test('for the whole file can be left by a route', async () => {
    const own = ROUTES.replace('viewer invoice:{id}', '{check: "viewer invoice:{id}", mode: enforce}')
    const { send } = await start({ routes: `${own}\nGET /x/{id}: viewer invoice:{id}`, extra: 'mode: shadow' })
    expect([(await send('GET /x/2')).status, (await send('GET /invoices/2')).status]).toEqual([200, 403])
  })
})
