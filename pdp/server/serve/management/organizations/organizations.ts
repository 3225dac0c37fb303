/** The tree of organizations. */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../../../shared/domain/journal.ts'
import type { Organization } from '../../../../shared/domain/organization.ts'
import { isWithin, type ManagementClient, reachOf, requireWithin } from '../../authentication/authenticate.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { ID, LABEL, object, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { requireOwnName } from '../own-names.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, EMPTY, ok, okPage, put } from '../route.ts'
import { moveOrganization } from './moves.ts'

const PROPERTIES = { id: ID, name: LABEL, parent: { ...ID, type: ['string', 'null'] } }
const ORGANIZATION = whole(PROPERTIES)
const MOVED = whole({
  lost_access: {
    type: 'array',
    items: ID,
    description: 'Clients of former ancestors: their tokens ended, and they lost what they held in the organization.',
  },
  lost_secrets: {
    type: 'array',
    items: ID,
    description:
      'Clients in it whose secret or keys were set by such a client or by an unknown one: they need new ones.',
  },
})

const COMMON = { tag: 'Organizations', scope: 'directory:write' } as const
const PATH = '/v1/organizations/:org'

export function addOrganizations(app: FastifyInstance, deps: ManagementDeps): void {
  addWrites(app, deps)
  addReads(app, deps)
}

function addWrites(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{ params: 'org'; body: { name: string; parent?: string }; stored: Organization }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putOrganization',
    summary: 'Creates an organization, or changes its name and place in the tree.',
    organizationScope: 'call',
    body: object({ name: LABEL, parent: ID }, ['name']),
    answer: { ...ORGANIZATION, properties: { ...PROPERTIES, moved: MOVED } },
    // A move ends rights of clients, so their registrations and tokens must not change meanwhile.
    locks: () => [DIRECTORY, ENVIRONMENT, TOKENS],
    lengthy: true,
    state: ({ at, caller, params }) => stateOf(at, caller, params.org),
    async handle({ at, caller, params, body, context }) {
      const organization = { id: params.org, name: body.name, parent: body.parent ?? null }
      const existing = await requirePlace(at, caller, organization)
      const moved =
        existing === null ? null : await moveOrganization(at, caller, { from: existing, to: organization, context })
      await at.store.write(ENVIRONMENT, [{ kind: 'organization', id: organization.id, organization }], { context })
      return put(existing !== null, { ...organization, ...(moved === null ? {} : { moved }) })
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes the name of an organization, or its place in the tree.' })
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteOrganization',
    summary: 'Deletes an organization that nothing depends on.',
    organizationScope: 'organization',
    answer: null,
    locks: () => [DIRECTORY, ENVIRONMENT],
    lengthy: true,
    state: ({ at, caller, params }) => stateOf(at, caller, params.org),
    async handle({ at, params, context }) {
      await at.store.write(ENVIRONMENT, [{ kind: 'organization', id: params.org, organization: null }], { context })
      return EMPTY
    },
  })
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getOrganization',
    summary: 'One organization.',
    organizationScope: 'organization',
    answer: ORGANIZATION,
    state: ({ at, caller, params }) => stateOf(at, caller, params.org),
    async handle({ at, params }) {
      const organization = await findOrganization(at, params.org)
      if (organization === null)
        throw new RequestProblem('organization_unknown', `there is no organization ${params.org}`)
      return ok(organization)
    },
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/organizations',
    operation: 'listOrganizations',
    summary: 'Organizations by id. A bound client sees only those that it manages.',
    organizationScope: 'call',
    answer: ORGANIZATION,
    list: true,
    handle: ({ caller, query }) =>
      okPage(deps, query, {
        list: ['organizations'],
        log: ENVIRONMENT,
        async read(page) {
          const reach = await reachOf(caller, deps.pdp)
          return reach === null ? [] : deps.store.organizations(reach, page)
        },
        key: ({ id }) => id,
      }),
  })
}

/** Requires that a bound client places an organization below its own and does not move its own. Returns the stored one. */
async function requirePlace(
  deps: ManagementDeps,
  caller: ManagementClient,
  wanted: Organization,
): Promise<Organization | null> {
  const existing = await findOrganization(deps, wanted.id)
  if (caller.organizationScope.length === 0) return existing
  // An id of another tenant gets the same answer as an unused one.
  if (existing === null || !(await isWithin(caller, wanted.id, deps.pdp))) await requireOwnName(deps, caller, wanted.id)
  if (existing !== null) {
    await requireWithin(caller, wanted.id, deps.pdp)
    if (wanted.parent === existing.parent) return existing
  }
  if (wanted.parent === null || caller.organizationScope.includes(wanted.id)) {
    throw new RequestProblem(
      'permission_denied',
      'a client that is bound to an organization manages only organizations below it',
    )
  }
  await requireWithin(caller, wanted.parent, deps.pdp)
  return existing
}

/** The stored organization; null if the caller may not see it. */
async function stateOf(deps: ManagementDeps, caller: ManagementClient, id: string): Promise<Organization | null> {
  return (await isWithin(caller, id, deps.pdp)) ? findOrganization(deps, id) : null
}

async function findOrganization(deps: ManagementDeps, id: string): Promise<Organization | null> {
  const { rows } = await deps.store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'organization', id }])
  const row = rows.find((candidate) => candidate.key.kind === 'organization' && candidate.key.id === id)
  return row !== undefined && 'organization' in row ? row.organization : null
}
