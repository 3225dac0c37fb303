/** Shows all that a person holds, and ends it when the person leaves. */
import type { FastifyInstance } from 'fastify'
import type { Change } from '../../../../shared/domain/change.ts'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../../../shared/domain/journal.ts'
import { MEMBERSHIP_STATUSES, TIERS } from '../../../../shared/domain/membership.ts'
import { lacksScopes } from '../../authentication/authenticate.ts'
import { ID, whole } from '../../http/schemas.ts'
import type { ManagementDeps } from '../deps.ts'
import { addManagementRoute, found, ok } from '../route.ts'
import { requireAuthorityOverUser } from './user-authority.ts'

/** How many holdings of one kind a call shows or removes. ORGANIZATIONS_TOGETHER: how many organizations it locks at once. */
const HELD_MAX = 1_000
const ORGANIZATIONS_TOGETHER = 50
const WRITES = ['roles:write', 'relationships:write'] as const

const WHERE = { ...ID, type: ['string', 'null'], description: 'Null: in every organization.' }
const HOLDINGS = whole({
  id: ID,
  blocked: { type: 'boolean' },
  memberships: {
    type: 'array',
    items: whole({
      organization: ID,
      role: { type: 'string', enum: TIERS },
      status: { type: 'string', enum: MEMBERSHIP_STATUSES },
    }),
  },
  roles: {
    type: 'array',
    items: whole({ organization: WHERE, app: { ...ID, type: ['string', 'null'] }, role: { type: 'string' } }),
  },
  relationships: {
    type: 'array',
    items: whole({ organization: ID, tuple: { type: 'string' } }),
  },
  complete: { type: 'boolean', description: `False: there are more than ${HELD_MAX} of a kind.` },
})

type Holdings = Awaited<ReturnType<typeof holdingsOf>>

export function addOffboarding(app: FastifyInstance, deps: ManagementDeps): void {
  const common = { tag: 'Users', scope: 'directory:write', organizationScope: 'environment' } as const
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    method: 'GET',
    path: '/v1/users/:user/holdings',
    operation: 'getUserHoldings',
    summary: 'Everything that a person holds: memberships, roles and relationships in every organization.',
    answer: HOLDINGS,
    handle: async ({ at, params }) => ok(present(params.user, await holdingsOf(at, params.user))),
  })
  addManagementRoute<{ params: 'user' }>(app, deps, {
    ...common,
    method: 'POST',
    path: '/v1/users/:user/offboard',
    operation: 'offboardUser',
    summary:
      'Shuts a person out, and takes away every membership, role and relationship. Each organization has one entry in its log of changes. Answers with what was taken away; while `complete` is false, send it again. The caller needs roles:write and relationships:write too, and the management scopes of the person.',
    answer: HOLDINGS,
    creates: false,
    async handle({ at, params: { user: id }, context, caller, atomically }) {
      const lacking = WRITES.filter((scope) => !caller.token.scopes.has(scope))
      if (lacking.length > 0) throw lacksScopes(`offboarding needs ${lacking.join(' and ')}`, lacking)
      await holdingsOf(at, id)
      // Sign-ins and tokens end first, so that they are useless while the rest takes its time.
      await atomically([DIRECTORY, ENVIRONMENT, TOKENS], async (now, again) => {
        await requireAuthorityOverUser(now, again, id)
        const user = await now.directory.user(id)
        if (user === null || (await now.provisioning.isBlocked(id)) === true) return
        await now.directory.putUser(user, context, (sql) => now.sessions.endUser(sql, id, context))
        await now.provisioning.setBlocked(id, true)
      })
      const places = placesIn(await holdingsOf(at, id))
      const chosen = places.slice(0, ORGANIZATIONS_TOGETHER)
      const taken = await atomically([...new Set([DIRECTORY, ENVIRONMENT, TOKENS, ...chosen])], async (now, again) => {
        await requireAuthorityOverUser(now, again, id)
        const held = await holdingsOf(now, id)
        for (const log of chosen) await takeAway(now, { log, id, held, context })
        return within(held, chosen)
      })
      return ok(present(id, { ...taken, complete: taken.complete && chosen.length === places.length }))
    },
  })
}

/** The holdings of a person. Throws RequestProblem `not_found`. */
async function holdingsOf({ directory, provisioning, store }: ManagementDeps, id: string) {
  const blocked = found(await provisioning.isBlocked(id), `there is no user ${id}`)
  const subject = `user:${id}`
  const [memberships, roles, relationships] = [
    await directory.memberships(id),
    await store.roleGrants({ subject }, { after: null, countMax: HELD_MAX + 1 }),
    await provisioning.relationships(id, HELD_MAX + 1),
  ]
  const all = [memberships, roles, relationships]
  return { blocked, memberships, roles, relationships, complete: all.every(({ length }) => length <= HELD_MAX) }
}

/** The logs to write, the environment's first. */
function placesIn({ memberships, roles, relationships }: Holdings): readonly string[] {
  const organizations = [...memberships, ...relationships].map(({ organization }) => organization)
  return [...new Set([...roles.map(({ log }) => log), ...organizations])].sort(
    (one, other) => Number(other === ENVIRONMENT) - Number(one === ENVIRONMENT),
  )
}

function within({ memberships, roles, relationships, ...rest }: Holdings, logs: readonly string[]): Holdings {
  return {
    ...rest,
    memberships: memberships.filter(({ organization }) => logs.includes(organization)),
    roles: roles.filter(({ log }) => logs.includes(log)),
    relationships: relationships.filter(({ organization }) => logs.includes(organization)),
  }
}

async function takeAway(
  { store, sessions }: ManagementDeps,
  of: {
    readonly log: string
    readonly id: string
    readonly held: Holdings
    readonly context: Parameters<ManagementDeps['store']['write']>[2]['context']
  },
): Promise<void> {
  const { log, id, held, context } = of
  const { memberships, roles, relationships } = within(held, [log])
  const rest: readonly Change[] = [
    ...roles.map(
      ({ id: grant, app, role, subject }): Change => ({
        kind: 'role_grant',
        op: 'delete',
        grant: { id: grant, app, role, subject },
      }),
    ),
    ...relationships.map(({ organization: _, ...tuple }): Change => ({ kind: 'tuple', op: 'delete', tuple })),
  ]
  const [membership] = memberships
  const leaving: readonly Change[] =
    membership === undefined ? [] : [{ kind: 'membership', user: id, membership: null }]
  // A membership that withholds other holdings ends last, so that they do not count meanwhile.
  const parts = membership?.status === 'active' ? [[...rest, ...leaving]] : [rest, leaving]
  for (const changes of parts) if (changes.length > 0) await store.write(log, changes, { context })
  if (membership !== undefined) await sessions.endMember({ organization: log, user: id }, context)
}

/** The holdings in the form of the API's answer. */
export type UserHoldings = ReturnType<typeof present>

function present(id: string, { blocked, memberships, roles, relationships, complete }: Holdings) {
  return {
    id,
    blocked,
    memberships: memberships
      .slice(0, HELD_MAX)
      .map(({ organization, role, status }) => ({ organization, role, status })),
    roles: roles
      .slice(0, HELD_MAX)
      .map(({ log, app, role }) => ({ organization: log === ENVIRONMENT ? null : log, app, role })),
    relationships: relationships.slice(0, HELD_MAX).map(({ organization, object, relation, subject }) => ({
      organization,
      tuple: `${object}#${relation}@${subject}`,
    })),
    complete,
  }
}
