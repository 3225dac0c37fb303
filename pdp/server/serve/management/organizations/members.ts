/** Members of an organization, with their tier and status. */
import type { FastifyInstance } from 'fastify'
import { membershipOf } from '../../../../engine/writes/memberships.ts'
import {
  MEMBERSHIP_STATUSES,
  type Membership,
  type MembershipStatus,
  TIERS,
} from '../../../../shared/domain/membership.ts'
import type { ManagementClient } from '../../authentication/authenticate.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { ID, object } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { requireGivenByReturn } from '../roles/given-roles.ts'
import { addManagementRoute, EMPTY, ok, put } from '../route.ts'

const MEMBERSHIP = {
  role: { type: 'string', enum: TIERS },
  status: { type: 'string', enum: MEMBERSHIP_STATUSES },
}
const MEMBER = object({ user: ID, ...MEMBERSHIP }, ['user', 'role', 'status'])

const COMMON = { tag: 'Members', scope: 'directory:write', organizationScope: 'organization' } as const
const PATH = '/v1/organizations/:org/members/:user'

export function addMembers(app: FastifyInstance, deps: ManagementDeps): void {
  addWrites(app, deps)
  addReads(app, deps)
}

function addWrites(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{ params: 'org' | 'user'; body: Membership; stored: Membership }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putMember',
    summary:
      'Makes a user a member, or changes the tier or the status. If a bound client adds a user who is not an active member of its organizations, the user starts as `invited`. To make a user active again who was suspended or invited and has roles here, the caller must be one that may give these roles. While a membership is suspended or invited, no sign-in is bound to the organization: those that were end, with their tokens. A client that is not bound may set `active` also for a user whom the directory of a company has shut out.',
    body: object(MEMBERSHIP, ['role', 'status']),
    answer: MEMBER,
    // Locked so that the user cannot be deleted meanwhile.
    locks: ({ org, user }) => [{ person: user }, org],
    state: ({ at, params }) => membershipOf(at.store, params.org, params.user),
    async handle({ at, caller, params, body, patch, context, stored: before }) {
      const { user, org } = params
      const blocked = await at.provisioning.isBlocked(user)
      if (blocked === null) throw new RequestProblem('not_found', `there is no user ${user}`)
      const status = await statusFor(at, caller, { user, before: before?.status ?? null, wanted: body.status })
      const membership = { role: body.role, status }
      await requireGivenByReturn(at, caller, { log: org, user, blocked, before: before?.status ?? null, after: status })
      await at.store.write(org, [{ kind: 'membership', user, membership }], { context })
      if (status !== 'active') await at.sessions.endMember({ organization: org, user }, context)
      const isAsked = patch === null || Object.hasOwn(patch, 'status')
      // Without this, the block by a company's directory would still keep the user out of every organization.
      if (blocked && isAsked && status === 'active' && caller.organizationScope.length === 0)
        await at.provisioning.setBlocked(user, false)
      return { ...put(before !== null, { user, ...membership }), left: membership }
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes the tier or the status of a member.' })
  addManagementRoute<{ params: 'org' | 'user' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteMember',
    summary:
      'Ends a membership, and with it the sign-ins that are bound to the organization, with their tokens. The person is then a guest, for whom relationships and roles of the organization count; 409 if the membership is suspended or invited and the person still has any of these.',
    answer: null,
    locks: ({ org }) => [org],
    state: ({ at, params }) => membershipOf(at.store, params.org, params.user),
    async handle({ at, params: { org, user }, context }) {
      const { changed } = await at.store.write(org, [{ kind: 'membership', user, membership: null }], {
        context,
        keepsSuspension: true,
      })
      if (!changed) throw new RequestProblem('not_found', `${user} is not a member of ${org}`)
      await at.sessions.endMember({ organization: org, user }, context)
      return EMPTY
    },
  })
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'user' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getMember',
    summary: 'One membership.',
    answer: MEMBER,
    state: ({ at, params }) => membershipOf(at.store, params.org, params.user),
    async handle({ at, params }) {
      const membership = await membershipOf(at.store, params.org, params.user)
      if (membership === null) throw new RequestProblem('not_found', `${params.user} is not a member of ${params.org}`)
      return ok({ user: params.user, ...membership })
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/organizations/:org/members',
    operation: 'listMembers',
    summary: 'Members by user id, with any status.',
    answer: MEMBER,
    list: true,
    handle: async ({ params, query }) =>
      ok(
        await readPage(deps.store, query, {
          list: ['members', params.org],
          log: params.org,
          read: (page) => deps.store.members(params.org, page),
          key: ({ user }) => user,
        }),
      ),
  })
}

type Wanted = {
  readonly user: string
  readonly before: MembershipStatus | null
  readonly wanted: MembershipStatus
}

/** A tenant cannot make a person an active member without consent: the person or the operator activates the membership. */
async function statusFor(
  { directory, pdp }: ManagementDeps,
  { organizationScope }: ManagementClient,
  { user, before, wanted }: Wanted,
): Promise<MembershipStatus> {
  if (organizationScope.length === 0 || wanted === 'invited') return wanted
  // Only an active membership can be suspended, so the person has agreed to it.
  if (before === 'active' || before === 'suspended') return wanted
  for (const { organization } of await directory.activeMemberships(user)) {
    const ancestors = await pdp.ancestors(organization.id)
    if (organizationScope.every((bound) => ancestors?.includes(bound) === true)) return wanted
  }
  return 'invited'
}
