/** Lists the sidecars that are connected to this PDP, as each reports itself. */
import type { FastifyInstance } from 'fastify'
import { ID, whole } from '../http/schemas.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

const SIDECARS_MAX = 1_000
const COUNT = { type: 'integer' }
const SIDECAR = whole({
  name: { type: 'string' },
  resource: { type: 'string' },
  caller: { ...ID, description: 'As whom it authenticated.' },
  route_file: { type: 'string', description: 'A digest of the route file in force.' },
  connected_at: { type: 'string' },
  routes: COUNT,
  never_asked: { ...COUNT, description: 'Routes without a request since it connected.' },
  requests: COUNT,
  denied: COUNT,
  warnings: { type: 'array', items: { type: 'string' } },
})

export function addSidecars(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: never }>(app, deps, {
    method: 'GET',
    path: '/v1/sidecars',
    operation: 'listSidecars',
    tag: 'Decisions',
    // No organization scope: sidecars belong to services, not to organizations.
    scope: 'decisions:read',
    organizationScope: 'environment',
    summary: 'Sidecars that are connected to this PDP, the longest first; each PDP knows its own.',
    answer: whole({ items: { type: 'array', items: SIDECAR } }),
    handle: async () => ok({ items: (deps.sidecars?.all() ?? []).slice(0, SIDECARS_MAX).map(shown) }),
  })
}

function shown(sidecar: ReturnType<NonNullable<ManagementDeps['sidecars']>['all']>[number]): object {
  const { name, resource, caller, fileHash, connectedMs, routes, leftOut, warnings } = sidecar
  const sum = (of: 'requests' | 'denied'): number => routes.reduce((all, route) => all + route[of], 0)
  return {
    name,
    resource,
    caller,
    route_file: fileHash,
    warnings,
    connected_at: new Date(connectedMs).toISOString(),
    routes: routes.length + leftOut,
    never_asked: routes.filter(({ requests }) => requests === 0).length,
    requests: sum('requests'),
    denied: sum('denied'),
  }
}
