/** Organization-wide roles: named sets of permission keys that belong to no app. */
import type { FastifyInstance } from 'fastify'
import {
  type Declared,
  definitionsOf,
  readDeclared,
  sizeIssue,
  tokenIssue,
} from '../../../../engine/writes/role-definitions.ts'
import { isManagementKey, MANAGEMENT_APP } from '../../../../identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import type { OrganizationRole } from '../../../../shared/domain/role.ts'
import { type PageQuery, sortedPage } from '../../http/pagination.ts'
import { LABEL, PERMISSION_KEY, PERMISSION_KEYS, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, okPage, put } from '../route.ts'

const PARTS = { name: LABEL, permissions: PERMISSION_KEYS }
const ROLE = whole({ key: PERMISSION_KEY, ...PARTS })
const PATH = '/v1/roles/:key'
const COMMON = { tag: 'Roles', scope: 'roles:write', organizationScope: 'environment' } as const

export function addRoles(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{ params: 'key'; body: Omit<OrganizationRole, 'key'>; stored: OrganizationRole }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putRole',
    summary: 'Declares an organization-wide role, or changes its permissions.',
    body: whole(PARTS),
    answer: ROLE,
    locks: () => [ENVIRONMENT],
    lengthy: true,
    state: ({ at, params }) => roleOf(at, params.key),
    async handle({ at, params, body, context }) {
      const role = { key: params.key, name: body.name, permissions: body.permissions }
      requireNoManagement(role)
      const declared = await readDeclared(at.store)
      await requireFitting(at, declared, role)
      await at.store.write(ENVIRONMENT, [{ kind: 'role', key: role.key, role }], { context })
      return put(
        declared.roles.some(({ key }) => key === role.key),
        role,
      )
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes the name or the permissions of an organization-wide role.' })
  addManagementRoute<{ params: 'key' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteRole',
    summary: 'Deletes a role that has no grants.',
    answer: null,
    locks: () => [ENVIRONMENT],
    lengthy: true,
    state: ({ at, params }) => roleOf(at, params.key),
    async handle({ at, params, context }) {
      const [grant] = await at.store.roleGrants({ apps: [null], role: params.key }, { after: null, countMax: 1 })
      if (grant !== undefined) {
        const where = grant.log === ENVIRONMENT ? 'environment-wide' : `in organization ${grant.log}`
        throw new RequestProblem(
          'conflict',
          `role ${params.key} is still granted, such as to ${grant.subject} ${where}`,
        )
      }
      const change = { kind: 'role', key: params.key, role: null } as const
      const { changed } = await at.store.write(ENVIRONMENT, [change], { context })
      return done(changed, missing(params.key))
    },
  })
  addReads(app, deps)
}

/** Refuses management scopes: only the built-in app gives these to people. Throws RequestProblem. */
function requireNoManagement({ permissions }: OrganizationRole): void {
  const [key] = permissions.filter(isManagementKey)
  if (key === undefined) return
  const message = `${key} belongs to app ${MANAGEMENT_APP}: grant a role of that app`
  throw new RequestProblem('request_invalid', message, { issues: [{ place: '/permissions', message }] })
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'key'; stored: OrganizationRole }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getRole',
    summary: 'One organization-wide role.',
    answer: ROLE,
    state: ({ at, params }) => roleOf(at, params.key),
    handle: async ({ params, stored }) => ok(found(stored, missing(params.key))),
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/roles',
    operation: 'listRoles',
    summary: 'Organization-wide roles by key.',
    answer: ROLE,
    list: true,
    handle: ({ query }) =>
      okPage(deps, query, {
        list: ['roles'],
        log: ENVIRONMENT,
        read: async (page) => sortedPage((await readDeclared(deps.store)).roles, ({ key }) => key, page),
        key: ({ key }) => key,
      }),
  })
}

async function roleOf({ store }: ManagementDeps, key: string): Promise<OrganizationRole | null> {
  return (await readDeclared(store)).roles.find((role) => role.key === key) ?? null
}

const missing = (key: string): string => `there is no organization-wide role ${key}`

/** Checks the size of tokens, which carry the role for every app. Throws RequestProblem. */
async function requireFitting(deps: ManagementDeps, declared: Declared, role: OrganizationRole): Promise<void> {
  const wanted = { ...declared, roles: [...declared.roles.filter(({ key }) => key !== role.key), role] }
  const definitions = definitionsOf(wanted)
  const tooLarge = sizeIssue([{ app: null, role: role.key }], definitions)
  if (tooLarge !== null) {
    const issues = [{ place: '/permissions', message: tooLarge }]
    throw new RequestProblem('request_invalid', 'nothing was written', { issues })
  }
  const message = await tokenIssue(deps.store, { before: declared, after: wanted })
  if (message === null) return
  throw new RequestProblem('conflict', 'nothing was written', { issues: [{ place: '/permissions', message }] })
}
