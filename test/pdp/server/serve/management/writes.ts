/** Every call that writes, with something for it to do; a call that is missing here fails the tests that go through them. */
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../../../../pdp/shared/domain/journal.ts'
import { CONTEXT, type Served } from '../harness.ts'

export type WriteCall = {
  readonly method: 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  /** As OpenAPI names it, and as it is called. */
  readonly path: string
  readonly url: string
  readonly body?: object | string
  readonly type?: string
  /** A log that it locks. */
  readonly log: JournalId
}

const grantBody = { role: 'auditor', subject: 'user:alice' }
const issuer = 'https%3A%2F%2Fidp.example'
const issuerBody = {
  jwks: { keys: [{ kty: 'OKP' }] },
  algorithms: ['ES256'],
  audience: 'https://api.example',
  subject_prefix: 'idp:',
  organizations: ['acme'],
}

export const WRITES: readonly WriteCall[] = [
  at('PUT', '/v1/organizations/{org}', '/v1/organizations/acme', { log: ENVIRONMENT, body: { name: 'New' } }),
  at('PATCH', '/v1/organizations/{org}', '/v1/organizations/acme', { log: ENVIRONMENT, body: { name: 'Newer' } }),
  at('DELETE', '/v1/organizations/{org}', '/v1/organizations/empty', { log: ENVIRONMENT }),
  at('PUT', '/v1/organizations/{org}/members/{user}', '/v1/organizations/acme/members/bob', {
    log: 'acme',
    body: { role: 'owner', status: 'active' },
  }),
  at('PATCH', '/v1/organizations/{org}/members/{user}', '/v1/organizations/acme/members/bob', {
    log: 'acme',
    body: { role: 'viewer' },
  }),
  at('DELETE', '/v1/organizations/{org}/members/{user}', '/v1/organizations/acme/members/alice', { log: 'acme' }),
  at('PUT', '/v1/users/{user}', '/v1/users/alice', { log: DIRECTORY, body: { name: 'New' } }),
  at('PATCH', '/v1/users/{user}', '/v1/users/alice', { log: DIRECTORY, body: { name: 'Newer' } }),
  at('DELETE', '/v1/users/{user}', '/v1/users/bob', { log: DIRECTORY }),
  at('POST', '/v1/users:import', '/v1/users:import', {
    log: DIRECTORY,
    body: '{"id": "imported"}',
    type: 'application/x-ndjson',
  }),
  at('POST', '/v1/users/{user}/block', '/v1/users/alice/block', { log: DIRECTORY }),
  at('POST', '/v1/users/{user}/offboard', '/v1/users/alice/offboard', { log: TOKENS }),
  at('POST', '/v1/users/{user}/unblock', '/v1/users/alice/unblock', { log: DIRECTORY }),
  at('POST', '/v1/users/{user}/totp', '/v1/users/alice/totp', { log: DIRECTORY }),
  at('DELETE', '/v1/users/{user}/totp', '/v1/users/bob/totp', { log: DIRECTORY }),
  at('DELETE', '/v1/users/{user}/passkeys', '/v1/users/bob/passkeys', { log: DIRECTORY }),
  at(
    'POST',
    '/v1/organizations/{org}/members/{user}/sessions:revoke',
    '/v1/organizations/acme/members/bob/sessions:revoke',
    { log: 'acme' },
  ),
  at('POST', '/v1/users/{user}/sessions:revoke', '/v1/users/alice/sessions:revoke', { log: DIRECTORY }),
  at('DELETE', '/v1/sessions/{session}', '/v1/sessions/s-1', { log: DIRECTORY }),
  at('PUT', '/v1/clients/{client_id}', '/v1/clients/web', {
    log: DIRECTORY,
    body: { grant_types: ['client_credentials'] },
  }),
  at('PATCH', '/v1/clients/{client_id}', '/v1/clients/web', {
    log: DIRECTORY,
    body: { grant_types: ['client_credentials'] },
  }),
  at('DELETE', '/v1/clients/{client_id}', '/v1/clients/web', { log: DIRECTORY }),
  at('PUT', '/v1/roles/{key}', '/v1/roles/auditor', { log: ENVIRONMENT, body: { name: 'New', permissions: ['b'] } }),
  at('PATCH', '/v1/roles/{key}', '/v1/roles/auditor', { log: ENVIRONMENT, body: { name: 'Newer' } }),
  at('DELETE', '/v1/roles/{key}', '/v1/roles/unused', { log: ENVIRONMENT }),
  at('POST', '/v1/organizations/{org}/role-grants', '/v1/organizations/acme/role-grants', {
    log: 'acme',
    body: grantBody,
  }),
  at('DELETE', '/v1/organizations/{org}/role-grants/{id}', '/v1/organizations/acme/role-grants/g1', { log: 'acme' }),
  at('POST', '/v1/role-grants', '/v1/role-grants', { log: ENVIRONMENT, body: grantBody }),
  at('DELETE', '/v1/role-grants/{id}', '/v1/role-grants/g2', { log: ENVIRONMENT }),
  at('POST', '/v1/organizations/{org}/relationships', '/v1/organizations/acme/relationships', {
    log: 'acme',
    body: { write: ['invoice:9#viewer@user:bob'] },
  }),
  at('POST', '/v1/organizations/{org}/relationships:import', '/v1/organizations/acme/relationships:import', {
    log: 'acme',
    body: 'invoice:8#viewer@user:bob',
    type: 'text/plain',
  }),
  at('PATCH', '/v1/organizations/{org}/entitlements/{key}', '/v1/organizations/acme/entitlements/feature.invoicing', {
    log: 'acme',
    body: { enforcement: 'Claims' },
  }),
  at('PUT', '/v1/organizations/{org}/entitlements/{key}', '/v1/organizations/acme/entitlements/a', {
    log: 'acme',
    body: { value: true },
  }),
  at('DELETE', '/v1/organizations/{org}/entitlements/{key}', '/v1/organizations/acme/entitlements/feature.invoicing', {
    log: 'acme',
  }),
  at('POST', '/v1/organizations/{org}/entitlements:changed', '/v1/organizations/acme/entitlements:changed', {
    log: 'acme',
  }),
  at('PUT', '/v1/apps/{app}/manifest', '/v1/apps/ledger/manifest', {
    log: ENVIRONMENT,
    body: { permissions: { book: 'Book' } },
  }),
  at('PUT', '/v1/token-hook', '/v1/token-hook', {
    log: ENVIRONMENT,
    body: { url: 'https://hook.example', secret: 'a-secret-of-16-or-more' },
  }),
  at('DELETE', '/v1/token-hook', '/v1/token-hook', { log: ENVIRONMENT }),
  at('POST', '/v1/organizations/{org}/invitations', '/v1/organizations/acme/invitations', {
    log: 'acme',
    body: { email: 'guest@x.example', role: 'member' },
  }),
  at('DELETE', '/v1/organizations/{org}/invitations/{id}', '/v1/organizations/acme/invitations/i1', { log: 'acme' }),
  at('PATCH', '/v1/identity-providers/{id}', '/v1/identity-providers/other', {
    log: ENVIRONMENT,
    body: { name: 'New' },
  }),
  at('PUT', '/v1/identity-providers/{id}', '/v1/identity-providers/other', {
    log: ENVIRONMENT,
    body: { issuer: 'https://idp.example', client_id: 'portcullis', name: 'Other' },
  }),
  at('DELETE', '/v1/identity-providers/{id}', '/v1/identity-providers/other', { log: ENVIRONMENT }),
  at('PUT', '/v1/trusted-issuers/{issuer}', `/v1/trusted-issuers/${issuer}`, { log: ENVIRONMENT, body: issuerBody }),
  at('PATCH', '/v1/trusted-issuers/{issuer}', `/v1/trusted-issuers/${issuer}`, { log: ENVIRONMENT, body: {} }),
  at('DELETE', '/v1/trusted-issuers/{issuer}', `/v1/trusted-issuers/${issuer}`, { log: ENVIRONMENT }),
  stream('POST', '/ssf/stream', {}),
  stream('PATCH', '/ssf/stream', { stream_id: 's1', description: 'new' }),
  stream('PUT', '/ssf/stream', { stream_id: 's1', description: 'new' }),
  at('DELETE', '/ssf/stream', '/ssf/stream?stream_id=s1', { log: DIRECTORY }),
  stream('POST', '/ssf/status', { stream_id: 's1', status: 'disabled' }),
  stream('POST', '/ssf/subjects:add', { stream_id: 's1', subject: { format: 'opaque', id: 'x' } }),
  stream('POST', '/ssf/subjects:remove', { stream_id: 's1', subject: { format: 'opaque', id: 'x' } }),
  stream('POST', '/ssf/verify', { stream_id: 's1' }),
  at('POST', '/v1/streams/{stream_id}/pause', '/v1/streams/s1/pause', { log: DIRECTORY, body: {} }),
  at('POST', '/v1/streams/{stream_id}/resume', '/v1/streams/s1/resume', { log: DIRECTORY, body: {} }),
  at('POST', '/v1/streams/{stream_id}/verify', '/v1/streams/s1/verify', { log: DIRECTORY }),
]

