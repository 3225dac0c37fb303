/** Organizations of the environment's tree. */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../domain/log.ts'
import type { Organization } from '../../domain/organization.ts'
import { type ManagementClient, requireWithin } from '../authentication/authenticate.ts'
import { type PageQuery, readPage } from '../http/pagination.ts'
import { ID, LABEL, object } from '../http/schemas.ts'
import { RequestProblem } from '../problems/status.ts'
import type { ManagementDeps } from './deps.ts'
import { moveOrganization } from './organization-moves.ts'
import { requireOwnName } from './own-names.ts'
import { addManagementRoute, EMPTY, ok, put } from './route.ts'

const SCOPE = 'directory:write'
const PROPERTIES = { id: ID, name: LABEL, parent: { ...ID, type: ['string', 'null'] } }
const ORGANIZATION = object(PROPERTIES, ['id', 'name', 'parent'])
const MOVED = object(
  {
    lost_access: {
      type: 'array',
      items: ID,
      description:
        'Clients of organizations that are no longer above it: their tokens ended, and what they held in it.',
    },
    lost_secrets: {
      type: 'array',
      items: ID,
      description: 'Clients in it whose secret or keys such a client had set, or nobody knows who: they need new ones.',
    },
  },
  ['lost_access', 'lost_secrets'],
)

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
    answer: { ...ORGANIZATION, properties: { ...PROPERTIES, moved: MOVED } },
    // A move ends what clients hold: their registrations and tokens stand still meanwhile.
    locks: () => [DIRECTORY, ENVIRONMENT, TOKENS],
    lengthy: true,
    state: ({ at, manager, params }) => stateOf(at, manager, params.org),
    async handle({ at, manager, params, body, context }) {
      const organization = { id: params.org, name: body.name, parent: body.parent ?? null }
      const existing = await requirePlace(at, manager, organization)
      const moved =
        existing === null ? null : await moveOrganization(at, manager, { from: existing, to: organization, context })
      await at.store.write(ENVIRONMENT, [{ kind: 'organization', id: organization.id, organization }], { context })
      return put(existing !== null, { ...organization, ...(moved === null ? {} : { moved }) })
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
    state: ({ at, manager, params }) => stateOf(at, manager, params.org),
    async handle({ at, params }) {
      const organization = await findOrganization(at, params.org)
      if (organization === null)
        throw new RequestProblem('organization_unknown', `there is no organization ${params.org}`)
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
    locks: () => [DIRECTORY, ENVIRONMENT],
    lengthy: true,
    state: ({ at, manager, params }) => stateOf(at, manager, params.org),
    async handle({ at, params, context }) {
      await at.store.write(ENVIRONMENT, [{ kind: 'organization', id: params.org, organization: null }], { context })
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
  manager: ManagementClient,
  wanted: Organization,
): Promise<Organization | null> {
  const existing = await findOrganization(deps, wanted.id)
  if (manager.bounds.length === 0) return existing
  if (existing === null) await requireOwnName(deps, manager, wanted.id)
  else {
    await requireWithin(manager, wanted.id, deps.pdp)
    if (wanted.parent === existing.parent) return existing
  }
  if (wanted.parent === null || manager.bounds.includes(wanted.id)) {
    throw new RequestProblem(
      'permission_denied',
      'a client that is bound to an organization manages only what is below it',
    )
  }
  await requireWithin(manager, wanted.parent, deps.pdp)
  return existing
}

/** Null for who may not see it. */
async function stateOf(deps: ManagementDeps, manager: ManagementClient, id: string): Promise<Organization | null> {
  return (await isWithin(deps, manager, id)) ? findOrganization(deps, id) : null
}

async function isWithin(deps: ManagementDeps, manager: ManagementClient, organization: string): Promise<boolean> {
  if (manager.bounds.length === 0) return true
  const ancestors = await deps.pdp.ancestors(organization)
  return manager.bounds.every((bound) => ancestors?.includes(bound) === true)
}

async function findOrganization(deps: ManagementDeps, id: string): Promise<Organization | null> {
  const { rows } = await deps.store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'organization', id }])
  const row = rows.find((candidate) => candidate.key.kind === 'organization' && candidate.key.id === id)
  return row !== undefined && 'organization' in row ? row.organization : null
}
