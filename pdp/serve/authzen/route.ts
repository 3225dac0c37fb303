/** The five calls of the AuthZEN Authorization API 1.0, answered by the same decisions as `POST /oauth/decisions`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Places } from '../authentication/admission.ts'
import { type ActiveToken, presentedToken } from '../authentication/credentials.ts'
import { PROBLEM_RESPONSE } from '../http/schemas.ts'
import { RequestProblem, SUCCESS } from '../problems/status.ts'
import { authenticateSearcher, recognizeCaller } from './caller.ts'
import { readBatch, readEvaluation } from './entities.ts'
import { type Decision, type EvaluateDeps, evaluateAll, evaluateOne, untilDecided } from './evaluate.ts'
import { addMetadata, type MetadataDeps } from './metadata.ts'
import { AUTHZEN_PATHS } from './paths.ts'
import { type Found, type SearchDeps, searchActions, searchResources, searchSubjects } from './search.ts'

export type AuthzenDeps = EvaluateDeps & SearchDeps & MetadataDeps & { readonly places: Places }
type Call = {
  readonly path: string
  readonly operation: string
  readonly summary: string
  /** Members of the request that have to be there, for the description alone. */
  readonly members: readonly string[]
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

export function addAuthzen(app: FastifyInstance, deps: AuthzenDeps): void {
  addMetadata(app, deps)
  addCall(app, deps, { ...EVALUATION, handler: (request) => evaluate(deps, request) })
  addCall(app, deps, { ...EVALUATIONS, handler: (request) => evaluateMany(deps, request) })
  const searches = [
    [SUBJECTS, searchSubjects],
    [RESOURCES, searchResources],
    [ACTIONS, searchActions],
  ] as const
  for (const [call, search] of searches) {
    addCall(app, deps, { ...call, handler: (request, reply) => searchAs(deps, { request, reply, search }) })
  }
}

const EVALUATION: Call = {
  path: AUTHZEN_PATHS.evaluation,
  operation: 'authzenEvaluation',
  summary: 'May this subject do this action on this resource?',
  members: ['subject', 'action', 'resource'],
}
const EVALUATIONS: Call = {
  path: AUTHZEN_PATHS.evaluations,
  operation: 'authzenEvaluations',
  summary: 'Several evaluations in one call, with defaults for all of them.',
  members: [],
}
const SUBJECTS: Call = {
  path: AUTHZEN_PATHS.searchSubject,
  operation: 'authzenSearchSubject',
  summary: 'Which subjects of a type may do this action on this resource?',
  members: ['subject', 'action', 'resource'],
}
const RESOURCES: Call = {
  path: AUTHZEN_PATHS.searchResource,
  operation: 'authzenSearchResource',
  summary: 'On which resources of a type may this subject do this action?',
  members: ['subject', 'action', 'resource'],
}
const ACTIONS: Call = {
  path: AUTHZEN_PATHS.searchAction,
  operation: 'authzenSearchAction',
  summary: 'Which actions may this subject do on this resource?',
  members: ['subject', 'resource'],
}

async function evaluate(deps: AuthzenDeps, request: FastifyRequest): Promise<Decision> {
  const caller = await recognizeCaller(deps, request.raw)
  return evaluateOne(deps, caller, readEvaluation(request.body))
}

async function evaluateMany(
  deps: AuthzenDeps,
  request: FastifyRequest,
): Promise<Decision | { readonly evaluations: readonly Decision[] }> {
  const caller = await recognizeCaller(deps, request.raw)
  const batch = readBatch(request.body)
  if (batch === null) return evaluateOne(deps, caller, readEvaluation(request.body))
  return { evaluations: untilDecided(await evaluateAll(deps, caller, batch.items), batch.semantic) }
}

async function searchAs(
  deps: AuthzenDeps,
  of: {
    readonly request: FastifyRequest
    readonly reply: FastifyReply
    readonly search: (deps: SearchDeps, token: ActiveToken, body: unknown) => Promise<Found>
  },
): Promise<Found> {
  const token = await authenticateSearcher(deps, of.request.raw)
  const free = deps.places.take(token.clientId)
  of.reply.raw.once('close', free)
  return of.search(deps, token, of.request.body)
}

function addCall(
  app: FastifyInstance,
  deps: Pick<AuthzenDeps, 'issuer'>,
  call: Call & { readonly handler: (request: FastifyRequest, reply: FastifyReply) => Promise<object> },
): void {
  const { path, operation, summary, members, handler } = call
  const properties = Object.fromEntries(members.map((name) => [name, MEMBERS[name] ?? {}]))
  app.post(path, {
    schema: {
      operationId: operation,
      summary,
      description: 'AuthZEN Authorization API 1.0. Members that the API does not know are ignored.',
      tags: ['AuthZEN'],
      security: [{ bearer: ['decisions:read'] }],
      body: { type: 'object', required: members, properties },
      response: {
        [SUCCESS.ok]: operation === EVALUATION.operation ? DECISION : { type: 'object' },
        default: PROBLEM_RESPONSE,
      },
    },
    // The schema describes: entities.ts reads, because an item that cannot be read is no reason to refuse the others.
    validatorCompiler: () => () => true,
    onRequest: async (request) => {
      presentedToken(deps.issuer, request.raw)
      const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
      // Section 10.1.2 has 400 for this, where other calls have 415.
      if (type !== 'application/json') throw new RequestProblem('request_invalid', 'send the body as application/json')
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return handler(request, reply)
    },
  })
}
