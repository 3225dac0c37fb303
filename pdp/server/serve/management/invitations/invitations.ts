/** Invitations into an organization, mailed to an address. A person who follows the link joins, if need be with a new account. */
import type { FastifyInstance } from 'fastify'
import { LANGUAGES } from '../../../../identity/html/words/words.ts'
import type { Invitation } from '../../../../identity/people/invitations/invitations.ts'
import { DIRECTORY, ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import { TIERS, type Tier } from '../../../../shared/domain/membership.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { ID, object, PERMISSION_KEY, TIMESTAMP, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addManagementRoute, done, okPage } from '../route.ts'
import { EMAIL, requireAddress } from '../users/users.ts'
import { INVITING, requireGivable } from './authority.ts'

const ROLES_MAX = 20
const TIER = { type: 'string', enum: TIERS }
const ROLES = {
  type: 'array',
  maxItems: ROLES_MAX,
  uniqueItems: true,
  items: object({ app: { ...ID, description: 'Absent: an organization-wide role.' }, role: PERMISSION_KEY }, ['role']),
}
const BODY = object(
  {
    email: EMAIL,
    role: { ...TIER, description: 'The tier of the membership.' },
    roles: {
      ...ROLES,
      description: 'Roles that are granted in the organization too. This also needs scope `roles:write`.',
    },
    language: { type: 'string', enum: [...LANGUAGES.keys()], description: 'Of the mail; by default `en`.' },
  },
  ['email', 'role'],
)
const INVITATION = whole({
  id: ID,
  email: EMAIL,
  role: TIER,
  roles: {
    type: 'array',
    items: whole({ app: { ...ID, type: ['string', 'null'] }, role: PERMISSION_KEY }),
  },
  invited_by: { type: 'string', description: 'user:<id> or service:<id>.' },
  expires_at: TIMESTAMP,
})
const PATH = '/v1/organizations/:org/invitations'

export function addInvitations(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Members', scope: INVITING, organizationScope: 'organization' } as const
  addManagementRoute<{
    params: 'org'
    body: { email: string; role: Tier; roles?: readonly { app?: string; role: string }[]; language?: string }
  }>(app, deps, {
    ...common,
    method: 'POST',
    path: PATH,
    operation: 'postInvitation',
    summary:
      'Invites an address into the organization, whether it has an account or not: a mail goes there, whose link is good for seven days, and once. Inviting an address again makes its former link void.',
    body: BODY,
    answer: INVITATION,
    creates: true,
    async handle({ params: { org }, body, context, atomically }) {
      const { email, role, language = 'en' } = body
      requireAddress(email)
      const roles = (body.roles ?? []).map((one) => ({ app: one.app ?? null, role: one.role }))
      const invited = await atomically([{ beside: DIRECTORY }, { beside: ENVIRONMENT }, org], async (at, caller) => {
        await requireGivable(at, caller, { organization: org, roles })
        const organizationName = await nameOf(at, org)
        return at.invitations.invite({ organization: org, organizationName, email, role, roles, language }, context)
      })
      // The mail is sent after the write, so that its link is found.
      invited.deliver()
      return { status: 'created', body: present(invited) }
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...common,
    method: 'GET',
    path: PATH,
    operation: 'listInvitations',
    summary: 'Invitations that nobody has accepted or declined yet, by id.',
    answer: INVITATION,
    list: true,
    handle: ({ at, params: { org }, query }) =>
      okPage(deps, query, {
        list: ['invitations', org],
        log: org,
        read: (range) => at.invitations.list(org, range),
        key: ({ id }) => id,
        shown: present,
      }),
  })
  addManagementRoute<{ params: 'org' | 'id' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: `${PATH}/:id`,
    operation: 'deleteInvitation',
    summary: 'Withdraws an invitation: its link is no longer good.',
    answer: null,
    locks: ({ org }) => [org],
    handle: async ({ at, params: { org, id }, context }) =>
      done(await at.invitations.withdraw(org, id, context), `there is no invitation ${id}`),
  })
}

async function nameOf({ store }: Pick<ManagementDeps, 'store'>, id: string): Promise<string> {
  const { rows } = await store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'organization', id }])
  const found = rows.map((row) => ('organization' in row ? row.organization : null)).find((one) => one !== null)
  if (found === undefined || found === null)
    throw new RequestProblem('organization_unknown', `there is no organization ${id}`)
  return found.name
}

const present = ({ id, email, role, roles, by, expiresAt }: Invitation) => ({
  id,
  email,
  role,
  roles,
  invited_by: by,
  expires_at: expiresAt,
})
