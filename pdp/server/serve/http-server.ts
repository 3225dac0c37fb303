/** The PDP's HTTP server: decisions, management, and the identity service's own paths. All errors have one format. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Fastify from 'fastify'
import type { EntitlementSource, Store } from '../../engine/store/contract.ts'
import type { Directory, Moves, Provisioning } from '../../engine/store/directory.ts'
import type { Controls } from '../../identity/controls.ts'
import type { Identity, IssuerRoutes } from '../../identity/identity.ts'
import { serveInTurns } from '../../shared/process/http/request-queue.ts'
import {
  bindableAddress,
  dialableHost,
  formatAddress,
  type ListenAddress,
  listenError,
} from '../../shared/process/listen.ts'
import type { Log } from '../../shared/process/log.ts'
import type { Spans } from '../../shared/process/tracing/spans.ts'
import { createPlaces } from './authentication/admission.ts'
import { addAuthzen } from './authzen/route.ts'
import type { AnswerQuestion } from './decisions/answer.ts'
import type { AskedFromDeps } from './decisions/asked-from.ts'
import type { DecisionArchive } from './decisions/decision-archive.ts'
import { addDecisions } from './decisions/route.ts'
import { addBodyParsers, addBodyTimeout } from './http/bodies.ts'
import { addDeadline, DEADLINES, type Deadlines } from './http/deadline.ts'
import { addDescription, descriptionBase } from './http/description.ts'
import { closeAfterAnswers } from './http/draining.ts'
import { compileLate } from './http/late-schemas.ts'
import { answerClientError, asHttpProblem, NOSNIFF, sendProblem } from './http/problem-response.ts'
import { answerBrowser, browserAnswer } from './http/public-pages.ts'
import { requestId } from './http/request-id.ts'
import { FORM } from './http/schemas.ts'
import { addSpans } from './http/spans.ts'
import { isFault, RequestProblem, SUCCESS } from './http/status.ts'
import { addMessageGuard, addTextGuard } from './http/text-guard.ts'
import { MANAGEMENT } from './management/calls.ts'
import type { ManagementDeps, ReachAtomically } from './management/deps.ts'
import { isScimPath, problemOfScim, sendScimError } from './scim/errors.ts'
import { addScim } from './scim/scim.ts'
import type { SignalDeps } from './signals/receivers.ts'
import { addSignals } from './signals/routes.ts'

const BODY_BYTES_MAX = 262_144
const HEADER_BYTES_MAX = 16_384
// The longest parameter: an id of 256 characters, percent-encoded.
const PARAMETER_CHARACTERS_MAX = 768
const REQUEST_TIMEOUT_MS = 30_000
/** How long open requests may take to finish at a shutdown. */
const DRAIN_TIMEOUT_MS = 5_000
/** Methods of the framework. Any other gets the answer for an unknown path. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'] as const
/** How many management calls of one client may be open at once. A stream counts to its end. */
const CALLS_PER_CLIENT_MAX = 64

/** The parts of the identity service that the server calls. */
export type IdentityHandler = Pick<IssuerRoutes, 'validateClient'> &
  Pick<
    Identity,
    'introspect' | 'recognize' | 'verifyProof' | 'publicPages' | 'signStatement' | 'events' | keyof Controls
  > & {
    /** Returns true if it answered the request. */
    handle(req: IncomingMessage, res: ServerResponse, deadlineMs: number): Promise<boolean>
  }
export type HttpDeps = AskedFromDeps &
  Pick<SignalDeps, 'pdp' | 'people' | 'sidecars' | 'transmitter'> & {
    readonly identity: IdentityHandler
    readonly store: Store
    readonly entitlements: EntitlementSource
    readonly directory: Directory
    readonly moves: Moves
    readonly provisioning: Provisioning
    /** Runs the transactions of management writes. */
    readonly atomically: ReachAtomically
    readonly answer: AnswerQuestion
    /** The archive of all PDPs' decisions; null or absent: none. */
    readonly archive?: Pick<DecisionArchive, 'denied'> | null
    readonly issuer: string
    readonly log: Log
    /** Time for the whole request to arrive, or for the next piece of a streamed body. Default 30 s. */
    readonly bodyTimeoutMs?: number
    /** The time for a call. Default: 1 s for a question, 5 s for any other call. */
    readonly deadlines?: Deadlines
    /** Takes events that other issuers push; absent: events are refused. */
    readonly receiver?: { push(req: IncomingMessage, res: ServerResponse, receiverId: string): Promise<void> }
    /** The tracer; default: no spans are made. */
    readonly spans?: Spans | null
    /** Gets each answered request, with its route's pattern. */
    readonly observe: (request: { route: string; method: string; status: number; durationMs: number }) => void
  }
