/** Entitlements of an organization, written by a billing system. */
import type { FastifyInstance } from 'fastify'
import type { EntitlementSource } from '../../../../engine/store/contract.ts'
import { entitlementSizeIssue } from '../../../../engine/writes/entitlement-sizes.ts'
import { ENFORCEMENTS, type Enforcement, type Entitlement } from '../../../../shared/domain/entitlement.ts'
import { type JsonObject, storageIssue } from '../../../../shared/domain/json.ts'
import { type PageQuery, sortedPage } from '../../http/pagination.ts'
import { ENTITLEMENT_KEY, object, whole } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, okPage, put } from '../route.ts'

const ENFORCEMENT = { type: 'string', enum: ENFORCEMENTS }
const BODY = object(
  {
    value: { type: ['object', 'boolean'], description: 'A boolean is stored as {"enabled": …}.' },
    enforcement: {
      ...ENFORCEMENT,
      description: 'DecisionApi (the default): only in answers of the PDP. Claims: also embedded in tokens.',
    },
  },
  ['value'],
)
const ENTITLEMENT = whole({
  key: ENTITLEMENT_KEY,
  value: { type: 'object' },
  enforcement: ENFORCEMENT,
  version: { type: 'integer' },
})

const PATH = '/v1/organizations/:org/entitlements/:key'
const COMMON = { tag: 'Entitlements', scope: 'entitlements:write', organizationScope: 'organization' } as const

export function addEntitlements(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{
    params: 'org' | 'key'
    body: { value: JsonObject | boolean; enforcement?: Enforcement }
    stored: object
  }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putEntitlement',
    summary: 'Grants or changes an entitlement. The next decision sees it.',
    body: BODY,
    answer: ENTITLEMENT,
    locks: ({ org }) => [org],
    async prepare({ at }) {
      requireOwn(at.entitlements)
    },
    state: ({ at, params }) => gateOf(at, params),
    async handle({ at, params, body, context }) {
      const value = typeof body.value === 'boolean' ? { enabled: body.value } : body.value
      const issue =
        storageIssue(value) ?? (await entitlementSizeIssue(at.store, params.org, { key: params.key, value }))
      if (issue !== null) {
        throw new RequestProblem('request_invalid', `value ${issue}`, {
          issues: [{ place: '/value', message: issue }],
        })
      }
      const entitlement: Entitlement = { value, enforcement: body.enforcement ?? 'DecisionApi' }
      const before = await at.store.entitlements(params.org, [params.key])
      const change = { kind: 'entitlement', key: params.key, entitlement } as const
      const { position } = await at.store.write(params.org, [change], { context })
      const version = position.entitlementVersion
      return put(before.values.has(params.key), { key: params.key, ...entitlement, version })
    },
  }
  addPutAndPatch(app, deps, route, { summary: 'Changes the value or the enforcement of an entitlement.' })
  addManagementRoute<{ params: 'org' | 'key' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteEntitlement',
    summary: 'Removes an entitlement. The next decision sees it.',
    answer: null,
    locks: ({ org }) => [org],
    async prepare({ at }) {
      requireOwn(at.entitlements)
    },
    state: ({ at, params }) => gateOf(at, params),
    async handle({ at, params, context }) {
      const change = { kind: 'entitlement', key: params.key, entitlement: null } as const
      const { changed } = await at.store.write(params.org, [change], { context })
      return done(changed, `${params.org} has no entitlement ${params.key}`)
    },
  })
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...COMMON,
    method: 'POST',
    path: '/v1/organizations/:org/entitlements::changed',
    operation: 'announceEntitlements',
    summary:
      'Tells the PDP that the values of an external source have changed. Starts a new version, so that no cached value is used.',
    answer: whole({ version: { type: 'integer' } }),
    locks: ({ org }) => [org],
    async handle({ at, params, context }) {
      const { position } = await at.store.write(params.org, [{ kind: 'entitlements' }], { context })
      return ok({ version: position.entitlementVersion })
    },
  })
  addEntitlementReads(app, deps)
}

/** The entitlement: stored, or from the external source that owns it. */
async function entitlementOf(
  { store, entitlements }: ManagementDeps,
  { org, key }: { readonly org: string; readonly key: string },
): Promise<object | null> {
  const owned = entitlements.name === 'store' ? store.entitlements(org, [key]) : entitlements.read(org, [key])
  const { version, values } = await owned
  const entitlement = values.get(key)
  return entitlement === undefined ? null : { key, ...entitlement, version }
}

/** The entitlement for its entity tag, without the version: that one changes when any entitlement of the organization is written. */
async function gateOf(
  at: ManagementDeps,
  params: { readonly org: string; readonly key: string },
): Promise<object | null> {
  const entitlement = await entitlementOf(at, params)
  return entitlement === null ? null : { ...entitlement, version: null }
}

/** Refuses a write if an external source owns the entitlements: it would never be read. Throws RequestProblem `conflict`. */
function requireOwn({ name }: EntitlementSource): void {
  if (name !== 'store') throw new RequestProblem('conflict', 'an external source owns the entitlements')
}

function addEntitlementReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'key' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getEntitlement',
    summary: 'One entitlement, with the version of the organization at which it was read.',
    answer: ENTITLEMENT,
    state: ({ at, params }) => gateOf(at, params),
    handle: async ({ at, params }) =>
      ok(found(await entitlementOf(at, params), `${params.org} has no entitlement ${params.key}`)),
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/organizations/:org/entitlements',
    operation: 'listEntitlements',
    summary: 'Entitlements by key.',
    answer: ENTITLEMENT,
    list: true,
    handle: ({ params, query }) =>
      okPage(deps, query, {
        list: ['entitlements', params.org],
        log: params.org,
        async read(page) {
          const { version, values } = await deps.entitlements.read(params.org, 'all')
          const all = [...values].map(([key, entitlement]) => ({ key, ...entitlement, version }))
          return sortedPage(all, ({ key }) => key, page)
        },
        key: ({ key }) => key,
      }),
  })
}
