/** Members of an organization, with their tier and status. */
import type { FastifyInstance } from 'fastify'
import { membershipOf } from '../../../../engine/writes/memberships.ts'
import {
  MEMBERSHIP_STATUSES,
  type Membership,
  type MembershipStatus,
  TIERS,
} from '../../../../shared/domain/membership.ts'
import { isWithin, type ManagementClient } from '../../authentication/authenticate.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { ID, whole } from '../../http/schemas.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { requireGivenByReturn } from '../roles/given-roles.ts'
import { addManagementRoute, done, found, ok, okPage, put } from '../route.ts'

const MEMBERSHIP = {
  role: { type: 'string', enum: TIERS },
  status: { type: 'string', enum: MEMBERSHIP_STATUSES },
}
const MEMBER = whole({ user: ID, ...MEMBERSHIP })

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
    body: whole(MEMBERSHIP),
    answer: MEMBER,
    // Locked so that the user cannot be deleted meanwhile.
    locks: ({ org, user }) => [{ person: user }, org],
    state: ({ at, params }) => membershipOf(at.store, params.org, params.user),
    async handle({ at, caller, params, body, patch, context, stored: before }) {
      const { user, org } = params
      const blocked = found(await at.provisioning.isBlocked(user), `there is no user ${user}`)
      const status = await statusFor(at, caller, { user, before: before?.status ?? null, wanted: body.status })
      const membership = { role: body.role, status }
      await requireGivenByReturn(at, caller, { log: org, user, blocked, before: before?.status ?? null, after: status })
      await at.store.write(org, [{ kind: 'membership', user, membership }], { context })
      if (status !== 'active') await at.sessions.endMember({ organization: org, user }, context)
      const isAsked = patch === null || Object.hasOwn(patch, 'status')
      // Lifts the block by a company's directory, which would keep the user out of all organizations.
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
      if (changed) await at.sessions.endMember({ organization: org, user }, context)
      return done(changed, `${user} is not a member of ${org}`)
    },
  })
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'user'; stored: Membership }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getMember',
    summary: 'One membership.',
    answer: MEMBER,
    state: ({ at, params }) => membershipOf(at.store, params.org, params.user),
    handle: async ({ params: { org, user }, stored }) =>
      ok({ user, ...found(stored, `${user} is not a member of ${org}`) }),
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/organizations/:org/members',
    operation: 'listMembers',
    summary: 'Members by user id, with any status.',
    answer: MEMBER,
    list: true,
    handle: ({ params, query }) =>
      okPage(deps, query, {
        list: ['members', params.org],
        log: params.org,
        read: (page) => deps.store.members(params.org, page),
        key: ({ user }) => user,
      }),
  })
}

/** A tenant cannot make a person an active member without consent: the person or the operator activates the membership. */
async function statusFor(
  { directory, pdp }: ManagementDeps,
  caller: ManagementClient,
  { user, before, wanted }: { user: string; before: MembershipStatus | null; wanted: MembershipStatus },
): Promise<MembershipStatus> {
  if (caller.organizationScope.length === 0 || wanted === 'invited') return wanted
  // Only an active membership can be suspended, so the person has agreed to a suspended one, too.
  if (before === 'active' || before === 'suspended') return wanted
  for (const { organization } of await directory.activeMemberships(user))
    if (await isWithin(caller, organization.id, pdp)) return wanted
  return 'invited'
}
