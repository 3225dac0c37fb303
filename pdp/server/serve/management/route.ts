/** A management call as a value: scope, organization scope, schemas and handler. */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Lock } from '../../../engine/store/journal-lock.ts'
import { withModels } from '../../../engine/worker/worker.ts'
import { readScope } from '../../../identity/oauth/scopes.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import {
  authenticateManagementClient,
  type ManagementClient,
  requireUnbound,
  requireWithin,
} from '../authentication/authenticate.ts'
import { authorizePerson } from '../authentication/people.ts'
import { BODY_TYPES, type BodyKind } from '../http/bodies.ts'
import { isNoneMatch, requireConditions, tagOf } from '../http/conditions.ts'
import { PAGE_PROPERTIES, type PageQuery, type PageSource, pageSchema, readPage } from '../http/pagination.ts'
import { ENTITLEMENT_KEY, FORM, ID, type JsonSchema, object, PROBLEM_RESPONSE } from '../http/schemas.ts'
import { RequestProblem, SUCCESS } from '../http/status.ts'
import { type ManagementDeps, type Reach, within } from './deps.ts'

export type Shape = {
  readonly body?: unknown
  readonly query?: unknown
  readonly params: string
  readonly prepared?: unknown
  readonly stored?: object
}
/** `at`: the stores of the call; for a route with `locks`, those of one transaction. `stored`: the state that the route's `state` read. */
export type Call<S extends Shape> = {
  readonly at: ManagementDeps
  readonly caller: ManagementClient
  readonly params: { readonly [Name in S['params']]: string }
  readonly query: S['query']
  readonly body: S['body']
  readonly context: WriteContext
  readonly stored: S['stored'] | null
  /** The body of a PATCH; `body` is then the stored document with these changes. Null: the call has a whole body. */
  readonly patch: JsonObject | null
  /** The Accept field of the request. */
  readonly accept: string
  /** Authorizes the caller again, in a call that takes long, and returns the caller's rights now. Throws RequestProblem. */
  recheck(): Promise<ManagementClient>
  /** Throws the RequestProblem of a body that does not match the schema. */
  requireForm(schema: JsonSchema, body: unknown): void
  /** Runs several writes in one transaction, like a route with `locks`. The caller is authorized again under the locks. */
  atomically<T>(logs: readonly Lock[], work: (at: ManagementDeps, caller: ManagementClient) => Promise<T>): Promise<T>
}
/** `type`: the media type of a stream. `left`: the state that the route's `state` would read now; absent: it is read. */
export type ManagementResponse = {
  readonly status: keyof typeof SUCCESS
  readonly body?: object | Readable
  readonly type?: string
  readonly headers?: { readonly [name: string]: string }
  readonly left?: object
}

export type ManagementRoute<S extends Shape> = {
  readonly method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE'
  /** Fastify path; parameters are `:app`, `:org`, `:user`, `:client_id`, `:key`. */
  readonly path: string
  /** Name of the call in OpenAPI. */
  readonly operation: string
  readonly summary: string
  readonly tag: string
  readonly scope: string
  /** `organization`: `:org` must be the caller's organization or below it; `environment`: only an unbound client; `call`: `handle` decides. */
  readonly organizationScope: 'organization' | 'environment' | 'call'
  readonly body?: JsonSchema
  /** Media kinds of the body; `json` when absent. */
  readonly bodies?: readonly BodyKind[]
  /** Query parameters; for a list, those besides the page's. */
  readonly query?: { readonly [name: string]: JsonSchema }
  readonly queryRequired?: readonly string[]
  /** True if the call can create something and then answers 201. Default: only a PUT can. */
  readonly creates?: boolean
  /** Schema of the answer; for a list, of one item. Null: no body. */
  readonly answer: JsonSchema | null
  /** The media types of an answer that is a stream; `answer` describes one line of it. */
  readonly streams?: readonly string[]
  readonly list?: true
  /**
   * The logs that the write changes, and those whose changes could contradict it. They are locked before authorization and before `handle`
   * reads, so that all checks still hold at the commit. `#directory` is always among them, at least shared, and keeps the caller's
   * registration.
   */
  locks?(params: Call<S>['params'], body: S['body']): readonly Lock[]
  /** The call reads or deletes whole tables, so its statements get more time. */
  readonly lengthy?: true
  /** The call waits until something happens, within a bound of its own. */
  readonly waits?: true
  /** Slow work before the locks. Its result may be outdated when `handle` runs. */
  prepare?(call: Call<S>): Promise<S['prepared']>
  /** The stored state that the path names, from which the entity tag is made; null if it does not exist. Makes the request conditional. */
  state?(call: Call<S>): Promise<NonNullable<S['stored']> | null>
  handle(call: Call<S>, prepared: S['prepared']): Promise<ManagementResponse>
}

