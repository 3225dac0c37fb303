/** Relationship tuples of an organization: written atomically, listed by object, relation or subject. */
import type { FastifyInstance } from 'fastify'
import {
  CHANGES_MAX,
  formatKey,
  PRECONDITIONS_MAX,
  parseRelationships,
  type RelationshipsWrite,
  relocate,
} from '../../../../engine/writes/relationships.ts'
import { createRestrictions } from '../../../../engine/writes/restrictions.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import { type PageQuery, refuseParameter } from '../../http/pagination.ts'
import { object, whole } from '../../http/schemas.ts'
import type { ManagementDeps } from '../deps.ts'
import { requireGivenToGroups } from '../roles/given-roles.ts'
import { addManagementRoute, ok, okPage } from '../route.ts'
import {
  CONDITION,
  EXPIRY,
  PARTS,
  PARTS_REQUIRED,
  parseFilter,
  presentTuple,
  TUPLE,
  type TupleFilter,
} from './tuple-bodies.ts'

const BODY = object({
  write: { type: 'array', maxItems: CHANGES_MAX, items: TUPLE },
  delete: { type: 'array', maxItems: CHANGES_MAX, items: TUPLE },
  if: {
    type: 'array',
    maxItems: PRECONDITIONS_MAX,
    description: 'The write happens only if each of these tuples exists, or does not exist.',
    items: whole({ tuple: TUPLE, exists: { type: 'boolean' } }),
  },
})

const APPLIED_COUNT = {
  type: 'integer',
  description:
    'How many tuples this call has written or deleted. Those that were stored, or absent, already do not count.',
}

export function addRelationships(app: FastifyInstance, deps: ManagementDeps): void {
  const path = '/v1/organizations/:org/relationships'
  const common = { tag: 'Relationships', organizationScope: 'organization' } as const
  const restriction = createRestrictions()
  addManagementRoute<{ params: 'org'; body: RelationshipsWrite }>(app, deps, {
    ...common,
    method: 'POST',
    path,
    operation: 'writeRelationships',
    summary:
      'Writes and deletes tuples, all or none. Writing an existing tuple and deleting a missing one change nothing.',
    scope: 'relationships:write',
    body: BODY,
    answer: whole({ revision: { type: 'integer' }, applied_count: APPLIED_COUNT }),
    locks: ({ org }) => [org],
    async handle({ at, caller, params, body, context }) {
      const { changes, places, preconditions } = parseRelationships(body, await restriction(at.store))
      const tuples = changes.flatMap(({ op, tuple }) => (op === 'write' ? [tuple] : []))
      await requireGivenToGroups(at, caller, { log: params.org, tuples })
      try {
        const { position, appliedCount } = await at.store.write(params.org, changes, { context, preconditions })
        return ok({ revision: position.revision, applied_count: appliedCount })
      } catch (err) {
        throw relocate(err, places)
      }
    },
  })
  addManagementRoute<{ params: 'org'; query: PageQuery & TupleFilter }>(app, deps, {
    ...common,
    method: 'GET',
    path,
    operation: 'listRelationships',
    summary: 'Tuples by object, relation and subject; optionally only matching ones.',
    scope: 'relationships:read',
    query: PARTS,
    answer: object({ ...PARTS, expires_at: EXPIRY, condition: CONDITION }, [...PARTS_REQUIRED, 'expires_at']),
    list: true,
    async handle({ params, query }) {
      const filter = parseFilter(query)
      const { object: on = null, relation = null, subject = null } = query
      return okPage(deps, query, {
        list: ['relationships', params.org, on, relation, subject],
        log: params.org,
        read: ({ after, countMax }) =>
          deps.store.tuples(params.org, filter, { after: after === null ? null : parseKey(after), countMax }),
        key: formatKey,
        shown: presentTuple,
      })
    },
  })
}

function parseKey(text: string): Tuple {
  try {
    const [object, relation, subject]: readonly unknown[] = JSON.parse(text)
    if (typeof object === 'string' && typeof relation === 'string' && typeof subject === 'string') {
      return { object, relation, subject, expiresAtMs: null }
    }
  } catch {
    // The function below refuses it.
  }
  throw refuseParameter('page_token', 'is not a page token of this list')
}
