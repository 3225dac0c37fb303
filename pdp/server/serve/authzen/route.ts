/** The five calls of the AuthZEN Authorization API 1.0, answered by the same decisions as `POST /oauth/decisions`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PUBLIC_CACHE_SECONDS } from '../../../identity/oauth/durations.ts'
import { mountOf, PATHS, urlOf } from '../../../identity/oauth/paths.ts'
import { mediaTypeOf } from '../../../shared/base/media-type.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Places } from '../authentication/admission.ts'
import { presentedToken } from '../authentication/credentials.ts'
import type { AskedFromDeps } from '../decisions/asked-from.ts'
import { PROBLEM_RESPONSE } from '../http/schemas.ts'
import { RequestProblem, SUCCESS } from '../http/status.ts'
import { type Asker, authenticateSearcher, recognizeCaller } from './caller.ts'
import { readBatch, readEvaluation } from './entities.ts'
import { type Decision, type EvaluateDeps, evaluateAll, evaluateOne, untilDecided } from './evaluate.ts'
import { type SearchDeps, type SearchResponse, searchActions, searchResources, searchSubjects } from './search.ts'

/** The paths of the calls, below the issuer's path. */
export const AUTHZEN_PATHS = {
  evaluation: '/access/v1/evaluation',
  evaluations: '/access/v1/evaluations',
  searchSubject: '/access/v1/search/subject',
  searchResource: '/access/v1/search/resource',
  searchAction: '/access/v1/search/action',
} as const

export type AuthzenDeps = AskedFromDeps & EvaluateDeps & SearchDeps & MetadataDeps & { readonly places: Places }
type Call = {
  readonly path: string
  readonly operation: string
  readonly summary: string
  /** Members that the request must have. They are only shown in the OpenAPI description. */
  readonly members: readonly string[]
  readonly answered: object
  readonly run: (deps: AuthzenDeps, request: FastifyRequest, reply: FastifyReply) => Promise<object>
}
const ENTITY = {
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string' }, id: { type: 'string' }, properties: { type: 'object' } },
}
const ACTION = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
const MEMBERS: { readonly [name: string]: object } = { subject: ENTITY, resource: ENTITY, action: ACTION }
const DECISION = {
  type: 'object',
  required: ['decision'],
  properties: { decision: { type: 'boolean' }, context: { type: 'object' } },
}

const FREE = { type: 'object' }

const CALLS: readonly Call[] = [
  {
    path: AUTHZEN_PATHS.evaluation,
    operation: 'authzenEvaluation',
    summary: 'May this subject do this action on this resource?',
    members: ['subject', 'action', 'resource'],
    answered: DECISION,
    run: evaluate,
  },
  {
    path: AUTHZEN_PATHS.evaluations,
    operation: 'authzenEvaluations',
    summary: 'Several evaluations in one call, with defaults for all of them.',
    members: [],
    answered: FREE,
    run: evaluateMany,
  },
  {
    path: AUTHZEN_PATHS.searchSubject,
    operation: 'authzenSearchSubject',
    summary: 'Which subjects of a type may do this action on this resource?',
    members: ['subject', 'action', 'resource'],
    answered: FREE,
    run: searchWith(searchSubjects),
  },
  {
    path: AUTHZEN_PATHS.searchResource,
    operation: 'authzenSearchResource',
    summary: 'On which resources of a type may this subject do this action?',
    members: ['subject', 'action', 'resource'],
    answered: FREE,
    run: searchWith(searchResources),
  },
  {
    path: AUTHZEN_PATHS.searchAction,
    operation: 'authzenSearchAction',
    summary: 'Which actions may this subject do on this resource?',
    members: ['subject', 'resource'],
    answered: FREE,
    run: searchWith(searchActions),
  },
]

export function addAuthzen(app: FastifyInstance, deps: AuthzenDeps): void {
  addMetadata(app, deps)
  for (const call of CALLS) addCall(app, deps, call)
}

async function evaluate(deps: AuthzenDeps, request: FastifyRequest): Promise<Decision> {
  const caller = await recognizeCaller(deps, request)
  return evaluateOne(deps, caller, readEvaluation(request.body))
}

async function evaluateMany(
  deps: AuthzenDeps,
  request: FastifyRequest,
): Promise<Decision | { readonly evaluations: readonly Decision[] }> {
  const caller = await recognizeCaller(deps, request)
  const batch = readBatch(request.body)
  if (batch === null) return evaluateOne(deps, caller, readEvaluation(request.body))
  return { evaluations: untilDecided(await evaluateAll(deps, caller, batch.items), batch.semantic) }
}

function searchWith(search: (deps: SearchDeps, asker: Asker, body: unknown) => Promise<SearchResponse>): Call['run'] {
  return async (deps, request, reply) => {
    const asker = await authenticateSearcher(deps, request.raw)
    const free = deps.places.take({ client: asker.token.clientId, organization: asker.token.organization })
    reply.raw.once('close', free)
    return search(deps, asker, request.body)
  }
}

function addCall(app: FastifyInstance, deps: AuthzenDeps, call: Call): void {
  const { path, operation, summary, members, answered, run } = call
  const properties = Object.fromEntries(members.map((name) => [name, MEMBERS[name] ?? {}]))
  app.post(path, {
    schema: {
      operationId: operation,
      summary,
      description: 'AuthZEN Authorization API 1.0. Members that the API does not know are ignored.',
      tags: ['AuthZEN'],
      security: [{ bearer: ['decisions:read'] }],
      body: { type: 'object', required: members, properties },
      response: { [SUCCESS.ok]: answered, default: PROBLEM_RESPONSE },
    },
    // The schema is only for the API description. entities.ts reads the body, so that an unreadable item does not refuse the others.
    validatorCompiler: () => () => true,
    onRequest: async (request) => {
      presentedToken(deps.issuer, request.raw)
      const type = mediaTypeOf(request.headers['content-type'])
      // AuthZEN section 10.1.2 requires 400 here, where our other calls answer 415.
      if (type !== 'application/json') throw new RequestProblem('request_invalid', 'send the body as application/json')
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return run(deps, request, reply)
    },
  })
}

/**
 * `/.well-known/authzen-configuration` (section 9): the URLs of the AuthZEN endpoints, made from the issuer and never from a Host
 * field.
 */
type MetadataDeps = {
  readonly issuer: string
  /** A JWT of these claims, signed with the issuer's active key. */
  readonly signStatement: (claims: JsonObject) => Promise<string>
}

function addMetadata(app: FastifyInstance, deps: MetadataDeps): void {
  const { issuer } = deps
  const document: JsonObject = {
    policy_decision_point: issuer,
    access_evaluation_endpoint: urlOf(issuer, AUTHZEN_PATHS.evaluation),
    access_evaluations_endpoint: urlOf(issuer, AUTHZEN_PATHS.evaluations),
    search_subject_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchSubject),
    search_resource_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchResource),
    search_action_endpoint: urlOf(issuer, AUTHZEN_PATHS.searchAction),
  }
  // The well-known part goes between the host and the path of the PDP's id; a proxy may have cut that path off.
  for (const url of new Set([PATHS.authzenMetadata, PATHS.authzenMetadata + mountOf(issuer)])) {
    app.get(url, {
      // Discovery documents are not part of our API's description.
      schema: { hide: true },
      handler: async (_request, reply) => {
        reply.header('cache-control', `public, max-age=${PUBLIC_CACHE_SECONDS}`)
        // Caches keep this answer; the key that signs it stays published for longer.
        return { ...document, signed_metadata: await deps.signStatement({ iss: issuer, ...document }) }
      },
    })
  }
}
