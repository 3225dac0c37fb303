/** Grants of a role (an app's or organization-wide) to a user, service or group, in one organization or in all. */
import type { FastifyInstance } from 'fastify'
import type { Lock } from '../../../../engine/store/journal-lock.ts'
import { definitionsOf, readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { grantOf, requireFitting, requireRole, requireSubjectForm } from '../../../../engine/writes/role-grants.ts'
import type { WriteContext } from '../../../../shared/domain/change.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId } from '../../../../shared/domain/journal.ts'
import { typeOf } from '../../../../shared/domain/names.ts'
import type { RoleGrant } from '../../../../shared/domain/role.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import type { ManagementClient } from '../../authentication/authenticate.ts'
import { beyondCaller } from '../../authentication/people.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { ID, object, PERMISSION_KEY, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addManagementRoute, done, found, type ManagementResponse, ok, okPage } from '../route.ts'
import { lacksPermissions } from './given-roles.ts'

type GrantBody = {
  readonly app?: string
  readonly role: string
  readonly subject: string
  readonly only_member?: string
}

const SUBJECT = {
  type: 'string',
  maxLength: 512,
  description: 'user:<id> or service:<id>; in an organization also group:<id>.',
}
const BODY = object(
  {
    app: { ...ID, description: 'Absent: an organization-wide role.' },
    role: PERMISSION_KEY,
    subject: SUBJECT,
    only_member: {
      type: 'string',
      maxLength: 1024,
      description: 'For a group: `conflict` if it has a relationship with anybody else, who would hold the role, too.',
    },
  },
  ['role', 'subject'],
)
const GRANT = whole({ id: ID, app: { ...ID, type: ['string', 'null'] }, role: PERMISSION_KEY, subject: SUBJECT })
const PLACES = [
  {
    base: '/v1/organizations/:org/role-grants',
    organizationScope: 'organization',
    suffix: '',
    where: 'in an organization, which rolls down to its descendants',
    journalOf: ({ org = '' }: { readonly org?: string }): JournalId => org,
  },
  {
    base: '/v1/role-grants',
    organizationScope: 'environment',
    suffix: 'Everywhere',
    where: 'in every organization',
    journalOf: (): JournalId => ENVIRONMENT,
  },
] as const

export function addRoleGrants(app: FastifyInstance, deps: ManagementDeps): void {
  for (const place of PLACES) addGrantsOf(app, deps, place)
}

function addGrantsOf(app: FastifyInstance, deps: ManagementDeps, place: (typeof PLACES)[number]): void {
  const { base, organizationScope, suffix, where, journalOf } = place
  const common = { tag: 'Roles', scope: 'roles:write', organizationScope } as const
  addManagementRoute<{ params: 'org'; body: GrantBody }>(app, deps, {
    ...common,
    method: 'POST',
    path: base,
    operation: `grantRole${suffix}`,
    summary: `Grants a role ${where}. If the same grant exists, nothing changes.`,
    body: BODY,
    answer: GRANT,
    // Locked so that the role cannot change and its holder cannot be deleted meanwhile.
    locks: (params, { subject }) => [holderOf(subject), { beside: ENVIRONMENT }, journalOf(params)],
    handle: ({ at, caller, params, body, context }) =>
      writeGrant(at, { caller, log: journalOf(params), body, context }),
  })
  addManagementRoute<{ params: 'org' | 'id' }>(app, deps, {
    ...common,
    method: 'DELETE',
    path: `${base}/:id`,
    operation: `revokeRole${suffix}`,
    summary: 'Removes a grant. The next decision sees it.',
    answer: null,
    locks: (params) => [journalOf(params)],
    async handle({ at, params, context }) {
      const log = journalOf(params)
      const [grant] = await at.store.roleGrants({ log, id: params.id }, { after: null, countMax: 1 })
      const change = grant && ({ kind: 'role_grant', op: 'delete', grant: present(grant) } as const)
      const isDone = change !== undefined && (await at.store.write(log, [change], { context })).changed
      return done(isDone, `there is no role grant ${params.id} here`)
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery & { subject?: string } }>(app, deps, {
    ...common,
    method: 'GET',
    path: base,
    operation: `listRoleGrants${suffix}`,
    summary: `Role grants ${where}, by id; optionally only those of a subject.`,
    query: { subject: { type: 'string', maxLength: 512 } },
    answer: GRANT,
    list: true,
    async handle({ params, query: { subject, ...query } }) {
      const log = journalOf(params)
      return okPage(deps, query, {
        list: ['role-grants', log, subject ?? null],
        log,
        read: ({ after, countMax }) =>
          deps.store.roleGrants(
            { log, ...(subject === undefined ? {} : { subject }) },
            { after: after === null ? null : { log, id: after }, countMax },
          ),
        key: ({ id }) => id,
        shown: present,
      })
    },
  })
}

function present({ id, app, role, subject }: RoleGrant): RoleGrant {
  return { id, app, role, subject }
}

/** How many relationships of a group are read: one with more has others. */
const READ_MAX = 1_000

/** The relationships of the group with others than this member, unexpired; null: it has more than are read. */
export async function othersIn(
  { store }: Pick<ManagementDeps, 'store'>,
  { log, group, member }: { readonly log: JournalId; readonly group: string; readonly member: string },
): Promise<readonly Tuple[] | null> {
  const found = await store.tuples(log, { object: group }, { after: null, countMax: READ_MAX })
  if (found.length === READ_MAX) return null
  const nowMs = Date.now()
  return found.filter(
    ({ relation, subject, expiresAtMs }) =>
      (relation !== 'member' || subject !== member) && (expiresAtMs === null || expiresAtMs > nowMs),
  )
}

const holderOf = (subject: string): Lock =>
  typeOf(subject) === 'user' ? { person: idOf(subject) } : { beside: DIRECTORY }
const idOf = (subject: string): string => subject.slice(subject.indexOf(':') + 1)

async function writeGrant(
  deps: ManagementDeps,
  of: { caller: ManagementClient; log: JournalId; body: GrantBody; context: WriteContext },
): Promise<ManagementResponse> {
  const { caller, log, body, context } = of
  const { app = null, role, subject, only_member: member } = body
  const declared = await readDeclared(deps.store)
  const definitions = definitionsOf(declared)
  requireSubjectForm(log, subject)
  await requireSubject(deps, subject)
  const permissions = requireRole(declared, { app, role })
  await requireHolding(deps, { caller, log, app, permissions })
  await requireFitting(deps, { log, subject, role: { app, role }, definitions })
  if (member !== undefined) await requireOnly(deps, { log, group: subject, member })
  const grant = grantOf({ app, role, subject })
  const { changed } = await deps.store.write(log, [{ kind: 'role_grant', op: 'write', grant }], { context })
  if (changed) return ok(grant)
  const [existing] = await deps.store.roleGrants({ log, apps: [app], role, subject }, { after: null, countMax: 1 })
  return ok(existing === undefined ? grant : present(existing))
}

/** Requires a single member, under the organization's lock, so that no one joins before the grant. Throws RequestProblem. */
async function requireOnly(deps: ManagementDeps, of: { log: JournalId; group: string; member: string }): Promise<void> {
  if (typeOf(of.group) !== 'group') throw new RequestProblem('request_invalid', 'only_member is for a group')
  const others = await othersIn(deps, of)
  if (others?.length !== 0)
    throw new RequestProblem('conflict', `${of.group} has others in it, who would hold the role`)
}

/** Throws RequestProblem for a subject that does not exist. A group always exists. */
async function requireSubject(deps: ManagementDeps, subject: string): Promise<void> {
  const [type, id] = [typeOf(subject), idOf(subject)]
  if (type === 'group') return
  found(type === 'user' ? await deps.directory.user(id) : await deps.directory.client(id), `there is no ${subject}`)
}

/**
 * Requires that the client holds the permissions that it gives. An unbound client may give all, except those of the built-in app: they are
 * management scopes for people, and it gives only its own.
 */
export async function requireHolding(
  deps: Pick<ManagementDeps, 'pdp'>,
  grant: { caller: ManagementClient; log: JournalId; app: string | null; permissions: readonly string[] },
): Promise<void> {
  const { caller, log, app, permissions } = grant
  const isBound = caller.organizationScope.length > 0
  const held = isBound ? await deps.pdp.held({ organization: log, subject: caller.token.subject, app }) : null
  const lacking =
    held === null ? beyondCaller(caller, permissions) : permissions.filter((key) => !held.permissions.includes(key))
  if (lacking.length === 0) return
  throw lacksPermissions(lacking)
}
