/** Denials of an organization, from all PDPs, the newest first. */
import type { FastifyInstance } from 'fastify'
import { ANY_APP } from '../../../engine/decide/roles.ts'
import type { DenialFilter } from '../decisions/decision-archive.ts'
import { NAME } from '../decisions/question-schemas.ts'
import { PAGE_PROPERTIES, type PageQuery } from '../http/pagination.ts'
import { TIMESTAMP, whole } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, okPage } from './route.ts'

type Query = PageQuery & {
  readonly subject?: string
  readonly resource?: string
  readonly route?: string
  readonly reason?: string
  readonly request?: string
  readonly from?: string
  readonly to?: string
}
const TEXTS = { type: 'array', items: { type: 'string' } } as const
const DENIAL = whole({
  at: TIMESTAMP,
  subject: { type: 'string' },
  relation: { type: 'string' },
  resource: { type: 'string' },
  reason: { type: 'string' },
  route: { type: ['string', 'null'], description: 'The route of the sidecar that asked.' },
  request_id: { type: ['string', 'null'] },
  decision_id: { type: 'string' },
  app: {
    type: ['string', 'null'],
    description: 'The app whose roles answered permission keys; * for all apps, null for none.',
  },
  actors: { ...TEXTS, description: 'Clients that acted for the subject, the last one first.' },
  scopes: { ...TEXTS, description: 'Those of the token by which they acted.' },
  whole: {
    type: 'boolean',
    description: 'False: the question brought a context, tuples or groups, which are not kept.',
  },
})
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
      return okPage(deps, query, {
        list: ['decisions', params.org, JSON.stringify(filter)],
        log: params.org,
        read: ({ after, countMax }) => archive.denied(params.org, filter, { before: idIn(after), countMax }),
        key: ({ id }) => id,
        shown: present,
      })
    },
  })
}

/** The id in a page token. Throws RequestProblem for one that no page had. */
function idIn(after: string | null): string | null {
  if (after === null || /^\d{1,18}$/.test(after)) return after
  const issues = [{ place: 'page_token', message: 'is not a page token of this list' }]
  throw new RequestProblem('request_invalid', 'page_token is not a page token of this list', { issues })
}

/** The filter of an instant. Throws RequestProblem for one of RFC 3339 that JavaScript lacks, such as a leap second. */
function instantOf(key: 'fromMs' | 'toMs', text: string | undefined): DenialFilter {
  if (text === undefined) return {}
  const ms = Date.parse(text)
  if (!Number.isNaN(ms)) return { [key]: ms }
  const issues = [
    { place: key === 'fromMs' ? 'from' : 'to', message: 'is not an instant such as 2030-01-31T12:00:00Z' },
  ]
  throw new RequestProblem('request_invalid', `${text} is not an instant such as 2030-01-31T12:00:00Z`, { issues })
}

function present(denied: Awaited<ReturnType<NonNullable<ManagementDeps['archive']>['denied']>>[number]) {
  const { atMs, route, requestId, decisionId, subject, relation, resource, reason, askedAs } = denied
  return {
    at: new Date(atMs).toISOString(),
    subject,
    relation,
    resource,
    reason,
    route: route || null,
    request_id: requestId || null,
    decision_id: decisionId,
    app: askedAs.app === undefined ? ANY_APP : askedAs.app,
    actors: askedAs.actors ?? [],
    scopes: askedAs.scopes ?? [],
    whole: askedAs.isWhole !== false,
  }
}
