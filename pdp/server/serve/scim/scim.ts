/** SCIM 2.0 (RFC 7643, 7644): a company's directory keeps the users and groups of its organization here. */
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { createPlaces } from '../authentication/admission.ts'
import type { ManagementDeps } from '../management/deps.ts'
import { addDiscovery } from './discovery.ts'
import { ScimError } from './errors.ts'
import { createGroup, deleteGroup, GROUPS, patchGroup, replaceGroup } from './groups.ts'
import { list, show } from './listing.ts'
import { addScimRoute, type ScimCall } from './route.ts'
import { createUser, deactivateAlone, deleteUser, patchUser, replaceUser, USERS } from './users.ts'

/** How many searches a client may run at once; each may read all resources of an organization. */
const SEARCHES_MAX = 4

export function addScim(app: FastifyInstance, deps: ManagementDeps): void {
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
    const first = listed === USERS ? { deactivate: deactivateAlone } : {}
    addScimRoute(app, deps, { method: 'GET', path, handle: (call) => list(call, { ...listed, places }) })
    addScimRoute(app, deps, {
      method: 'POST',
      path: `${path}/.search`,
      reads: true,
      handle: async (call) => list({ ...call, query: queryIn(call.body) }, { ...listed, places }),
    })
    addScimRoute(app, deps, { method: 'POST', path, handle: create })
    addScimRoute(app, deps, { method: 'GET', path: `${path}/:id`, handle: (call) => show(call, listed) })
    addScimRoute(app, deps, { method: 'PUT', path: `${path}/:id`, handle: replace, ...first })
    addScimRoute(app, deps, { method: 'PATCH', path: `${path}/:id`, handle: patch, ...first })
    addScimRoute(app, deps, { method: 'DELETE', path: `${path}/:id`, deletes: true, handle: remove })
  }
}

/** Parameters that a search has in its body (RFC 7644 section 3.4.3): a filter may name a person, and URLs are logged. */
const PARAMETERS: ReadonlySet<string> = new Set(['attributes', 'excludedattributes', 'filter', 'startindex', 'count'])

/** The body's parameters in the form of a list's query. */
function queryIn(body: JsonValue | undefined): ScimCall['query'] {
  if (!isJsonObject(body)) throw new ScimError('invalidSyntax', 'the body is not a JSON object')
  const query: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(body)) {
    const known = name.toLowerCase()
    if (!PARAMETERS.has(known) || value === null) continue
    if (query[known] !== undefined) throw new ScimError('invalidValue', `${name} is given more than once`)
    query[known] = textOf(name, value)
  }
  return query
}

function textOf(name: string, value: JsonValue): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  const texts = Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
  if (Array.isArray(value) && texts.length === value.length) return texts.join(',')
  throw new ScimError('invalidValue', `${name} is neither a text, nor a number, nor a list of texts`)
}