/** Header fields of RFC 9110 sections 13.1.1 and 13.1.2. */
const CONDITIONS: JsonSchema = {
  type: 'object',
  properties: {
    'if-match': {
      type: 'string',
      description: 'Do it only if the stored state has one of these tags; *: only if it exists.',
    },
    'if-none-match': { type: 'string', description: '*: do it only if it does not exist yet.' },
  },
}
const ETAG = { etag: { type: 'string', description: 'The tag of the stored state (RFC 9110 section 8.8.3).' } }

/** The scope of a route: for a GET the one for reading, which the one for writing includes. */
const scopeOf = ({ method, scope }: { readonly method: string; readonly scope: string }): string =>
  method === 'GET' ? readScope(scope) : scope

/** Adds a route. The caller is authorized before the body is read. */
export function addManagementRoute<S extends Shape>(
  app: FastifyInstance,
  deps: ManagementDeps,
  route: ManagementRoute<S>,
): void {
  const { issuer, verifyProof } = deps
  // Callers with a verified proof (DPoP), which must not be verified twice when they are authorized again.
  const callers = new WeakMap<FastifyRequest, ManagementClient>()
  const names = [...route.path.replaceAll('::', '').matchAll(/:([a-z_]+)/g)].map(([, name = '']) => name)
  const authorize = async (request: FastifyRequest, at: Reach): Promise<ManagementClient> => {
    const scope = scopeOf(route)
    const person = deps.people?.of(request.raw) ?? null
    if (person !== null) {
      requireForms(request.params)
      const organization = route.organizationScope === 'environment' ? null : organizationOf(request.params) || null
      return authorizePerson(at, person, { scope, organization })
    }
    const caller = await authenticateManagementClient(
      { issuer, verifyProof, ...at },
      { message: request.raw, scope, provenBefore: callers.has(request) },
    )
    requireForms(request.params)
    if (route.organizationScope === 'environment') requireUnbound(caller)
    if (route.organizationScope === 'organization') await requireWithin(caller, organizationOf(request.params), at.pdp)
    return caller
  }
  app.route({
    method: route.method,
    url: route.path,
    config: {
      bodies: route.bodies ?? ['json'],
      deadline: (route.lengthy ?? route.streams ?? route.waits) ? 'none' : 'call',
    },
    schema: {
      operationId: route.operation,
      summary: route.summary,
      description: `Needs scope \`${scopeOf(route)}\`.`,
      tags: [route.tag],
      security: [...new Set([scopeOf(route), route.scope])].map((scope) => ({ bearer: [scope] })),
      params: object(Object.fromEntries(names.map((name) => [name, PARAMETERS[name] ?? ID])), names),
      querystring: object({ ...(route.list ? PAGE_PROPERTIES : {}), ...route.query }, route.queryRequired),
      ...(route.state === undefined ? {} : { headers: CONDITIONS }),
      ...bodySchema(route),
      response: responses(route),
    },
    onRequest: async (request) => {
      callers.set(request, await authorize(request, deps))
    },
    handler: async (request, reply) => {
      const calls = callsOf(deps, request, (at) => authorize(request, at))
      const found = callers.get(request)
      if (found === undefined) throw new TypeError('a management call ran before its caller was authorized')
      const free = deps.places.take({ client: nameOf(found), organization: found.organizationScope[0] ?? null })
      reply.raw.once('close', free)
      const { status, body, type, headers = {} } = await answer(deps, route, { request, found, calls })
      reply.code(SUCCESS[status]).header('cache-control', 'no-store').headers(headers)
      if (type !== undefined) reply.type(type)
      return body === undefined ? reply.send() : body
    },
  })
}