function stream(method: WriteCall['method'], path: string, body: object): WriteCall {
  return at(method, path, path, { log: DIRECTORY, body })
}

function at(
  method: WriteCall['method'],
  path: string,
  url: string,
  rest: Pick<WriteCall, 'log' | 'body' | 'type'>,
): WriteCall {
  return { method, path, url, ...rest }
}

export async function sendWrite(
  served: Served,
  call: Omit<WriteCall, 'path' | 'log'>,
  token: string,
  headers: { readonly [name: string]: string } = {},
): Promise<Response> {
  const { method, url, body, type = 'application/json' } = call
  const content = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(served.url + url, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(content === null ? {} : { 'content-type': type }), ...headers },
    body: content,
  })
}

/** What the writes above find. */
export async function seedWrites({ store, directory }: Served): Promise<void> {
  const organization = { id: 'empty', name: 'Empty', parent: null }
  const grant = { app: null, role: 'auditor', subject: 'user:bob' }
  await store.write(
    ENVIRONMENT,
    [
      { kind: 'organization', id: 'empty', organization },
      { kind: 'role', key: 'auditor', role: { key: 'auditor', name: 'Auditor', permissions: ['a'] } },
      { kind: 'role', key: 'unused', role: { key: 'unused', name: 'Unused', permissions: ['a'] } },
      { kind: 'role_grant', op: 'write', grant: { id: 'g2', ...grant } },
    ],
    { context: CONTEXT },
  )
  await store.write('acme', [{ kind: 'role_grant', op: 'write', grant: { id: 'g1', ...grant } }], { context: CONTEXT })
  await directory.putClient({ id: 'web', app: null, organization: null, metadata: {} }, CONTEXT)
}
