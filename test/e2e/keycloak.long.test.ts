/**
 * The tokens of a real Keycloak, by the block of docs/own-identity-provider.md. It runs where KEYCLOAK_HOME names an unpacked
 * distribution (Maven: org.keycloak:keycloak-quarkus-dist, tested with 26.0.8) and Java is installed; else it is skipped.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { call, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

const HOME = process.env.KEYCLOAK_HOME
const START_MS = 300_000
const REALM = {
  realm: 'acme',
  enabled: true,
  roles: { realm: [{ name: 'clerk' }] },
  groups: [{ name: 'sales' }],
  clients: [
    {
      clientId: 'web',
      publicClient: true,
      directAccessGrantsEnabled: true,
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: {
            'claim.name': 'groups',
            'full.path': 'true',
            'access.token.claim': 'true',
            'id.token.claim': 'true',
          },
        },
        {
          name: 'audience',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-audience-mapper',
          config: { 'included.custom.audience': 'orders-api', 'access.token.claim': 'true', 'id.token.claim': 'true' },
        },
      ],
    },
  ],
  users: [
    {
      id: '11111111-2222-3333-4444-555555555555',
      username: 'ann',
      enabled: true,
      email: 'ann@acme.test',
      emailVerified: true,
      firstName: 'Ann',
      lastName: 'Acme',
      credentials: [{ type: 'password', value: 'the password of ann' }],
      groups: ['/sales'],
      realmRoles: ['clerk'],
    },
  ],
}
const ENTRY = {
  subject_prefix: 'kc:',
  organizations: ['acme'],
  audience: 'orders-api',
  typ: 'JWT',
  claims: { client: 'azp', groups: 'groups', roles: 'realm_access.roles' },
}

describe.skipIf(HOME === undefined)('a token of Keycloak', () => {
  let world: OwnIssuerWorld
  let keycloak: ChildProcess
  let issuer: string
  let sidecar: string
  beforeAll(async () => {
    const port = await freePort()
    issuer = `http://127.0.0.1:${port}/realms/acme`
    keycloak = await startKeycloak(HOME ?? '', port, issuer)
    world = await openOwnIssuerWorld()
    const { manage } = world
    await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
    await manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE] })
    await manage('POST', '/v1/organizations/acme/relationships', {
      write: [
        'order:1#viewer@user:~kc:11111111-2222-3333-4444-555555555555',
        'order:2#viewer@group:~kc:group:/sales#member',
        'order:3#viewer@group:~kc:role:clerk#member',
      ],
    })
    await manage('PUT', `/v1/trusted-issuers/${encodeURIComponent(issuer)}`, {
      ...ENTRY,
      jwks_uri: `${issuer}/protocol/openid-connect/certs`,
      algorithms: ['RS256'],
      resource: RESOURCE,
    })
    sidecar = await world.startOn('  GET /orders/{id}: viewer order:{id}\n', { issuer, external: ENTRY })
  }, START_MS)
  afterAll(async () => {
    // The script starts Java as a child of its own.
    if (keycloak?.pid !== undefined) process.kill(-keycloak.pid)
    await world?.close()
  })

  test('opens what its person, group and role have; its ID token and its refresh token open nothing', async () => {
    const body = new URLSearchParams({
      grant_type: 'password',
      client_id: 'web',
      username: 'ann',
      password: 'the password of ann',
      scope: 'openid',
    })
    const response = await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body })
    const tokens: { [name: string]: string } = JSON.parse(await response.text())
    const statuses = async (token = '') =>
      Promise.all(['1', '2', '3', '4'].map(async (id) => (await call(`${sidecar}/orders/${id}`, token)).status))
    expect(await statuses(tokens.access_token)).toEqual([200, 200, 200, 403])
    expect(world.reached[0]).toMatchObject({
      'x-auth-subject': '~kc:11111111-2222-3333-4444-555555555555',
      'x-auth-client': '~kc:web',
      'x-auth-issuer': issuer,
    })
    expect(await statuses(tokens.id_token)).toEqual([401, 401, 401, 401])
    expect(await statuses(tokens.refresh_token)).toEqual([401, 401, 401, 401])
  })
})

async function startKeycloak(home: string, port: number, issuer: string): Promise<ChildProcess> {
  mkdirSync(join(home, 'data', 'import'), { recursive: true })
  writeFileSync(join(home, 'data', 'import', 'acme-realm.json'), JSON.stringify(REALM))
  const options = ['--http-host=127.0.0.1', `--http-port=${port}`, '--db=dev-mem', '--import-realm']
  const started = spawn(join(home, 'bin', 'kc.sh'), ['start-dev', ...options], {
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m' },
  })
  const gone = once(started, 'exit').then(() => {
    throw new Error('Keycloak ended before it was ready')
  })
  const ready = (async () => {
    const deadline = Date.now() + START_MS
    while (Date.now() < deadline) {
      const response = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => null)
      if (response?.ok) return
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    throw new Error('Keycloak did not become ready')
  })()
  await Promise.race([ready, gone])
  return started
}
