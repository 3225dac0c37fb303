/** Pages of lists: the resources that a subject may reach, or the subjects that may reach a resource. */
import type { FastifyInstance } from 'fastify'
import type { ListPage } from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { existsAsSubject } from '../decisions/answer.ts'
import {
  ASKED_SUBJECT,
  CONTEXT,
  NAME,
  readSubject,
  readSupposed,
  relocated,
  SUPPOSED,
  type SubjectBody,
  type SupposedBody,
} from '../decisions/question-schemas.ts'
import { PAGE_PROPERTIES, type PageQuery, pageSize } from '../http/pagination.ts'
import { ID, type JsonSchema, object, whole } from '../http/schemas.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, type ManagementResponse, ok } from './route.ts'

const RELATION = { ...NAME, description: 'A relation, or a permission key for app and organization resources.' }
const APP = { ...ID, description: 'The app whose roles answer permission keys on the organization.' }
const RESOURCES = object(
  {
    subject: ASKED_SUBJECT,
    relation: RELATION,
    type: { ...NAME, description: 'Type of the resources.' },
    app: APP,
    ...SUPPOSED,
    context: CONTEXT,
  },
  ['subject', 'relation', 'type'],
)
const SUBJECTS = object(
  {
    resource: { ...NAME, description: '<type>:<id>' },
    relation: RELATION,
    type: { ...NAME, description: 'Type of the subjects, such as user.' },
    subject_relation: { ...NAME, description: 'Lists usersets <type>:<id>#<subject_relation> instead.' },
    app: APP,
    ...SUPPOSED,
    context: CONTEXT,
  },
  ['resource', 'relation', 'type'],
)
const PAGE: JsonSchema = object(
  {
    items: { type: 'array', items: { type: 'string' } },
    next_page_token: { type: ['string', 'null'], description: 'Null on the last page. A page before it may be empty.' },
    complete: {
      type: 'boolean',
      description: 'False: some items could not be decided within the limits, and are missing.',
    },
    revision: { type: 'string', description: 'Opaque. Names the state in which this page was read.' },
    revision_unchanged: {
      type: 'boolean',
      description: 'True: this page and all earlier pages were read in the same state.',
    },
    undecided: {
      type: 'array',
      items: whole({ item: { type: 'string' }, missing_context: { type: 'array', items: { type: 'string' } } }),
      description:
        'What depends on a condition that could not be evaluated, with the parameters that the context lacks.',
    },
  },
  ['items', 'next_page_token', 'complete', 'undecided', 'revision', 'revision_unchanged'],
)
const COMMON = {
  tag: 'Decisions',
  scope: 'decisions:read',
  organizationScope: 'organization',
  method: 'POST',
  query: PAGE_PROPERTIES,
  answer: PAGE,
} as const

export function addLists(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{
    params: 'org'
    body: SupposedBody & {
      readonly subject: SubjectBody
      readonly relation: string
      readonly type: string
      readonly app?: string
      readonly context?: JsonObject
    }
    query: PageQuery
  }>(app, deps, {
    ...COMMON,
    path: '/v1/organizations/:org/list-resources',
    operation: 'listResources',
    summary:
      'Resources of a type on which a subject has a relation. These are exactly the resources for which a check is allowed.',
    body: RESOURCES,
    async handle({ params, body, query }) {
      const { relation, type, app = null, context } = body
      const subject = readSubject(body.subject)
      const question = { relation, type, ...(context !== undefined && { context }), ...readSupposed(body) }
      const request = { ...pageOf(query), ...question, subject, organization: params.org, app }
      const page = await relocated(deps.pdp.listResources(request))
      // A missing subject has nothing, not even by wildcard, as in decisions.
      const nothing = { items: [], undecided: [], nextPageToken: null }
      return present((await existsAsSubject(deps.directory, subject, params.org)) ? page : { ...page, ...nothing })
    },
  })
  addManagementRoute<{
    params: 'org'
    body: SupposedBody & {
      readonly resource: string
      readonly relation: string
      readonly type: string
      readonly subject_relation?: string
      readonly app?: string
      readonly context?: JsonObject
    }
    query: PageQuery
  }>(app, deps, {
    ...COMMON,
    path: '/v1/organizations/:org/list-subjects',
    operation: 'listSubjects',
    summary:
      'Subjects of a type that have a relation on a resource. These are exactly the subjects for which a check is allowed.',
    body: SUBJECTS,
    async handle({ params, body, query }) {
      const { resource, relation, type, app = null, subject_relation, context } = body
      const question = { relation, type, ...(context !== undefined && { context }), ...readSupposed(body) }
      const userset = subject_relation === undefined ? {} : { subjectRelation: subject_relation }
      const request = { ...pageOf(query), ...question, ...userset, resource, organization: params.org, app }
      return present(await relocated(deps.pdp.listSubjects(request)))
    },
  })
}

function pageOf(query: PageQuery): { pageSize: number; pageToken: string | null } {
  return { pageSize: pageSize(query.page_size), pageToken: query.page_token ?? null }
}

function present(page: ListPage): ManagementResponse {
  const { items, nextPageToken, complete, revision, revisionUnchanged } = page
  const undecided = page.undecided.map(({ item, missingContext }) => ({ item, missing_context: missingContext }))
  return ok({
    items,
    next_page_token: nextPageToken,
    complete,
    undecided,
    revision,
    revision_unchanged: revisionUnchanged,
  })
}
