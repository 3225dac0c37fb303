/** An identity provider that is not ours, by its entry in a route file and at the PDP: a real one of each, and a real sidecar. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pdpWarnings } from '../../sidecar/commands/check-pdp.ts'
import { loadConfig } from '../../sidecar/config/config.ts'
import { LONG } from '../support/effort.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { type ForeignProvider, INTROSPECTOR, type Shape, startForeignProvider } from './foreign-issuer.ts'
import { call as callUrl, HOST, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

let world: OwnIssuerWorld
let idp: ForeignProvider
let sidecar: string
beforeAll(async () => {
  world = await openOwnIssuerWorld()
  idp = await startForeignProvider()
  const { manage } = world
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/orders/manifest', {
    audiences: [RESOURCE],
    permissions: { 'orders:approve': 'Approve orders' },
    roles: { approver: { name: 'Approver', permissions: ['orders:approve'] } },
  })
  await manage('POST', '/v1/organizations/acme/relationships', {
    write: [
      'order:1#viewer@user:~idp:ann',
      'order:2#viewer@group:~idp:group:sales#member',
      'group:staff#member@group:~idp:role:clerk#member',
      'order:3#viewer@group:staff#member',
      // Ours, whom the other provider names as well.
      'order:4#viewer@user:ann',
    ],
  })
  sidecar = await startOn(`  GET /orders/{id}: viewer order:{id}
  GET /approvals: permission orders:approve
  GET /me: signed_in
  GET /people/{id}: {all: [signed_in, {equals: {claims.sub: ann}}]}
  GET /shadow/{id}: {check: "viewer order:{id}", mode: shadow}
`)
})
afterAll(async () => {
  await world.close()
  await idp.stop()
})
beforeEach(async () => {
  world.reached.length = 0
  idp.shape = () => undefined
  await trust({})
})

/** The entry of a route file, and with `jwks_uri` and `algorithms` also what the PDP is told. */
const ENTRY = {
  subject_prefix: 'idp:',
  organizations: ['acme'],
  audience: RESOURCE,
  typ: 'JWT',
  claims: { client: 'azp', groups: 'groups', roles: 'realm_access.roles' },
}

const registration = (): string => `/v1/trusted-issuers/${encodeURIComponent(idp.issuer)}`
const register = (document: object): Promise<void> => world.manage('PUT', registration(), document)
const trust = (change: object): Promise<void> =>
  register({ ...ENTRY, jwks_uri: idp.jwksUri, algorithms: ['RS256'], ...change })
const startOn = (routes: string, external: object = ENTRY, more: object = {}): Promise<string> =>
  world.startOn(routes, { issuer: idp.issuer, external, ...more })
const call = (path: string, token: string, at = sidecar) => callUrl(`${at}${path}`, token)

/** As Keycloak makes tokens: a plain JWT, the client in `azp`, groups and roles. */
const keycloak =
  (groups: readonly string[] = [], roles: readonly string[] = []): Shape =>
  (token) => {
    token.header.typ = 'JWT'
    const { client_id: client, aud, ...payload } = token.payload
    token.payload = { ...payload, azp: client, aud: ['account', aud], typ: 'Bearer', groups, realm_access: { roles } }
  }
const tokenOf = async (person: string): Promise<string> => (await idp.tokens(person, RESOURCE)).access_token

