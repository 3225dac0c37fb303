/** Every call of management and SCIM by its operation, in an order in which each finds what it needs. */
import type { World } from './world.ts'

export type Call = {
  readonly operation: string
  readonly as: keyof World['tokens']
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly raw?: string
}

const call = (operation: string, as: Call['as'], request: string, body?: unknown): Call => {
  const [method = '', path = ''] = request.split(' ')
  return { operation, as, method, path, ...(body === undefined ? {} : { body }) }
}

const CORE = 'urn:ietf:params:scim:schemas:core:2.0'
const USER = (name: string, more: object = {}) => ({ schemas: [`${CORE}:User`], userName: name, ...more })
const GROUP = (name: string, members: readonly string[]) => ({
  schemas: [`${CORE}:Group`],
  displayName: name,
  members: members.map((value) => ({ value })),
})
const PATCH = (op: string, path: string, value: unknown) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: [{ op, path, value }],
})
/** More than a token holds where somebody had all of them: only then are the sets that people hold read. */
const KEYS = (letter: string) => Array.from({ length: 90 }, (_, n) => `${letter}${n}:do-something-long-and-particular`)
const BIG = (letter: string) => Object.fromEntries(KEYS(letter).map((key) => [key, key]))
const CLIENT = { organization: 'mine', grant_types: ['client_credentials'] }
const TUPLE = 'doc:2#viewer@user:ann'
const at = '/v1/organizations/mine'

