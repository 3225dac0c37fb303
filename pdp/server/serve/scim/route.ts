/** Runs one SCIM call: authorizes the caller, finds the organization, and answers in SCIM's media type. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Lock } from '../../../engine/store/journal-lock.ts'
import { withModels } from '../../../engine/worker/worker.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { DIRECTORY, TOKENS } from '../../../shared/domain/journal.ts'
import type { JsonObject, JsonValue } from '../../../shared/domain/json.ts'
import { authenticateManagementClient, type ManagementClient, requireWithin } from '../authentication/authenticate.ts'
import { isNoneMatch } from '../http/conditions.ts'
import { RequestProblem, SUCCESS } from '../http/status.ts'
import { type ManagementDeps, type Reach, within } from '../management/deps.ts'
import { SCIM_PATH, SCIM_TYPE, ScimError } from './errors.ts'
import { deactivates } from './patch.ts'

const SCOPE = 'scim'
/** Room for a group with the most members. */
const BODY_BYTES_MAX = 1_048_576

/** `at`: the stores of the call; for a write, those of one transaction. */
export type ScimCall = {
  readonly at: ManagementDeps
  readonly organization: string
  readonly id: string
  readonly query: { readonly [name: string]: string | undefined }
  readonly body: JsonValue | undefined
  readonly headers: FastifyRequest['headers']
  readonly context: WriteContext
}
export type ScimOutcome = {
  readonly status: keyof typeof SUCCESS
  readonly body?: JsonObject
  readonly tag?: string
  readonly location?: string
}
type Route = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** True for a call that only reads; default: for GET. */
  readonly reads?: boolean
  /** True for a call that may delete an account, which ends memberships in other organizations too. */
  readonly deletes?: true
  /** Shuts a person out if the request asks for it, even if the rest of it is refused. */
  deactivate?(call: ScimCall): Promise<void>
  handle(call: ScimCall): Promise<ScimOutcome>
}

/** The caller is authorized before the body is read, and again under the locks of a write. */
export function addScimRoute(app: FastifyInstance, deps: ManagementDeps, route: Route): void {
  const callers = new WeakMap<FastifyRequest, Caller>()
  app.route<{ Params: { id?: string }; Querystring: { [name: string]: unknown } }>({
    method: route.method,
    url: `${SCIM_PATH}${route.path}`,
    bodyLimit: BODY_BYTES_MAX,
    schema: { hide: true },
    config: { bodies: ['scim', 'json'] },
    onRequest: async (request) => {
      callers.set(request, await authorize(deps, deps, request, callers.has(request)))
    },
    handler: async (request, reply) => {
      const found = callers.get(request)
      if (found === undefined) throw new TypeError('a SCIM call ran before its caller was authorized')
      reply.raw.once('close', deps.places.take({ client: found.name, organization: found.organization }))
      const { status, body, tag, location } = await answer(deps, route, request, found)
      const isUnmodified = route.method === 'GET' && tag !== undefined && !isNoneMatch(request.headers, tag)
      reply.code(SUCCESS[isUnmodified ? 'unmodified' : status]).header('cache-control', 'no-store')
      if (tag !== undefined) reply.header('etag', tag)
      if (location !== undefined) reply.header('location', location)
      return body === undefined || isUnmodified ? reply.send() : reply.type(SCIM_TYPE).send(JSON.stringify(body))
    },
  })
}

async function answer(
  deps: ManagementDeps,
  route: Route,
  request: FastifyRequest<{ Params: { id?: string }; Querystring: { [name: string]: unknown } }>,
  { name, organization }: Caller,
): Promise<ScimOutcome> {
  const call = (at: ManagementDeps): ScimCall => ({
    at,
    organization,
    id: request.params.id ?? '',
    query: queryOf(request.query),
    body: request.body as JsonValue | undefined,
    headers: request.headers,
    context: { actor: name, requestId: request.id },
  })
  if (route.reads ?? route.method === 'GET') return route.handle(call(deps))
  const { id } = request.params
  const directory: readonly Lock[] = route.deletes
    ? [DIRECTORY, TOKENS]
    : [id === undefined ? { beside: DIRECTORY } : { person: id }]
  const write = <T>(handle: (call: ScimCall) => Promise<T>): Promise<T> =>
    withModels(() =>
      deps.atomically({ logs: [...directory, organization] }, async (reach) => {
        const at = within(deps, reach)
        const again = await authorize(deps, at, request, true)
        if (again.organization !== organization)
          throw new RequestProblem('permission_denied', 'the client was bound to another organization meanwhile')
        return handle(call(at))
      }),
    )
  try {
    return await write(route.handle)
  } catch (err) {
    const { deactivate } = route
    if (deactivate !== undefined && deactivates(route.method, request.body as JsonValue | undefined))
      await write(deactivate)
    throw err
  }
}

type Caller = { readonly name: string; readonly organization: string }

/** Accepts a client that is bound to one organization, the only one for its directory. Throws RequestProblem. */
async function authorize(
  deps: ManagementDeps,
  at: Reach,
  { raw }: FastifyRequest,
  provenBefore: boolean,
): Promise<Caller> {
  const { issuer, verifyProof } = deps
  const caller = await authenticateManagementClient(
    { issuer, verifyProof, ...at },
    { message: raw, scope: SCOPE, provenBefore },
  )
  const organization = organizationOf(caller)
  await requireWithin(caller, organization, at.pdp)
  return { name: `service:${caller.token.clientId}`, organization }
}

function organizationOf({ token, organizationScope }: ManagementClient): string {
  // The token may be limited to an organization below the client's.
  const organization = token.organization ?? organizationScope[0]
  if (organization !== undefined) return organization
  throw new RequestProblem('permission_denied', 'SCIM needs a token that is bound to an organization')
}

/** The parameters with names in lower case: Entra ID writes `startIndex`, others `startindex`. */
function queryOf(query: { readonly [name: string]: unknown }): ScimCall['query'] {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      if (typeof value === 'string') return [name.toLowerCase(), value]
      throw new ScimError('invalidValue', `${name} is given more than once`)
    }),
  )
}
