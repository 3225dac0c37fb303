/** Relationship tuples of an organization: written atomically, listed by object, relation or subject. */
import type { FastifyInstance } from 'fastify'
import type { Change, Precondition } from '../../../domain/change.ts'
import { PdpError, type ValidationIssue } from '../../../domain/errors.ts'
import type { Tuple } from '../../../domain/tuple.ts'
import { type PageQuery, readPage, refuseParameter } from '../../http/pagination.ts'
import { object, pointer } from '../../http/schemas.ts'
import { RequestProblem } from '../../problems/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { requireGivenToGroups } from '../given-roles.ts'
import { createRestrictions, type Restriction } from '../model-restrictions.ts'
import { addManagementRoute, ok } from '../route.ts'
import {
  CONDITION,
  EXPIRY,
  PARTS,
  PARTS_REQUIRED,
  parseFilter,
  parseTupleBody,
  presentTuple,
  TUPLE,
  type TupleBody,
  type TupleFilter,
} from './tuple-bodies.ts'

const CHANGES_MAX = 1_000
const PRECONDITIONS_MAX = 100

type RelationshipsBody = {
  readonly write?: readonly TupleBody[]
  readonly delete?: readonly TupleBody[]
  readonly if?: readonly { readonly tuple: TupleBody; readonly exists: boolean }[]
}

const BODY = object({
  write: { type: 'array', maxItems: CHANGES_MAX, items: TUPLE },
  delete: { type: 'array', maxItems: CHANGES_MAX, items: TUPLE },
  if: {
    type: 'array',
    maxItems: PRECONDITIONS_MAX,
    description: 'The write happens only if each of these tuples exists, or does not exist.',
    items: object({ tuple: TUPLE, exists: { type: 'boolean' } }, ['tuple', 'exists']),
  },
})

export function addRelationships(app: FastifyInstance, deps: ManagementDeps): void {
  const path = '/v1/organizations/:org/relationships'
  const common = { tag: 'Relationships', organizationScope: 'organization' } as const
  const restriction = createRestrictions()
  addManagementRoute<{ params: 'org'; body: RelationshipsBody }>(app, deps, {
    ...common,
    method: 'POST',
    path,
    operation: 'writeRelationships',
    summary:
      'Writes and deletes tuples, all or none. Writing an existing tuple and deleting a missing one change nothing.',
    scope: 'relationships:write',
    body: BODY,
    answer: object({ revision: { type: 'integer' } }, ['revision']),
    locks: ({ org }) => [org],
    async handle({ at, caller, params, body, context }) {
      const { changes, places, preconditions } = parseBody(body, await restriction(at.store))
      const tuples = changes.flatMap(({ op, tuple }) => (op === 'write' ? [tuple] : []))
      await requireGivenToGroups(at, caller, { log: params.org, tuples })
      try {
        const { position } = await at.store.write(params.org, changes, { context, preconditions })
        return ok({ revision: position.revision })
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
      const found = await readPage(deps.store, query, {
        list: ['relationships', params.org, on, relation, subject],
        log: params.org,
        read: ({ after, countMax }) =>
          deps.store.tuples(params.org, filter, { after: after === null ? null : parseKey(after), countMax }),
        key: formatKey,
      })
      return ok({ ...found, items: found.items.map(presentTuple) })
    },
  })
}

type TupleChange = Extract<Change, { kind: 'tuple' }>
type Parsed = { changes: readonly TupleChange[]; places: readonly string[]; preconditions: readonly Precondition[] }

/** Throws RequestProblem `request_invalid` with every issue and its place. A tuple that can never count can still be deleted. */
function parseBody(body: RelationshipsBody, restriction: Restriction): Parsed {
  const issues: ValidationIssue[] = []
  const seen = new Set<string>()
  const read = (tuple: TupleBody, place: string): Tuple => {
    const parsed = parseTupleBody(tuple)
    if (typeof parsed !== 'string') return parsed
    issues.push({ place, message: parsed })
    return { object: '', relation: '', subject: '', expiresAtMs: null }
  }
  const changes: TupleChange[] = []
  const places: string[] = []
  for (const op of ['write', 'delete'] as const) {
    for (const [i, item] of (body[op] ?? []).entries()) {
      const place = pointer('', op, i)
      const tuple = read(item, place)
      const key = formatKey(tuple)
      if (tuple.object === '') continue
      const restricted = op === 'write' ? restriction(tuple) : null
      if (restricted !== null) issues.push({ place, message: restricted })
      if (seen.has(key)) issues.push({ place, message: 'repeats a tuple of this request' })
      seen.add(key)
      changes.push({ kind: 'tuple', op, tuple })
      places.push(place)
    }
  }
  const preconditions = (body.if ?? []).map(({ tuple, exists }, i) => ({
    tuple: read(tuple, pointer('', 'if', i, 'tuple')),
    exists,
  }))
  if (changes.length === 0) issues.push({ place: '', message: 'has no tuples to write or delete' })
  if (changes.length > CHANGES_MAX)
    issues.push({ place: '', message: `has more than ${CHANGES_MAX} tuples to write and delete` })
  if (issues.length > 0) throw new RequestProblem('request_invalid', 'nothing was written', { issues })
  return { changes, places, preconditions }
}

/** The store reports a change by its index; the caller needs its place in the body. */
function relocate(err: unknown, places: readonly string[]): unknown {
  if (!(err instanceof PdpError) || err.issues.length === 0) return err
  const issues = err.issues.map(({ place, message }) => ({ place: places[Number(place.slice(1))] ?? '', message }))
  return new RequestProblem(err.code, 'nothing was written', { issues, cause: err })
}

function formatKey({ object, relation, subject }: Tuple): string {
  return JSON.stringify([object, relation, subject])
}

function parseKey(text: string): Tuple {
  try {
    const [object, relation, subject]: readonly unknown[] = JSON.parse(text)
    if (typeof object === 'string' && typeof relation === 'string' && typeof subject === 'string') {
      return { object, relation, subject, expiresAtMs: null }
    }
  } catch {
    // refused below
  }
  throw refuseParameter('page_token', 'is not a page token of this list')
}
