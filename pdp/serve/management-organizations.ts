/** Organizations of the environment's tree, and who belongs to them. */
import type { FastifyInstance } from 'fastify'
import { ENVIRONMENT, MEMBERSHIP_STATUSES, type Membership, type Organization, TIERS } from '../store/contracts.ts'
import { type Manager, requireWithin } from './authenticate.ts'
import { addManagementRoute, EMPTY, type ManagementDeps, ok, put } from './management-route.ts'
import { type PageQuery, readPage } from './pages.ts'
import { ID, LABEL, object } from './schemas.ts'
import { Refusal } from './status.ts'

const SCOPE = 'directory:write'
const ORGANIZATION = object({ id: ID, name: LABEL, parent: { ...ID, type: ['string', 'null'] } }, [
  'id',
  'name',
  'parent',
])
const MEMBERSHIP = {
  role: { type: 'string', enum: TIERS },
  status: { type: 'string', enum: MEMBERSHIP_STATUSES },
}
const MEMBER = object({ user: ID, ...MEMBERSHIP }, ['user', 'role', 'status'])

export function addOrganizations(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Organizations', scope: SCOPE } as const
  addManagementRoute<{ params: 'org'; body: { name: string; parent?: string } }>(app, deps, {
    ...common,
    method: 'PUT',
    path: '/v1/organizations/:org',
    operation: 'putOrganization',
    summary: 'Creates an organization, or changes its name and place in the tree.',
    bounds: 'call',
    body: object({ name: LABEL, parent: ID }, ['name']),
    answer: ORGANIZATION,
    async handle({ manager, params, body, context }) {
      const organization = { id: params.org, name: body.name, parent: body.parent ?? null }
      const existing = await requirePlace(deps, manager, organization)
      await deps.store.write(ENVIRONMENT, [{ kind: 'organization', id: organization.id, organization }], { context })
      return put(existing !== null, organization)
    },
  })
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/organizations/:org',
    operation: 'getOrganization',
    summary: 'One organization.',
    bounds: 'organization',
    answer: ORGANIZATION,
    async handle({ params }) {
      const organization = await findOrganization(deps, params.org)
      if (organization === null) throw new Refusal('organization_unknown', `there is no organization ${params.org}`)
      return ok(organization)
    },
  })
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: '/v1/organizations/:org',
    operation: 'deleteOrganization',
    summary: 'Deletes an organization that nothing depends on.',
    bounds: 'organization',
    answer: null,
    async handle({ params, context }) {
      await deps.store.write(ENVIRONMENT, [{ kind: 'organization', id: params.org, organization: null }], { context })
      return EMPTY
    },
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/organizations',
    operation: 'listOrganizations',
    summary: 'Organizations by id; for a bound client those that it manages.',
    bounds: 'call',
    answer: ORGANIZATION,
    list: true,
    handle: async ({ manager, query }) =>
      ok(
        await readPage(deps.store, query, {
          log: ENVIRONMENT,
          read: (page) => deps.store.organizations(page),
          key: ({ id }) => id,
          visible: ({ id }) => isWithin(deps, manager, id),
        }),
      ),
  })
}

/** Where a bound client may put an organization: below its own, and its own only where it is. Returns what is there now. */
async function requirePlace(
  deps: ManagementDeps,
  manager: Manager,
  wanted: Organization,
): Promise<Organization | null> {
  const existing = await findOrganization(deps, wanted.id)
  if (manager.bounds.length === 0) return existing
  if (existing !== null) {
    await requireWithin(manager, wanted.id, deps.pdp)
    if (wanted.parent === existing.parent) return existing
  }
  if (wanted.parent === null || manager.bounds.includes(wanted.id)) {
    throw new Refusal('permission_denied', 'a client that is bound to an organization manages only what is below it')
  }
  await requireWithin(manager, wanted.parent, deps.pdp)
  return existing
}

async function isWithin(deps: ManagementDeps, manager: Manager, organization: string): Promise<boolean> {
  if (manager.bounds.length === 0) return true
  const lineage = await deps.pdp.lineage(organization)
  return manager.bounds.every((bound) => lineage?.includes(bound) === true)
}

async function findOrganization(deps: ManagementDeps, id: string): Promise<Organization | null> {
  const { rows } = await deps.store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'organization', id }])
  const row = rows.find((candidate) => candidate.key.kind === 'organization' && candidate.key.id === id)
  return row !== undefined && 'organization' in row ? row.organization : null
}

export function addMembers(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Members', scope: SCOPE, bounds: 'organization' } as const
  addManagementRoute<{ params: 'org' | 'user'; body: Membership }>(app, deps, {
    ...common,
    method: 'PUT',
    path: '/v1/organizations/:org/members/:user',
    operation: 'putMember',
    summary: 'Makes a user a member, or changes the tier or the status.',
    body: object(MEMBERSHIP, ['role', 'status']),
    answer: MEMBER,
    async handle({ params, body, context }) {
      if ((await deps.directory.user(params.user)) === null)
        throw new Refusal('not_found', `there is no user ${params.user}`)
      const existed = await isMember(deps, params)
      const membership = { role: body.role, status: body.status }
      await deps.store.write(params.org, [{ kind: 'membership', user: params.user, membership }], { context })
      return put(existed, { user: params.user, ...membership })
    },
  })
  addManagementRoute<{ params: 'org' | 'user' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: '/v1/organizations/:org/members/:user',
    operation: 'deleteMember',
    summary: 'Ends a membership.',
    answer: null,
    async handle({ params, context }) {
      const { changed } = await deps.store.write(
        params.org,
        [{ kind: 'membership', user: params.user, membership: null }],
        { context },
      )
      if (!changed) throw new Refusal('not_found', `${params.user} is not a member of ${params.org}`)
      return EMPTY
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/organizations/:org/members',
    operation: 'listMembers',
    summary: 'Members by user id, whatever their status.',
    answer: MEMBER,
    list: true,
    handle: async ({ params, query }) =>
      ok(
        await readPage(deps.store, query, {
          log: params.org,
          read: (page) => deps.store.members(params.org, page),
          key: ({ user }) => user,
        }),
      ),
  })
}

async function isMember(deps: ManagementDeps, { org, user }: { org: string; user: string }): Promise<boolean> {
  const { rows } = await deps.store.rows([org], [{ log: org, kind: 'membership', user }])
  return rows.some((row) => 'membership' in row && row.membership !== null)
}