export const callsOf = ({ provisioned }: World): readonly Call[] => {
  const person = `/scim/v2/Users/${encodeURIComponent(provisioned)}`
  return [
    call('putManifest', 'admin', 'PUT /v1/apps/own/manifest', {
      permissions: { ...BIG('a'), ...BIG('b') },
      roles: { small: { name: 'S', permissions: [KEYS('a')[0]] }, large: { name: 'L', permissions: KEYS('b') } },
    }),
    call('putManifest again', 'admin', 'PUT /v1/apps/own/manifest', {
      permissions: { ...BIG('a'), ...BIG('b') },
      roles: { small: { name: 'S', permissions: KEYS('a') }, large: { name: 'L', permissions: KEYS('b') } },
    }),
    call('putManifest dry', 'admin', 'PUT /v1/apps/own/manifest?dry_run=true', { permissions: BIG('a') }),
    call('getManifest', 'admin', 'GET /v1/apps/own/manifest'),
    call('listManifests', 'admin', 'GET /v1/apps'),
    call('putRole', 'admin', 'PUT /v1/roles/auditor', { name: 'A', permissions: ['logs:read'] }),
    call('putRole again', 'admin', 'PUT /v1/roles/auditor', { name: 'A', permissions: KEYS('c') }),
    call('patchRole', 'admin', 'PATCH /v1/roles/auditor', { name: 'B' }),
    call('getRole', 'admin', 'GET /v1/roles/auditor'),
    call('listRoles', 'admin', 'GET /v1/roles'),
    call('putOrganization', 'admin', `PUT ${at}~a`, { name: 'B', parent: 'mine' }),
    call('putOrganization of a tenant', 'tenant', `PUT ${at}~c`, { name: 'C', parent: 'mine' }),
    call('putOrganization, moved', 'admin', `PUT ${at}~c`, { name: 'C', parent: 'mine~a' }),
    call('patchOrganization of a tenant', 'tenant', `PATCH ${at}~c`, { name: 'D' }),
    call('getOrganization', 'tenant', `GET ${at}`),
    call('listOrganizations', 'tenant', 'GET /v1/organizations'),
    call('listOrganizations of all', 'admin', 'GET /v1/organizations'),
    call('putUser', 'people', 'PUT /v1/users/ann', { email: 'ann@new.test', password: 'a-new-password' }),
    call('putUser, new', 'admin', 'PUT /v1/users/eve', { email: 'eve@mine.test' }),
    call('patchUser', 'people', 'PATCH /v1/users/ann', { name: 'Ann' }),
    call('getUser', 'admin', 'GET /v1/users/ann'),
    call('listUsers', 'admin', 'GET /v1/users'),
    { ...call('importUsers', 'admin', 'POST /v1/users:import'), raw: '{"id":"fay","email":"fay@mine.test"}\n' },
    call('blockUser', 'people', 'POST /v1/users/ann/block'),
    call('getUserHoldings', 'people', 'GET /v1/users/ann/holdings'),
    call('offboardUser', 'admin', 'POST /v1/users/eve/offboard'),
    call('unblockUser', 'people', 'POST /v1/users/ann/unblock'),
    call('postAuthenticator', 'people', 'POST /v1/users/ann/totp'),
    call('deleteAuthenticator', 'people', 'DELETE /v1/users/ann/totp'),
    call('deletePasskeys', 'people', 'DELETE /v1/users/ann/passkeys'),
    call('putMember', 'admin', `PUT ${at}/members/ann`, { role: 'member', status: 'active' }),
    call('putMember of a tenant', 'tenant', `PUT ${at}/members/ben`, { role: 'member', status: 'active' }),
    call('patchMember', 'tenant', `PATCH ${at}/members/ann`, { role: 'viewer' }),
    call('getMember', 'tenant', `GET ${at}/members/ann`),
    call('revokeMemberSessions', 'tenant', `POST ${at}/members/ann/sessions:revoke`),
    call('listMembers', 'tenant', `GET ${at}/members`),
    call('putMember, suspended', 'tenant', `PUT ${at}/members/ann`, { role: 'member', status: 'suspended' }),
    call('putMember, active again', 'people', `PUT ${at}/members/ann`, { role: 'member', status: 'active' }),
    call('deleteMember', 'tenant', `DELETE ${at}/members/ben`),
    call('grantRole', 'admin', `POST ${at}/role-grants`, { role: 'auditor', subject: 'user:ann' }),
    call('listRoleGrants', 'tenant', `GET ${at}/role-grants`),
    call('listRoleGrants of one', 'tenant', `GET ${at}/role-grants?subject=user:ann&page_size=1`),
    call('grantRoleEverywhere', 'admin', 'POST /v1/role-grants', { role: 'auditor', subject: 'user:cid' }),
    call('listRoleGrantsEverywhere', 'admin', 'GET /v1/role-grants'),
    call('putRole, held', 'admin', 'PUT /v1/roles/auditor', { name: 'A', permissions: KEYS('d') }),
    call('postInvitation, refused', 'tenant', `POST ${at}/invitations`, { email: 'gil@mine.test', role: 'member' }),
    call('listInvitations', 'tenant', `GET ${at}/invitations`),
    call('putEntitlement', 'admin', `PUT ${at}/entitlements/f.b`, {
      value: { enabled: true },
      enforcement: 'DecisionApi',
    }),
    call('patchEntitlement', 'admin', `PATCH ${at}/entitlements/f.b`, { enforcement: 'Claims' }),
    call('getEntitlement', 'admin', `GET ${at}/entitlements/f.b`),
    call('listEntitlements', 'admin', `GET ${at}/entitlements`),
    call('deleteEntitlement', 'admin', `DELETE ${at}/entitlements/f.b`),
    call('writeRelationships', 'tenant', `POST ${at}/relationships`, { write: [TUPLE] }),
    call('listRelationships', 'tenant', `GET ${at}/relationships?subject=user:ann`),
    { ...call('importRelationships', 'admin', `POST ${at}/relationships:import`), raw: '"doc:3#viewer@user:ann"\n' },
    call('exportRelationships', 'admin', `GET ${at}/relationships:export`),
    call('compareAccess', 'admin', `POST ${at}/compare`, {
      relation: 'viewer',
      type: 'doc',
      contextual_tuples: [{ object: 'doc:9', relation: 'viewer', subject: 'user:ann' }],
    }),
    call('listResources', 'admin', `POST ${at}/list-resources`, {
      subject: { type: 'user', id: 'ann' },
      relation: 'viewer',
      type: 'doc',
    }),
    call('listSubjects', 'admin', `POST ${at}/list-subjects`, { resource: 'doc:1', relation: 'viewer', type: 'user' }),
    call('putClient', 'admin', 'PUT /v1/clients/mine~w', { ...CLIENT, scope: 'directory:read' }),
    call('putClient of a tenant', 'tenant', 'PUT /v1/clients/mine~v', { ...CLIENT, scope: 'directory:read' }),
    call('patchClient of a tenant', 'tenant', 'PATCH /v1/clients/mine~v', { client_name: 'V' }),
    call('getClient', 'tenant', 'GET /v1/clients/mine~v'),
    call('listClients', 'tenant', 'GET /v1/clients'),
    call('listClients of all', 'admin', 'GET /v1/clients'),
    call('deleteClient', 'tenant', 'DELETE /v1/clients/mine~v'),
    call('listEvents', 'admin', 'GET /v1/events?after=0'),
    call('listChanges', 'tenant', `GET ${at}/changes`),
    call('listDecisions', 'tenant', `GET ${at}/decisions`),
    call('listDecisions of a request', 'tenant', `GET ${at}/decisions?request=r-7`),
    call('listEnvironmentChanges', 'admin', 'GET /v1/changes'),
    call('listUserSessions', 'admin', 'GET /v1/users/ann/sessions'),
    call('revokeUserSessions', 'admin', 'POST /v1/users/ann/sessions:revoke'),
    call('SCIM list', 'directory', 'GET /scim/v2/Users'),
    call('SCIM filter', 'directory', 'GET /scim/v2/Users?filter=userName%20eq%20%22dan@mine.test%22'),
    call('SCIM search', 'directory', 'POST /scim/v2/Users/.search', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
    }),
    call('SCIM create', 'directory', 'POST /scim/v2/Users', USER('hal@mine.test')),
    call('SCIM read', 'directory', `GET ${person}`),
    call('SCIM group', 'directory', 'POST /scim/v2/Groups', GROUP('Staff', [provisioned])),
    call('SCIM groups', 'directory', 'GET /scim/v2/Groups'),
    call('SCIM address', 'directory', `PUT ${person}`, USER('dan@new.test')),
    call('SCIM inactive', 'directory', `PATCH ${person}`, PATCH('replace', 'active', false)),
    call('SCIM active', 'directory', `PATCH ${person}`, PATCH('replace', 'active', true)),
    call('SCIM delete', 'directory', `DELETE ${person}`),
    call('deleteUser', 'admin', 'DELETE /v1/users/ann'),
    call('deleteRole, refused', 'admin', 'DELETE /v1/roles/auditor'),
    call('deleteOrganization', 'admin', `DELETE ${at}~b`),
  ]
}

/** They read and write tables that hold nothing of organizations, or repeat what a row does. */
export const ELSEWHERE = [
  ...['putTokenHook', 'getTokenHook', 'deleteTokenHook', 'announceEntitlements'],
  // Memory of the process.
  'listSidecars',
  ...[
    'putTrustedIssuer',
    'patchTrustedIssuer',
    'getTrustedIssuer',
    'listTrustedIssuers',
    'deleteTrustedIssuer',
    'getTrustedIssuerSignals',
  ],
  ...[
    'putIdentityProvider',
    'patchIdentityProvider',
    'getIdentityProvider',
    'listIdentityProviders',
    'deleteIdentityProvider',
  ],
  ...[
    'listStreams',
    'getStreamState',
    'pauseStream',
    'resumeStream',
    'enableStream',
    'disableStream',
    'sendVerification',
  ],
  ...['revokeRole', 'revokeRoleEverywhere', 'deleteInvitation', 'revokeSession'],
]