describe('a token of an identity provider that is not ours', () => {
  test('opens what is given to its subject, and to nobody of ours with the same name', async () => {
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    expect(await call('/orders/1', token)).toEqual({ status: 200, code: null })
    expect(await call('/me', token)).toMatchObject({ status: 200 })
    expect(await call('/orders/4', token)).toEqual({ status: 403, code: 'permission_denied' })
    expect(await call('/people/ann', token)).toMatchObject({ status: 403 })
    expect(await call('/orders/1', await tokenOf('bob'))).toMatchObject({ status: 403 })
    expect(world.reached).toHaveLength(2)
    for (const headers of world.reached) {
      expect(headers).toMatchObject({
        'x-auth-subject': '~idp:ann',
        'x-auth-subject-type': 'user',
        'x-auth-client': '~idp:spa',
        'x-auth-issuer': idp.issuer,
        'x-auth-organization': 'acme',
      })
    }
  })

  test('holds the groups and roles that it names, through groups and roles of ours, and no others', async () => {
    await world.manage('POST', '/v1/organizations/acme/role-grants', {
      app: 'orders',
      role: 'approver',
      subject: 'group:~idp:role:boss',
    })
    const paths = ['/orders/2', '/orders/3', '/approvals']
    const statuses = async (shape: Shape) => {
      idp.shape = shape
      const token = await tokenOf('cleo')
      return Promise.all(paths.map(async (path) => (await call(path, token)).status))
    }
    expect(await statuses(keycloak(['sales'], ['clerk', 'boss']))).toEqual([200, 200, 200])
    expect(await statuses(keycloak(['sales']))).toEqual([200, 403, 403])
    expect(await statuses(keycloak(['clerk', 'boss'], ['sales']))).toEqual([403, 403, 403])
    expect(await statuses(keycloak())).toEqual([403, 403, 403])
  })

  test('is refused when it is an ID token, and when its kind is not allowed', async () => {
    idp.shape = keycloak()
    const { id_token: idToken = '' } = await idp.tokens('ann', RESOURCE)
    expect(idToken.split('.')).toHaveLength(3)
    expect(await call('/me', idToken)).toEqual({ status: 401, code: 'token_invalid' })
    // Another client of the provider has the ID token's audience for its own.
    const ofClient = await startOn('  GET /me: signed_in\n', { ...ENTRY, audience: 'spa', claims: { client: 'aud' } })
    expect(await call('/me', idToken, ofClient)).toEqual({ status: 401, code: 'token_invalid' })
    const strict = await startOn('  GET /me: signed_in\n', { ...ENTRY, typ: 'at+jwt' })
    expect(await call('/me', await tokenOf('ann'), strict)).toMatchObject({ status: 401 })
  })

  test('is refused once the PDP does not trust its issuer, and the log says what to look at', async () => {
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    await world.manage('DELETE', registration())
    world.lines.length = 0
    expect(await call('/me', token)).toEqual({ status: 401, code: 'token_invalid' })
    expect(world.lines.join('')).toContain(`does it trust the issuer ${idp.issuer}`)
  })

  test('is issuer_mismatch where route file and PDP name its subject or organization differently', async () => {
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    await world.manage('PUT', '/v1/organizations/beta', { name: 'Beta' })
    for (const change of [
      { subject_prefix: 'else:' },
      { organizations: ['beta'] },
      { claims: { client: 'azp', subject: 'azp' } },
    ]) {
      await world.manage('DELETE', registration())
      await trust(change)
      expect(await call('/orders/1', token)).toEqual({ status: 503, code: 'issuer_mismatch' })
    }
    expect(world.lines.join('')).toContain('give the issuer the same subject_prefix')
  })

  test('is keys_unavailable, and not the PDP’s fault, while the PDP cannot have the issuer’s keys', async () => {
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    await trust({ jwks_uri: `http://${HOST}:${await freePort()}/jwks` })
    world.lines.length = 0
    expect(await call('/orders/1', token)).toEqual({ status: 503, code: 'keys_unavailable' })
    expect(world.lines.join('')).toContain('"event":"issuer_keys_failed"')
  })

  test('names its subject in shadow mode as everywhere, whatever the PDP answers', async () => {
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    expect(await call('/shadow/9', token)).toMatchObject({ status: 200 })
    await trust({ jwks_uri: `http://${HOST}:${await freePort()}/jwks` })
    expect(await call('/shadow/9', token)).toMatchObject({ status: 200 })
    expect(world.reached.map((headers) => headers['x-auth-subject'])).toEqual(['~idp:ann', '~idp:ann'])
    const decisions = world.lines.filter((line) => line.includes('"decision":"shadow"'))
    expect(decisions.length).toBeGreaterThanOrEqual(2)
    for (const line of decisions) expect(JSON.parse(line).subject).toBe('~idp:ann')
  })

  test('shows to `check --pdp` which relations and permissions the PDP does not have', async () => {
    const model = 'model\n  schema 1.1\ntype invoice\n  relations\n    define viewer: [user]\n'
    await world.manage('PUT', '/v1/apps/billing/manifest', { model })
    const file = await world.routeFile(
      '  GET /a: viewer invoice:1\n  GET /b: editor invoice:1\n  GET /c: {any: [permission orders:nope, permission orders:approve]}\n',
      { issuer: idp.issuer, external: ENTRY },
    )
    idp.shape = keycloak()
    const token = await tokenOf('ann')
    const readToken = (): string => ''
    expect(await pdpWarnings(loadConfig(file), { token, readToken })).toEqual([
      'GET /b asks editor invoice, which no model or role of the PDP has: it is always denied',
      'GET /c asks permission orders:nope, which no model or role of the PDP has: it is always denied',
    ])
    await expect(pdpWarnings(loadConfig(file), { token: 'made up', readToken })).rejects.toThrow(/not active/)
  })

  test('of our own issuer without an organization is signed in, and denied everything else', async () => {
    const token = await world.ownToken()
    expect(await call('/me', token)).toEqual({ status: 200, code: null })
    expect(await call('/orders/1', token)).toEqual({ status: 403, code: 'permission_denied' })
  })
})

