/** Ends browser sessions and the tokens that depend on them. */
import type { FastifyInstance } from 'fastify'
import type { User } from '../../../engine/store/directory.ts'
import { DIRECTORY, ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { ID, whole } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { requireGivenByReturn } from './roles/given-roles.ts'
import { addManagementRoute, done, found, ok } from './route.ts'
import { requireAuthorityOverUser } from './users/user-authority.ts'

const TEXT_OR_NULL = { type: ['string', 'null'] }
const SESSION = whole({
  id: ID,
  signed_in_at: TEXT_OR_NULL,
  last_used_at: { ...TEXT_OR_NULL, description: 'When its browser last came to the identity service.' },
  browser: { ...TEXT_OR_NULL, description: 'Name and system of the browser then, as it calls itself.' },
  address: { ...TEXT_OR_NULL, description: 'The IPv4 address of the browser then, or the /64 of its IPv6 address.' },
  clients: { type: 'array', items: ID },
})
const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

const COMMON = { tag: 'Sessions', scope: 'sessions:revoke', organizationScope: 'environment' } as const

export function addSessions(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'session' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: '/v1/sessions/:session',
    operation: 'revokeSession',
    summary: 'Ends a browser session, and the tokens that depend on it.',
    answer: null,
    locks: () => [{ beside: DIRECTORY }],
    handle: async ({ at, params, context }) =>
      done(await at.sessions.revokeSession(params.session, context), 'there is no such session'),
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/users/:user/sessions',
    operation: 'listUserSessions',
    summary: 'Browser sessions of a person, the newest first, at most a hundred.',
    answer: whole({ items: { type: 'array', items: SESSION } }),
    async handle({ at, params: { user } }) {
      await accountOf(at, user)
      const found = await at.sessions.sessionsOf(user)
      const items = found.map(({ uid, signedInMs, usedMs, ...rest }) => ({
        id: uid,
        ...rest,
        signed_in_at: timeOf(signedInMs),
        last_used_at: timeOf(usedMs),
      }))
      return ok({ items })
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...COMMON,
    method: 'POST',
    // Fastify reads two colons as one colon of the path.
    path: '/v1/users/:user/sessions::revoke',
    operation: 'revokeUserSessions',
    summary: 'Ends all sessions and all tokens of a user, including offline tokens.',
    answer: whole({ sessions: { type: 'array', items: ID } }),
    locks: ({ user }) => [{ person: user }],
    async handle({ at, params, context }) {
      await accountOf(at, params.user)
      return ok({ sessions: await at.sessions.revokeUser(params.user, context) })
    },
  })
  addMemberSessions(app, deps)
  addBlocks(app, deps)
}

function addMemberSessions(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'user' }>(app, deps, {
    ...COMMON,
    organizationScope: 'organization',
    method: 'POST',
    path: '/v1/organizations/:org/members/:user/sessions::revoke',
    operation: 'revokeMemberSessions',
    summary:
      'Ends what a member opened by signing in: all sessions and tokens of a person who has nothing outside the organization and those below it. Of others, who may be signed in for another organization, the tokens for this one; `everywhere` is then false.',
    answer: whole({ everywhere: { type: 'boolean' } }),
    creates: false,
    locks: ({ org, user }) => [{ person: user }, { beside: ENVIRONMENT }, org],
    async handle({ at, params: { org, user }, context }) {
      const memberships = await at.directory.memberships(user)
      if (!memberships.some(({ organization }) => organization === org))
        throw new RequestProblem('not_found', `${user} is not a member of ${org}`)
      const everywhere = await at.directory.isOnlyIn(user, org)
      if (everywhere) await at.sessions.revokeUser(user, context)
      else
        for (const organization of await at.moves.below(org))
          await at.sessions.endMember({ organization, user }, context)
      return ok({ everywhere })
    },
  })
}

/** A directory's block of a person who leaves: no sign-in counts, but all that the person holds stays. */
function addBlocks(app: FastifyInstance, deps: ManagementDeps): void {
  const common = {
    tag: 'Users',
    scope: 'directory:write',
    organizationScope: 'environment',
    method: 'POST',
    answer: whole({ id: ID, blocked: { type: 'boolean' } }),
    creates: false,
    locks: ({ user }: { readonly user: string }) => [{ person: user }, { beside: ENVIRONMENT }] as const,
  } as const
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    path: '/v1/users/:user/block',
    operation: 'blockUser',
    summary:
      'Shuts a person out: sessions and tokens end at once, and no sign-in counts until `unblock`. Memberships, roles and relationships stay. A caller must hold the management scopes of the person.',
    async handle({ at, caller, params: { user: id }, context }) {
      const user = await accountOf(at, id)
      await requireAuthorityOverUser(at, caller, id)
      if ((await at.provisioning.isBlocked(id)) === false) {
        await at.directory.putUser(user, context, (sql) => at.sessions.endUser(sql, id, context))
        await at.provisioning.setBlocked(id, true)
      }
      return ok({ id, blocked: true })
    },
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    path: '/v1/users/:user/unblock',
    operation: 'unblockUser',
    summary:
      'Lets a person sign in again whom `block` or the directory of a company has shut out. The caller must be one that may give what the person would hold again.',
    async handle({ at, caller, params: { user: id }, context }) {
      const user = await accountOf(at, id)
      await requireAuthorityOverUser(at, caller, id)
      const blocked = (await at.provisioning.isBlocked(id)) === true
      await requireGivenByReturn(at, caller, { log: ENVIRONMENT, user: id, blocked, before: null, after: 'active' })
      if (blocked) {
        await at.directory.putUser(user, context)
        await at.provisioning.setBlocked(id, false)
      }
      return ok({ id, blocked: false })
    },
  })
}

async function accountOf({ directory }: ManagementDeps, id: string): Promise<User> {
  return found(await directory.user(id), `there is no user ${id}`)
}