type Calls = {
  call(at: ManagementDeps, caller: ManagementClient): Call<Shape>
  /** Authorizes the caller again, by the current state. */
  authorize(at: ManagementDeps): Promise<ManagementClient>
}

/** Waiting for a body or a lock can take long, so the caller is authorized again after either. */
async function answer<S extends Shape>(
  deps: ManagementDeps,
  route: ManagementRoute<S>,
  { request, found, calls }: { request: FastifyRequest; found: ManagementClient; calls: Calls },
): Promise<ManagementResponse> {
  const callAt = (at: ManagementDeps, caller: ManagementClient): Call<S> => calls.call(at, caller) as Call<S>
  const params = request.params as Call<S>['params']
  if (route.locks === undefined) {
    const caller = route.body === undefined ? found : await calls.authorize(deps)
    return conditional(route, request, callAt(deps, caller), undefined)
  }
  // The caller is authorized before slow work, too, so that others cannot cause it.
  const prepared =
    route.prepare === undefined ? undefined : await route.prepare(callAt(deps, await calls.authorize(deps)))
  const locks = { logs: route.locks(params, request.body as S['body']), lengthy: route.lengthy === true }
  // A transaction that needs a model which is not compiled yet starts again with the model.
  return withModels(() =>
    deps.atomically(locks, async (reach) => {
      const at = within(deps, reach)
      return conditional(route, request, callAt(at, await calls.authorize(at)), prepared)
    }),
  )
}

/** RFC 9110 section 13.2: conditions are evaluated after all other checks. */
async function conditional<S extends Shape>(
  route: ManagementRoute<S>,
  { headers }: FastifyRequest,
  call: Call<S>,
  prepared: S['prepared'],
): Promise<ManagementResponse> {
  if (route.state === undefined) {
    const outcome = await route.handle(call, prepared)
    return route.method === 'GET' && isDocument(outcome) ? tagged(outcome, tagOf(outcome.body)) : outcome
  }
  const before = await route.state(call)
  const tag = before === null ? null : tagOf(before)
  const known = { ...call, stored: before as Call<S>['stored'] }
  if (route.method === 'GET') {
    return tagged(isNoneMatch(headers, tag) ? await route.handle(known, prepared) : { status: 'unmodified' }, tag)
  }
  requireConditions(headers, tag)
  const outcome = await route.handle(known, prepared)
  const after = outcome.left ?? (await route.state(call))
  return tagged(outcome, after === null ? null : tagOf(after))
}

const isDocument = (outcome: ManagementResponse): outcome is ManagementResponse & { readonly body: object } =>
  outcome.body !== undefined && outcome.type === undefined

const tagged = (outcome: ManagementResponse, tag: string | null): ManagementResponse =>
  tag === null ? outcome : { ...outcome, headers: { ...outcome.headers, etag: tag } }

function callsOf(
  deps: ManagementDeps,
  request: FastifyRequest,
  authorize: (at: ManagementDeps) => Promise<ManagementClient>,
): Calls {
  const recheck = (): Promise<ManagementClient> => authorize(deps)
  const atomically: Call<Shape>['atomically'] = (logs, work) =>
    deps.atomically({ logs }, async (reach) => {
      const at = within(deps, reach)
      return work(at, await authorize(at))
    })
  const requireForm: Call<Shape>['requireForm'] = (schema, body) => {
    const validate = request.compileValidationSchema({ ...schema }, 'body')
    if (validate(body) === true) return
    throw Object.assign(new Error('the body is not valid'), { validation: validate.errors, validationContext: 'body' })
  }
  return {
    authorize,
    call: (at, caller) => ({ ...parseCall<Shape>(request, caller), at, recheck, requireForm, atomically }),
  }
}

const organizationOf = (params: unknown): string =>
  typeof params === 'object' && params !== null && 'org' in params ? String(params.org) : ''

/** The name of the caller, in the form that the log of changes uses. */
const nameOf = ({ token }: ManagementClient): string =>
  token.subject.type === 'user' ? `user:${token.subject.id}` : `service:${token.clientId}`