export type HttpServer = {
  readonly url: string
  /** Makes each answer the last one of its connection. New connections and requests are still accepted. */
  drain(): void
  close(): Promise<void>
}

/** The server before it listens; `inject` of the instance answers without a socket. */
export async function createHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    // Requests on open connections are answered while this server drains.
    return503OnClosing: false,
    requestTimeout: 0, // bodies.ts sets the limit, because it knows which routes stream
    http: { maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: REQUEST_TIMEOUT_MS },
    routerOptions: { maxParamLength: PARAMETER_CHARACTERS_MAX },
    // Bodies are validated as they came: no value is converted, added or dropped.
    ajv: {
      customOptions: {
        allErrors: true,
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        strictTypes: false,
        // The schemas are our own and tests compile each. Checking them against the meta-schema took a third of the time for routes.
        meta: false,
        validateSchema: false,
        // The problem describes the expected form of a text in words that its schema holds.
        keywords: [FORM],
        verbose: true,
      },
    },
    genReqId: requestId,
    clientErrorHandler(err, socket) {
      const answer = (): void =>
        answerClientError(err, socket, (packet) => browserAnswer(deps.identity.publicPages, packet))
      const queue = queueOf(socket)
      // Requests that arrived complete before the malformed one are answered first.
      if (queue.current === null || queue.current.req.complete) queue.endWith(answer)
      else answer()
    },
    // The path cannot be read, so no route has seen the request.
    frameworkErrors: (err, request, reply) =>
      void (
        answerBrowser(deps.identity.publicPages, request, reply) ?? sendProblem(request, reply, asHttpProblem(err))
      ),
  })
  const queueOf = serveInTurns(app.server)
  // Answers are not checked: response schemas only feed the OpenAPI description.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data))
  compileLate(app)
  addObservation(app, deps)
  if (deps.spans) addSpans(app, deps.spans)
  addBodyParsers(app)
  addBodyTimeout(app, deps.bodyTimeoutMs ?? REQUEST_TIMEOUT_MS)
  addMessageGuard(app)
  addTextGuard(app)
  addProblemAnswers(app, deps)
  await app.register(swagger, { openapi: descriptionBase(deps.issuer) })
  addRoutes(app, deps)
  return app
}

/** Throws StartError if it cannot listen on the address. */
export async function listenHttp(app: FastifyInstance, address: ListenAddress): Promise<HttpServer> {
  const { host, port: wanted } = await bindableAddress(address)
  const drain = closeAfterAnswers(app.server)
  try {
    await app.listen({ host, port: wanted })
  } catch (err) {
    throw listenError(err, 'The HTTP listener', address)
  }
  const bound = app.server.address()
  const port = bound === null || typeof bound === 'string' ? wanted : bound.port
  return {
    url: `http://${formatAddress({ host: dialableHost(host), port })}`,
    drain,
    async close() {
      drain()
      const timer = setTimeout(() => app.server.closeAllConnections(), DRAIN_TIMEOUT_MS)
      await app.close()
      clearTimeout(timer)
    },
  }
}

function addProblemAnswers(app: FastifyInstance, deps: HttpDeps): void {
  const refuse = (err: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const isScim = isScimPath(request.url)
    const problem = isScim ? problemOfScim(err) : asHttpProblem(err)
    if (isFault(problem.code))
      deps.log.error({ event: 'request_failed', request_id: request.id, code: problem.code, err: problem.cause })
    if (isScim) return sendScimError(request, reply, err)
    const page = problem.code === 'route_unknown' ? answerBrowser(deps.identity.publicPages, request, reply) : null
    return page ?? sendProblem(request, reply, problem)
  }
  const unknown = (): RequestProblem => new RequestProblem('route_unknown', 'there is nothing at this path')
  app.setErrorHandler(refuse)
  addDeadline(app, deps.deadlines ?? DEADLINES)
  // Runs before the body is read: an unknown path is 404, even if its body is missing or malformed.
  app.addHook('onRequest', (request, _reply, done) => done(request.is404 ? unknown() : undefined))
  app.setNotFoundHandler((request, reply) => refuse(unknown(), request, reply))
}

