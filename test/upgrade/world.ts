/** Something of every kind that a PDP stores, made through the API that every version has. */
import { setTimeout as delay } from 'node:timers/promises'
import { tokenRevocation } from 'openid-client'
import { clientToken, discover, signIn } from '../support/sign-in.ts'
import { ADMIN_SECRET } from './versions.ts'

export const ORGANIZATION = 'acme'
export const LOADER = 'loader'
export const SECRET = 'loader-secret-0123456789-abcdef'
export const PASSWORD = 'correct horse battery staple'
export const EMAIL = 'ann@acme.example'
const APP = 'documents-app'
const REDIRECT_URI = 'https://app.upgrade.example/callback'
const SCOPES = [
  'audit:read',
  'clients:write',
  'decisions:read',
  'directory:write',
  'entitlements:write',
  'events:read',
  'manifest:write',
  'relationships:read',
  'relationships:write',
  'roles:write',
]
const MODEL = `model
  schema 1.1
type user
type group
  relations
    define member: [user]
type folder
  relations
    define viewer: [user, group#member]
type document
  relations
    define folder: [folder]
    define blocked: [user]
    define editor: [service]
    define viewer: ([user, service, group#member] or viewer from folder) but not blocked
`
/** What ends, and what does not. */
export type Tokens = {
  readonly refresh: string
  readonly revokedRefresh: string
  readonly access: string
  readonly revokedAccess: string
}
export type Api = (method: string, path: string, body?: object) => Promise<unknown>

const BUSY = 503
const TRIES_MAX = 20
const RETRY_MS = 500

export function apiOf(origin: string, token: string): Api {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    let response = await fetch(`${origin}${path}`, init)
    // A machine that has more to do than it can.
    for (let tries = 0; response.status === BUSY && tries < TRIES_MAX; tries += 1) {
      await delay(RETRY_MS)
      response = await fetch(`${origin}${path}`, init)
    }
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
}

/** With every scope of the list that this version knows; `organization`: bound to it, to ask questions there. */
export async function adminToken(issuer: string, organization?: string): Promise<string> {
  const metadata: unknown = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
  const { scopes_supported: known } = metadata as { scopes_supported: readonly string[] }
  const scope = SCOPES.filter((one) => known.includes(one)).join(' ')
  const bound = organization === undefined ? {} : { organization }
  return (await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope, ...bound })).access_token
}

export async function makeWorld(issuer: string): Promise<Tokens> {
  await makeRecords(issuer)
  return makeTokens(issuer)
}

export async function makeRecords(issuer: string): Promise<void> {
  const api = apiOf(issuer, await adminToken(issuer))
  const organization = `/v1/organizations/${ORGANIZATION}`
  await api('PUT', organization, { name: 'Acme' })
  await api('PUT', `${organization}~europe`, { name: 'Acme Europe', parent: ORGANIZATION })
  await api('PUT', '/v1/apps/documents/manifest', {
    permissions: { 'documents:archive': 'Archive documents' },
    roles: { archivist: { name: 'Archivist', permissions: ['documents:archive'] } },
    model: MODEL,
  })
  await api('PUT', `/v1/clients/${APP}`, {
    app: 'documents',
    redirect_uris: [REDIRECT_URI],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    scope: 'openid offline_access',
  })
  const service = { app: 'documents', grant_types: ['client_credentials'], organization: ORGANIZATION }
  await api('PUT', `/v1/clients/${LOADER}`, { ...service, client_secret: SECRET })
  for (const [id, status] of Object.entries({ ann: 'active', ben: 'suspended', cleo: 'invited' })) {
    const email = id === 'ann' ? EMAIL : `${id}@acme.example`
    await api('PUT', `/v1/users/${id}`, { name: id, email, email_verified: true, password: PASSWORD })
    await api('PUT', `${organization}/members/${id}`, { role: 'member', status })
  }
  await api('POST', `${organization}/role-grants`, { app: 'documents', role: 'archivist', subject: 'user:ann' })
  const ends = (subject: string, expires_at: string) => ({
    object: 'document:4',
    relation: 'viewer',
    subject,
    expires_at,
  })
  await api('POST', `${organization}/relationships`, {
    write: [
      'document:1#viewer@user:ann',
      'document:1#viewer@user:ben',
      'document:2#viewer@group:staff#member',
      'document:3#folder@folder:legal',
      'folder:legal#viewer@group:staff#member',
      'document:3#blocked@user:dan',
      'group:staff#member@user:ann',
      'group:staff#member@user:dan',
      ends('user:ann', '2020-01-01T00:00:00Z'),
      ends('user:ben', '2100-01-01T00:00:00Z'),
    ],
  })
  await api('POST', `${organization}/relationships`, { delete: ['document:1#viewer@user:ben'] })
  for (const [key, value] of Object.entries({ 'feature.export': true, 'feature.import': false, seats: { limit: 25 } }))
    await api('PUT', `${organization}/entitlements/${key}`, { value })
}

async function makeTokens(issuer: string): Promise<Tokens> {
  const config = await discover({ issuer, clientId: APP })
  const kept = await patiently(() => signInAnn(issuer))
  const revoked = await patiently(() => signInAnn(issuer))
  await tokenRevocation(config, revoked.refresh)
  const loader = { issuer, clientId: LOADER, clientSecret: SECRET }
  const [access, revokedAccess] = [await clientToken(loader), await clientToken(loader)]
  await tokenRevocation(await discover(loader), revokedAccess.access_token)
  return {
    refresh: kept.refresh,
    revokedRefresh: revoked.refresh,
    access: access.access_token,
    revokedAccess: revokedAccess.access_token,
  }
}

/** Checking a password takes long on a machine that has more to do, and has its limit. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const done = await work().catch(() => null)
    if (done !== null) return done
    await delay(RETRY_MS)
  }
  return work()
}

/** Through the pages, as a person. Throws when she is refused. */
export async function signInAnn(issuer: string): Promise<{ readonly refresh: string; readonly access: string }> {
  const { tokens } = await signIn({
    issuer,
    clientId: APP,
    redirectUri: REDIRECT_URI,
    email: EMAIL,
    password: PASSWORD,
    organization: ORGANIZATION,
    scope: 'openid offline_access',
    parameters: { prompt: 'consent' },
  })
  return { refresh: tokens.refresh_token ?? '', access: tokens.access_token }
}

export const refreshed = (issuer: string, refresh: string): Promise<Response> =>
  fetch(`${issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: APP, refresh_token: refresh }),
  })
