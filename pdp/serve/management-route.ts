/** One management call: its scope, its organization bounds, its schemas and its work, in one value. */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Pdp } from '../pdp.ts'
import type { EntitlementSource, Store, WriteContext } from '../store/contracts.ts'
import type { Client, Directory } from '../store/directory.ts'
import { authenticateManager, type Manager, type ManagerDeps, requireUnbound, requireWithin } from './authenticate.ts'
import { BODY_TYPES, type BodyKind } from './bodies.ts'
import { PAGE_PROPERTIES, pageSchema } from './pages.ts'
import { ENTITLEMENT_KEY, FORM, ID, type JsonSchema, object, PROBLEM_RESPONSE } from './schemas.ts'
import { Refusal, SUCCESS } from './status.ts'

export type ManagementDeps = ManagerDeps & {
  /** Throws PdpError `request_invalid` for a registration that the identity service could not use. */
  readonly validateClient: (client: Client & { readonly secretHash: string | null }) => Promise<void>
  readonly pdp: Pdp
  readonly store: Store
  readonly entitlements: EntitlementSource
  readonly directory: Directory
}
type Shape = { readonly body?: unknown; readonly query?: unknown; readonly params: string }
export type Call<S extends Shape> = {
  readonly manager: Manager
  readonly params: { readonly [Name in S['params']]: string }
  readonly query: S['query']
  readonly body: S['body']
  readonly context: WriteContext
  /** What was asked for by `accept`. */
  readonly accept: string
  /** Asks again whether the caller may do this, for what takes longer than one look. Throws Refusal. */
  recheck(): Promise<void>
}
/** `type`: media type of a stream. */
export type Outcome = {
  readonly status: keyof typeof SUCCESS
  readonly body?: object | Readable
  readonly type?: string
  readonly headers?: { readonly [name: string]: string }
}

export type ManagementRoute<S extends Shape> = {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Fastify path; parameters are `:app`, `:org`, `:user`, `:client_id`, `:key`. */
  readonly path: string
  /** Name of the call in OpenAPI. */
  readonly operation: string
  readonly summary: string
  readonly tag: string
  readonly scope: string
  /** `organization`: `:org` must be the manager's or below; `environment`: only an unbound client; `call`: `handle` decides. */
  readonly bounds: 'organization' | 'environment' | 'call'
  readonly body?: JsonSchema
  /** Media kinds of the body; `json` when absent. */
  readonly bodies?: readonly BodyKind[]
  /** Query parameters; for a list, those besides the page's. */
  readonly query?: { readonly [name: string]: JsonSchema }
  /** Schema of the answer; for a list, of one item. Null: no body. */
  readonly answer: JsonSchema | null
  /** The answer is a stream of these, each line of which `answer` describes. */
  readonly streams?: readonly string[]
  readonly list?: true
  handle(call: Call<S>): Promise<Outcome>
}

const PARAMETERS: { readonly [name: string]: typeof ID } = {
  app: ID,
  org: ID,
  user: ID,
  client_id: ID,
  key: ENTITLEMENT_KEY,
}

/** Adds a route: who asks and within which organization is settled before the body is read. */
export function addManagementRoute<S extends Shape>(
  app: FastifyInstance,
  deps: ManagementDeps,
  route: ManagementRoute<S>,
): void {
  const managers = new WeakMap<FastifyRequest, Manager>()
  const names = [...route.path.replaceAll('::', '').matchAll(/:([a-z_]+)/g)].map(([, name = '']) => name)
  const authorize = async (request: FastifyRequest): Promise<Manager> => {
    const manager = await authenticateManager(deps, {
      message: request.raw,
      scope: route.scope,
      provenBefore: managers.has(request),
    })
    requireForms(request.params)
    if (route.bounds === 'environment') requireUnbound(manager)
    if (route.bounds === 'organization') await requireWithin(manager, organizationOf(request.params), deps.pdp)
    return manager
  }
  app.route({
    method: route.method,
    url: route.path,
    config: { bodies: route.bodies ?? ['json'] },
    schema: {
      operationId: route.operation,
      summary: route.summary,
      description: `Needs scope \`${route.scope}\`.`,
      tags: [route.tag],
      security: [{ bearer: [route.scope] }],
      params: object(Object.fromEntries(names.map((name) => [name, PARAMETERS[name] ?? ID])), names),
      querystring: object({ ...(route.list ? PAGE_PROPERTIES : {}), ...route.query }),
      ...bodySchema(route),
      response: responses(route),
    },
    onRequest: async (request) => {
      managers.set(request, await authorize(request))
    },
    handler: async (request, reply) => {
      // A body may take its time to arrive, in which the caller may have lost what was found at its beginning.
      const manager = route.body === undefined ? managers.get(request) : await authorize(request)
      if (manager === undefined) throw new TypeError('a management call ran without its manager')
      const recheck = async (): Promise<void> => void (await authorize(request))
      const { status, body, type, headers = {} } = await route.handle(parseCall<S>(request, { manager, recheck }))
      reply.code(SUCCESS[status]).header('cache-control', 'no-store').headers(headers)
      if (type !== undefined) reply.type(type)
      return body === undefined ? reply.send() : body
    },
  })
}

/** Names of the path are judged before anything is looked up by them. Throws Refusal `request_invalid`. */
function requireForms(params: unknown): void {
  if (typeof params !== 'object' || params === null) return
  const mistakes = Object.entries(params).flatMap(([name, value]: [string, unknown]) => {
    const { pattern, [FORM]: form } = PARAMETERS[name] ?? ID
    const valid = typeof value === 'string' && new RegExp(pattern).test(value)
    return valid ? [] : [{ place: `:${name}`, message: `must be ${form}` }]
  })
  if (mistakes.length === 0) return
  const message = mistakes.map(({ place, message }) => `${place} ${message}`).join('; ')
  throw new Refusal('request_invalid', message, { mistakes })
}

function organizationOf(params: unknown): string {
  return typeof params === 'object' && params !== null && 'org' in params ? String(params.org) : ''
}

/** Names what the schemas of the route have checked. */
function parseCall<S extends Shape>(
  request: FastifyRequest,
  { manager, recheck }: Pick<Call<S>, 'manager' | 'recheck'>,
): Call<S> {
  return {
    manager,
    recheck,
    accept: request.headers.accept ?? '',
    params: request.params as Call<S>['params'],
    query: request.query as S['query'],
    body: request.body as S['body'],
    context: { actor: `service:${manager.token.clientId}`, requestId: request.id },
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
    return { [SUCCESS.ok]: { description: 'One on each line.', content }, ...problems }
  }
  if (answer === null) return { [SUCCESS.empty]: { type: 'null', description: 'Done.' }, ...problems }
  const done = { description: 'Done.', ...(list ? pageSchema(answer) : answer) }
  const created = method === 'PUT' ? { [SUCCESS.created]: { ...done, description: 'Created.' } } : {}
  return { [SUCCESS.ok]: done, ...created, ...problems }
}

/** The outcome of a PUT. */
export function put(existed: boolean, body: object): Outcome {
  return { status: existed ? 'ok' : 'created', body }
}
export const ok = (body: object): Outcome => ({ status: 'ok', body })
export const EMPTY: Outcome = { status: 'empty' }