function addObservation(app: FastifyInstance, deps: HttpDeps): void {
  app.addHook('onRequest', (request, reply, done) => {
    // Set on the raw response, so that the identity service's answers have them too.
    reply.raw.setHeader('x-request-id', request.id)
    reply.raw.setHeader(...NOSNIFF)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route = 'none', config } = request.routeOptions
    const { method } = request
    const { statusCode: status } = reply.raw
    const durationMs = reply.elapsedTime
    deps.observe({ route, method, status, durationMs })
    // A question that was answered already has a line: that of its decision.
    if (config.deadline !== 'decision' || status !== SUCCESS.ok) {
      const duration_ms = Math.round(durationMs * 1000) / 1000
      deps.log.info({ event: 'request', request_id: request.id, route, method, status, duration_ms })
    }
    done()
  })
}

function addRoutes(app: FastifyInstance, deps: HttpDeps): void {
  const methods = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const known = methods.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) known.add(method)
    methods.set(route.url, known)
  })
  const {
    introspect,
    recognize,
    verifyProof,
    validateClient,
    signStatement,
    publicPages: _,
    ...controls
  } = deps.identity
  const {
    issuer,
    pdp,
    store,
    entitlements,
    directory,
    moves,
    provisioning,
    atomically,
    people,
    sidecars,
    transmitter,
  } = deps
  const proxies = deps.trustedProxies === undefined ? {} : { trustedProxies: deps.trustedProxies }
  addDecisions(app, { ...proxies, issuer, answer: deps.answer, recognize, verifyProof })
  const places = createPlaces(CALLS_PER_CLIENT_MAX)
  const management: ManagementDeps & Pick<HttpDeps, 'log'> = {
    ...controls,
    issuer,
    verifyProof,
    introspect,
    validateClient,
    places,
    log: deps.log,
    pdp,
    store,
    entitlements,
    directory,
    moves,
    provisioning,
    atomically,
    streams: transmitter,
    ...(people === undefined ? {} : { people }),
    ...(sidecars === undefined ? {} : { sidecars }),
    ...(deps.archive === undefined ? {} : { archive: deps.archive }),
  }
  for (const add of MANAGEMENT) add(app, management)
  const asking = { ...proxies, issuer, pdp, directory, places, introspect, recognize, verifyProof }
  addAuthzen(app, { ...asking, answer: deps.answer, signStatement })
  addSignals(app, { ...management, transmitter })
  addScim(app, management)
  addDescription(app)
  addReceiver(app, deps)
  for (const [url, known] of [...methods]) addMethodProblem(app, url, known)
  for (const url of ['/oauth/*', '/.well-known/*', '/account', '/account/*']) addIdentity(app, url, deps)
}

/** RFC 9110 section 15.5.6: a known path with an unsupported method answers 405 and lists its methods. */
export function addMethodProblem(app: FastifyInstance, url: string, known: ReadonlySet<string>): void {
  const others = METHODS.filter((method) => !known.has(method))
  const headers = { allow: [...known].join(', ') }
  app.route({
    method: others,
    url,
    schema: { hide: true },
    onRequest: async () => {
      throw new RequestProblem('method_unsupported', `this path supports ${headers.allow}`, { headers })
    },
    handler: () => undefined,
  })
}

/** Adds the receiver of pushed events (RFC 8935), which reads a body only after it knows the sender. */
function addReceiver(app: FastifyInstance, { receiver }: HttpDeps): void {
  if (receiver === undefined) return
  app.post<{ Params: { receiver: string } }>('/signals/received/:receiver', {
    schema: { hide: true },
    config: { deadline: 'none' },
    onRequest: async (request, reply) => {
      await receiver.push(request.raw, reply.raw, request.params.receiver)
      return reply.hijack()
    },
    handler: () => undefined,
  })
}

/** Passes requests to the identity service before any other code reads the body: it reads and answers them itself. */
function addIdentity(app: FastifyInstance, url: string, { identity, deadlines = DEADLINES }: HttpDeps): void {
  app.all(url, {
    schema: { hide: true },
    // The identity service answers late requests itself, each in the format of its path.
    config: { deadline: 'none' },
    onRequest: async (request, reply) => {
      if (await identity.handle(request.raw, reply.raw, deadlines.callMs)) return reply.hijack()
      throw new RequestProblem('route_unknown', 'there is nothing at this path')
    },
    handler: () => undefined,
  })
}