describe('an opaque token of an identity provider that is not ours', () => {
  const entry = { subject_prefix: 'idp:', organizations: ['acme'], audience: '' }
  let gate: string
  beforeAll(async () => {
    entry.audience = idp.opaqueResource
    const file = join(world.directory, 'introspector')
    await writeFile(file, INTROSPECTOR.secret)
    const endpoint = `${idp.issuer}/token/introspection`
    const introspection = { endpoint, client_id: INTROSPECTOR.id, client_secret_file: file }
    gate = await startOn('  GET /orders/{id}: viewer order:{id}\n  GET /me: signed_in\n', entry, { introspection })
  })
  beforeEach(async () => {
    const endpoint = `${idp.issuer}/token/introspection`
    const introspection = { endpoint, client_id: INTROSPECTOR.id, client_secret: INTROSPECTOR.secret }
    await register({ ...entry, resource: RESOURCE, introspection })
  })
  const opaque = async (person: string) => (await idp.tokens(person, idp.opaqueResource)).access_token
  const questions = () => idp.asked.get('/token/introspection') ?? 0

  test('is judged like any other, and its issuer is asked once by each of sidecar and PDP', async () => {
    const token = await opaque('ann')
    expect(token).not.toContain('.')
    const before = questions()
    expect(await call('/orders/1', token, gate)).toEqual({ status: 200, code: null })
    expect(await call('/orders/2', token, gate)).toEqual({ status: 403, code: 'permission_denied' })
    expect(questions()).toBe(before + 2)
    expect(world.reached[0]).toMatchObject({ 'x-auth-subject': '~idp:ann', 'x-auth-issuer': idp.issuer })
    expect(await call('/me', 'made-up', gate)).toEqual({ status: 401, code: 'token_invalid' })
  })

  test('of another resource is refused, and one that is revoked is within ten seconds', async () => {
    const other = await idp.tokens('ann', `${idp.opaqueResource}/other`)
    expect(await call('/me', other.access_token, gate)).toEqual({ status: 401, code: 'token_invalid' })
    const token = await opaque('ann')
    await idp.revoke(token)
    expect(await call('/me', token, gate)).toEqual({ status: 401, code: 'token_invalid' })
    if (!LONG) return
    const used = await opaque('ann')
    expect(await call('/me', used, gate)).toMatchObject({ status: 200 })
    await idp.revoke(used)
    await until(async () => (await call('/me', used, gate)).status === 401)
  })

  test('is issuer_unavailable while its issuer does not answer the sidecar, or the PDP', async () => {
    const token = await opaque('ann')
    await idp.stop()
    expect(await call('/me', token, gate)).toEqual({ status: 503, code: 'issuer_unavailable' })
    await idp.start()
    const endpoint = `http://${HOST}:${await freePort()}/`
    const introspection = { endpoint, client_id: INTROSPECTOR.id, client_secret: INTROSPECTOR.secret }
    await register({ ...entry, resource: RESOURCE, introspection })
    expect(await call('/me', token, gate)).toEqual({ status: 503, code: 'issuer_unavailable' })
  })
})
