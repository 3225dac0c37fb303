/** Denials of an organization, from all PDPs, the newest first. */
import type { FastifyInstance } from 'fastify'
import type { DenialFilter } from '../decisions/decision-archive.ts'
import { NAME } from '../decisions/question-schemas.ts'
import { PAGE_PROPERTIES, type PageQuery, readPage } from '../http/pagination.ts'
import { object, TIMESTAMP } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

type Query = PageQuery & {
  readonly subject?: string
  readonly resource?: string
  readonly route?: string
  readonly reason?: string
  readonly request?: string
  readonly from?: string
  readonly to?: string
}
const DENIAL = object(
  {
    at: TIMESTAMP,
    subject: { type: 'string' },
    relation: { type: 'string' },
    resource: { type: 'string' },
    reason: { type: 'string' },
    route: { type: ['string', 'null'], description: 'The route of the sidecar that asked.' },
    request_id: { type: ['string', 'null'] },
    decision_id: { type: 'string' },
  },
  ['at', 'subject', 'relation', 'resource', 'reason', 'route', 'request_id', 'decision_id'],
)
const TEXT = { type: 'string', minLength: 1, maxLength: 512 } as const

export function addDecisionList(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org'; query: Query }>(app, deps, {
    tag: 'Decisions',
    scope: 'decisions:read',
    organizationScope: 'organization',
    method: 'GET',
    path: '/v1/organizations/:org/decisions',
    operation: 'listDecisions',
    summary: 'Denials of all PDPs, newest first, for as long as PORTCULLIS_DECISIONS_KEPT_DAYS says.',
    answer: DENIAL,
    list: true,
    query: {
      ...PAGE_PROPERTIES,
      subject: NAME,
      resource: NAME,
      route: TEXT,
      reason: TEXT,
      request: { ...TEXT, description: 'Id of the request or of the decision.' },
      from: { ...TIMESTAMP, description: 'From this instant on.' },
      to: { ...TIMESTAMP, description: 'Before this instant.' },
    },
    async handle({ params, query }) {
      const { archive } = deps
      if (archive == null)
        throw new RequestProblem('not_found', 'this PDP keeps no decisions: PORTCULLIS_DECISIONS_KEPT_DAYS is 0')
      const { from, to, page_size: _, page_token: __, ...words } = query
      const filter: DenialFilter = { ...words, ...instantOf('fromMs', from), ...instantOf('toMs', to) }
      const page = await readPage(deps.store, query, {
        list: ['decisions', params.org, JSON.stringify(filter)],
        log: params.org,
        read: ({ after, countMax }) => archive.denied(params.org, filter, { before: after, countMax }),
        key: ({ id }) => id,
      })
      return ok({ ...page, items: page.items.map(present) })
    },
  })
}

const instantOf = (key: 'fromMs' | 'toMs', text: string | undefined): DenialFilter =>
  text === undefined ? {} : { [key]: Date.parse(text) }

const present = ({ atMs, route, requestId, decisionId, subject, relation, resource, reason }: Denied) => ({
  at: new Date(atMs).toISOString(),
  ...{ subject, relation, resource, reason },
  route: route || null,
  request_id: requestId || null,
  decision_id: decisionId,
})
type Denied = Awaited<ReturnType<NonNullable<ManagementDeps['archive']>['denied']>>[number]
