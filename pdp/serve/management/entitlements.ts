/** Capability gates of an organization, as a billing system pushes them in. */
import type { FastifyInstance } from 'fastify'
import { ENFORCEMENTS, type Enforcement, type Entitlement } from '../../domain/entitlement.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { EntitlementSource } from '../../store/contract.ts'
import { type PageQuery, readPage } from '../http/pagination.ts'
import { ENTITLEMENT_KEY, object, storageIssue } from '../http/schemas.ts'
import { RequestProblem } from '../problems/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, EMPTY, ok, put } from './route.ts'

type EntitlementBody = { readonly value: JsonObject | boolean; readonly enforcement?: Enforcement }
const ENFORCEMENT = { type: 'string', enum: ENFORCEMENTS }
const BODY = object(
  {
    value: { type: ['object', 'boolean'], description: 'A bare boolean is stored as {"enabled": …}.' },
    enforcement: {
      ...ENFORCEMENT,
      description: 'DecisionApi (the default): answered live. Claims: also embedded in tokens.',
    },
  },
  ['value'],
)
const ENTITLEMENT = object(
  { key: ENTITLEMENT_KEY, value: { type: 'object' }, enforcement: ENFORCEMENT, version: { type: 'integer' } },
  ['key', 'value', 'enforcement', 'version'],
)

const PATH = '/v1/organizations/:org/entitlements/:key'
const COMMON = { tag: 'Entitlements', scope: 'entitlements:write', organizationScope: 'organization' } as const

export function addEntitlements(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'key'; body: EntitlementBody }>(app, deps, {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putEntitlement',
    summary: 'Grants a gate or changes it; visible on the next decision.',
    body: BODY,
    answer: ENTITLEMENT,
    locks: ({ org }) => [org],
    async prepare({ at }) {
      requireOwn(at.entitlements)
    },
    state: ({ at, params }) => gateOf(at, params),
    async handle({ at, params, body, context }) {
      const issue = storageIssue(body.value)
      if (issue !== null) {
        throw new RequestProblem('request_invalid', `value ${issue}`, {
          issues: [{ place: '/value', message: issue }],
        })
      }
      const entitlement: Entitlement = {
        value: typeof body.value === 'boolean' ? { enabled: body.value } : body.value,
        enforcement: body.enforcement ?? 'DecisionApi',
      }
      const before = await at.store.entitlements(params.org, [params.key])
      const change = { kind: 'entitlement', key: params.key, entitlement } as const
      const { position } = await at.store.write(params.org, [change], { context })
      const version = position.entitlementVersion
      return put(before.values.has(params.key), { key: params.key, ...entitlement, version })
    },
  })
  addManagementRoute<{ params: 'org' | 'key' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteEntitlement',
    summary: 'Takes a gate away; visible on the next decision.',
    answer: null,
    locks: ({ org }) => [org],
    async prepare({ at }) {
      requireOwn(at.entitlements)
    },
    state: ({ at, params }) => gateOf(at, params),
    async handle({ at, params, context }) {
      const change = { kind: 'entitlement', key: params.key, entitlement: null } as const
      const { changed } = await at.store.write(params.org, [change], { context })
      if (!changed) throw new RequestProblem('not_found', `${params.org} has no entitlement ${params.key}`)
      return EMPTY
    },
  })
  addManagementRoute<{ params: 'org' }>(app, deps, {
    ...COMMON,
    method: 'POST',
    path: '/v1/organizations/:org/entitlements::changed',
    operation: 'announceEntitlements',
    summary: 'Says that an external source has other values now: a new version, and nothing cached of the old one.',
    answer: object({ version: { type: 'integer' } }, ['version']),
    locks: ({ org }) => [org],
    async handle({ at, params, context }) {
      const { position } = await at.store.write(params.org, [{ kind: 'entitlements' }], { context })
      return ok({ version: position.entitlementVersion })
    },
  })
  addEntitlementReads(app, deps)
}

/** As it is stored, or as the external source that owns it says. */
async function entitlementOf(
  { store, entitlements }: ManagementDeps,
  { org, key }: { readonly org: string; readonly key: string },
): Promise<object | null> {
  const owned = entitlements.name === 'store' ? store.entitlements(org, [key]) : entitlements.read(org, [key])
  const { version, values } = await owned
  const entitlement = values.get(key)
  return entitlement === undefined ? null : { key, ...entitlement, version }
}

/** The version is the organization's: what is written beside a gate does not make it another one. */
async function gateOf(
  at: ManagementDeps,
  params: { readonly org: string; readonly key: string },
): Promise<object | null> {
  const entitlement = await entitlementOf(at, params)
  return entitlement === null ? null : { ...entitlement, version: null }
}

/** What nobody would ever read is not written. */
function requireOwn({ name }: EntitlementSource): void {
  if (name !== 'store') throw new RequestProblem('conflict', 'an external source owns the entitlements')
}

function addEntitlementReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org' | 'key' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getEntitlement',
    summary: 'One gate with the version of the organization at which it was read.',
    answer: ENTITLEMENT,
    state: ({ at, params }) => gateOf(at, params),
    async handle({ at, params }) {
      const entitlement = await entitlementOf(at, params)
      if (entitlement === null) throw new RequestProblem('not_found', `${params.org} has no entitlement ${params.key}`)
      return ok(entitlement)
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/organizations/:org/entitlements',
    operation: 'listEntitlements',
    summary: 'Gates by key.',
    answer: ENTITLEMENT,
    list: true,
    handle: async ({ params, query }) =>
      ok(
        await readPage(deps.store, query, {
          log: params.org,
          async read({ after, countMax }) {
            const { version, values } = await deps.entitlements.read(params.org, 'all')
            return [...values]
              .filter(([key]) => after === null || key > after)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .slice(0, countMax)
              .map(([key, entitlement]) => ({ key, ...entitlement, version }))
          },
          key: ({ key }) => key,
        }),
      ),
  })
}
