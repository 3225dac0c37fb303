/** SCIM 2.0 (RFC 7643, 7644): a company's directory keeps the users and groups of its organization here. */
import type { FastifyInstance } from 'fastify'
import { createPlaces } from '../authentication/admission.ts'
import { addDiscovery } from './discovery.ts'
import { createGroup, deleteGroup, GROUPS, patchGroup, replaceGroup } from './groups.ts'
import { list, show } from './listing.ts'
import { addScimRoute, type ScimDeps } from './route.ts'
import { search } from './search-request.ts'
import { createUser, deleteUser, patchUser, replaceUser, USERS } from './users.ts'

/** Of one client at once. Each may go through all resources of an organization. */
const SEARCHES_MAX = 4

export function addScim(app: FastifyInstance, deps: ScimDeps): void {
  addDiscovery(app, deps.issuer)
  const places = createPlaces(SEARCHES_MAX)
  const kinds = [
    { path: '/Users', listed: USERS, create: createUser, replace: replaceUser, patch: patchUser, remove: deleteUser },
    {
      path: '/Groups',
      listed: GROUPS,
      create: createGroup,
      replace: replaceGroup,
      patch: patchGroup,
      remove: deleteGroup,
    },
  ]
  for (const { path, listed, create, replace, patch, remove } of kinds) {
    addScimRoute(app, deps, { method: 'GET', path, handle: (call) => list(call, { ...listed, places }) })
    addScimRoute(app, deps, {
      method: 'POST',
      path: `${path}/.search`,
      reads: true,
      handle: (call) => search(call, { ...listed, places }),
    })
    addScimRoute(app, deps, { method: 'POST', path, handle: create })
    addScimRoute(app, deps, { method: 'GET', path: `${path}/:id`, handle: (call) => show(call, listed) })
    addScimRoute(app, deps, { method: 'PUT', path: `${path}/:id`, handle: replace })
    addScimRoute(app, deps, { method: 'PATCH', path: `${path}/:id`, handle: patch })
    addScimRoute(app, deps, { method: 'DELETE', path: `${path}/:id`, handle: remove })
  }
}