/** Gives types to parts of the request that the schemas of the route have validated. */
function parseCall<S extends Shape>(
  request: FastifyRequest,
  caller: ManagementClient,
): Omit<Call<S>, 'at' | 'recheck' | 'requireForm' | 'atomically'> {
  return {
    caller,
    stored: null,
    patch: null,
    accept: request.headers.accept ?? '',
    params: request.params as Call<S>['params'],
    query: request.query as S['query'],
    body: request.body as S['body'],
    context: { actor: nameOf(caller), requestId: request.id },
  }
}

function bodySchema<S extends Shape>({ body, bodies }: ManagementRoute<S>): { body?: object } {
  if (body === undefined) return {}
  if (bodies === undefined) return { body }
  const types = bodies.flatMap((kind) => [...BODY_TYPES[kind]])
  return { body: { content: Object.fromEntries(types.map((type) => [type, { schema: body }])) } }
}

function responses<S extends Shape>(route: ManagementRoute<S>): { [status: string]: unknown } {
  const { answer, list, method, streams } = route
  const problems = { default: PROBLEM_RESPONSE }
  if (streams !== undefined) {
    const content = Object.fromEntries(streams.map((type) => [type, { schema: answer ?? {} }]))
    return { [SUCCESS.ok]: { description: 'One item on each line.', content }, ...problems }
  }
  const headers = method === 'GET' || route.state !== undefined ? { headers: ETAG } : {}
  if (answer === null) return { [SUCCESS.empty]: { type: 'null', description: 'Done.', ...headers }, ...problems }
  const done = { description: 'Done.', ...(list ? pageSchema(answer) : answer), ...headers }
  const created = (route.creates ?? method === 'PUT') ? { [SUCCESS.created]: { ...done, description: 'Created.' } } : {}
  const unmodified =
    method === 'GET' && route.state !== undefined
      ? { [SUCCESS.unmodified]: { type: 'null', description: 'The stored state has a tag of If-None-Match.' } }
      : {}
  return { [SUCCESS.ok]: done, ...created, ...unmodified, ...problems }
}

/** The answer to a PUT. */
export function put(existed: boolean, body: object): ManagementResponse {
  return { status: existed ? 'ok' : 'created', body }
}
export const ok = (body: object): ManagementResponse => ({ status: 'ok', body })
export const EMPTY: ManagementResponse = { status: 'empty' }

/** The answer without a body. Throws RequestProblem `not_found` if there was nothing to do. */
export function done(isDone: boolean, missing: string): ManagementResponse {
  if (!isDone) throw new RequestProblem('not_found', missing)
  return EMPTY
}

/** The value. Throws RequestProblem `not_found` for null. */
export function found<T>(value: T | null | undefined, missing: string): T {
  if (value === null || value === undefined) throw new RequestProblem('not_found', missing)
  return value
}

/** A page of a list, its items in the form of `shown`. */
export async function okPage<Item extends object>(
  { store }: Pick<ManagementDeps, 'store'>,
  query: PageQuery,
  { shown = (item) => item, ...source }: PageSource<Item> & { readonly shown?: (item: Item) => object },
): Promise<ManagementResponse> {
  const page = await readPage(store, query, source)
  return ok({ ...page, items: page.items.map((item) => shown(item)) })
}

/** The forms of the names that stand in the paths of management calls. */
const PARAMETERS: { readonly [name: string]: typeof ID } = {
  app: ID,
  org: ID,
  user: ID,
  client_id: ID,
  key: ENTITLEMENT_KEY,
}

/** Validates the names in the path before they are used in a query. Throws RequestProblem `request_invalid`. */
function requireForms(params: unknown): void {
  if (typeof params !== 'object' || params === null) return
  const issues = Object.entries(params).flatMap(([name, value]: [string, unknown]) => {
    const { pattern, [FORM]: form } = PARAMETERS[name] ?? ID
    const valid = typeof value === 'string' && new RegExp(pattern).test(value)
    return valid ? [] : [{ place: `:${name}`, message: `must be ${form}` }]
  })
  if (issues.length === 0) return
  const message = issues.map(({ place, message }) => `${place} ${message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { issues })
}
