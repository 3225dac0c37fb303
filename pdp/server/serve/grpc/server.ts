/** The PDP's gRPC server: Decide, DecideStream, reports of routes, health and reflection. */
import { createServer } from 'node:net'
import { Duplex } from 'node:stream'
import { toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js'
import { ReflectionService } from '@grpc/reflection'
import { HealthImplementation } from 'grpc-health-check'
import {
  type DecideRequest,
  DecisionService,
  file_portcullis_v1_decision,
} from '../../../../proto/gen/portcullis/v1/decision_pb.ts'
import {
  file_portcullis_v1_routes,
  type ReportRequest,
  type ReportResponse,
  RouteService,
} from '../../../../proto/gen/portcullis/v1/routes_pb.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import { withTimeout } from '../../../shared/base/with-timeout.ts'
import { StartError } from '../../../shared/process/exit.ts'
import { serviceDefinition } from '../../../shared/process/grpc/service.ts'
import { formatAddress, isLoopback, type ListenAddress, listenError, listenOn } from '../../../shared/process/listen.ts'
import type { Log } from '../../../shared/process/log.ts'
import { DECISION_MS, unanswered } from '../authentication/admission.ts'
import type { AuthenticateCaller, GrpcCaller } from '../authentication/grpc-callers.ts'
import type { Answer, AnswerQuestion } from '../decisions/answer.ts'
import type { WatchedQuestions } from '../decisions/watched-questions.ts'
import { asRequestProblem, isFault, RequestProblem, STATUS } from '../http/status.ts'
import { createAnswerEncoder } from './answer-codec.ts'
import type { StreamCall } from './answer-sender.ts'
import { type Budgets, createBudgets, type Holding, hold } from './budgets.ts'
import { readRequest } from './question-codec.ts'
import { decodeStreamRequest } from './questions.ts'
import type { ReportCall, RouteReports } from './route-reports.ts'
import { type OpenStream, serveStream } from './stream.ts'
import type { ReloadedTls } from './tls.ts'
import { refuseUnreadable } from './unreadable.ts'
import { createOutcomeWeight, type OutcomeWeight, questionWeight } from './weights.ts'

const MESSAGE_BYTES_MAX = 1_048_576
const DRAIN_TIMEOUT_MS = 5_000
const RECHECK_INTERVAL_MS = 30_000
/** The caller on loopback, where no authentication is needed. */
const LOCAL: GrpcCaller = { name: 'this machine', group: null }
const RETRY_PUSHBACK_MS = '1000'

export type GrpcDeps = {
  readonly recognize: (token: string) => Promise<TokenState>
  readonly answer: AnswerQuestion
  readonly watched: WatchedQuestions
  /** Authenticates callers, except on loopback, where only this machine can call. */
  readonly authenticate: AuthenticateCaller
  /** The server's certificate; null: plain text. */
  readonly tls: ReloadedTls | null
  readonly log: Log
  /** Takes reports of sidecars; absent: they are refused, since they would not be shown. */
  readonly routes?: RouteReports | null
  /** The amounts that callers may use at once; default: the limits of a process. */
  readonly budgets?: Pick<Budgets, 'of'>
  /** The time for a call of Decide, and for the authentication of a stream. Default: that of a decision. */
  readonly deadlineMs?: number
  /** How often the caller of a long stream is authenticated again. Default 30 s. */
  readonly recheckIntervalMs?: number
}
/** `address`: the `host:port` on which it listens. */
export type GrpcServer = { readonly address: string; close(): Promise<void> }

/** Starts the server, without TLS only on loopback. Throws StartError for another address without TLS, and when it cannot listen. */
export async function startGrpcServer(deps: GrpcDeps, listen: ListenAddress): Promise<GrpcServer> {
  const local = isLoopback(listen.host)
  if (!local && deps.tls === null) {
    throw new StartError(
      `The gRPC listener cannot listen on ${formatAddress(listen)} without TLS: plain text is for loopback addresses only`,
    )
  }
  const server = new Server({
    interceptors: [refuseUnreadable],
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_concurrent_streams': 1_000,
    'grpc.keepalive_permit_without_calls': 1,
    // Channelz is off: its debugging service is not served here, and its counting takes a quarter of the library's time per call.
    'grpc.enable_channelz': 0,
  })
  const streams = addDecisionService(server, deps, local ? null : deps.authenticate)
  const health = new HealthImplementation({ '': 'SERVING', [DecisionService.typeName]: 'SERVING' })
  health.addToServer(server)
  addReflection(server)
  const bound = await bind(server, listen, deps.tls?.credentials ?? ServerCredentials.createInsecure())
  return {
    address: formatAddress(bound),
    async close() {
      for (const name of ['', DecisionService.typeName]) health.setStatus(name, 'NOT_SERVING')
      await drain(server, streams)
      await deps.watched.close()
      deps.tls?.close()
    },
  }
}

type ServerCall = Pick<
  ServerDuplexStream<unknown, unknown>,
  'once' | 'emit' | 'getPeer' | 'metadata' | 'getAuthContext'
>

/** `authenticate`: null on loopback. */
function addDecisionService(
  server: Server,
  deps: GrpcDeps,
  authenticate: AuthenticateCaller | null,
): Pick<ReturnType<typeof createStreams>, 'drain'> {
  const { recognize, answer, watched, log, routes, deadlineMs = DECISION_MS } = deps
  const budgets = deps.budgets ?? createBudgets()
  const streams = createStreams(authenticate, deps.recheckIntervalMs ?? RECHECK_INTERVAL_MS)
  const problemOf = (err: unknown): RequestProblem => {
    const problem = asRequestProblem(err)
    if (isFault(problem.code)) log.error({ event: 'request_failed', code: problem.code, err: problem.cause })
    return problem
  }
  const problemCode = (err: unknown) => problemOf(err).code
  const refuse = (call: ServerCall, err: unknown): void => void call.emit('error', grpcError(problemOf(err)))
  function open(call: StreamCall, caller: GrpcCaller): void {
    const holding = budgets.of(caller)
    const release = hold(holding, 'streams', 1)
    if (release === null) throw tooManyStreams()
    // The header is sent now, because callers compare their clock with its Date field.
    call.sendMetadata(new Metadata())
    const { group } = caller
    streams.follow(call, serveStream(call, { recognize, answer, watched, group, holding, problemCode }), release)
  }
  function openReport(call: ServerCall & ReportCall, caller: GrpcCaller): void {
    const stream = routes?.serve(call, caller) ?? null
    if (stream === null) throw tooManyStreams()
    streams.follow(call, stream, () => undefined)
  }
  function admit<Call extends ServerCall>(call: Call, opened: (call: Call, caller: GrpcCaller) => void): void {
    keepOneMessage(call)
    const arrived = hold(budgets.of(strangerOf(call)), 'streams', 1)
    if (arrived === null) return void refuse(call, tooManyStreams())
    withTimeout(authenticate?.(call) ?? Promise.resolve(LOCAL), deadlineMs, unanswered)
      .finally(arrived)
      .then((caller) => opened(call, caller))
      .catch((err: unknown) => refuse(call, err))
  }
  const definition = serviceDefinition(DecisionService)
  const encode = createAnswerEncoder()
  const weightOf = createOutcomeWeight()
  const service = {
    decide: { ...definition.decide, responseSerialize: encode.one },
    decideStream: {
      ...definition.decideStream,
      requestDeserialize: decodeStreamRequest,
      responseSerialize: encode.all,
    },
  }
  server.addService(service, {
    decide(call: ServerUnaryCall<DecideRequest, Answer>, done: sendUnaryData<Answer>) {
      const decided = decide(call, { recognize, answer, authenticate, budgets, weightOf })
      withTimeout(decided, deadlineMs, unanswered).then(
        (decision) => done(null, decision),
        (err: unknown) => done(grpcError(problemOf(err))),
      )
    },
    decideStream: (call: StreamCall) => admit(call, open),
  })
  if (routes)
    server.addService(serviceDefinition(RouteService), {
      report: (call: ServerDuplexStream<ReportRequest, ReportResponse>) => admit(call, openReport),
    })
  return streams
}

/** The open streams, whose callers are authenticated again at an interval. */
function createStreams(authenticate: AuthenticateCaller | null, recheckIntervalMs: number) {
  const streams = new Set<OpenStream>()
  let draining = false
  /** Ends a stream when its caller may no longer call. The caller can open another stream with a newer token. */
  function recheck(call: ServerCall, stream: OpenStream): NodeJS.Timeout {
    return setInterval(() => {
      authenticate?.(call).catch((err: unknown) => {
        if (!isFault(asRequestProblem(err).code)) stream.drain()
      })
    }, recheckIntervalMs).unref()
  }
  return {
    follow(call: ServerCall, stream: OpenStream, onEnd: () => void): void {
      streams.add(stream)
      // The stream was being opened when the server began to close.
      if (draining) stream.drain()
      const timer = recheck(call, stream)
      for (const end of ['close', 'cancelled', 'finish']) {
        call.once(end, () => {
          if (streams.delete(stream)) onEnd()
          clearInterval(timer)
        })
      }
    },
    /** Ends all streams in order, and those that open later as soon as they open. */
    drain(): void {
      draining = true
      for (const stream of streams) stream.drain()
    },
  }
}

async function decide(
  call: ServerUnaryCall<DecideRequest, Answer>,
  deps: Pick<GrpcDeps, 'recognize' | 'answer'> & {
    readonly authenticate: AuthenticateCaller | null
    readonly budgets: Pick<Budgets, 'of'>
    readonly weightOf: OutcomeWeight
  },
): Promise<Answer> {
  const { request } = call
  const keep = holdUntilEnd(call)
  const weight = questionWeight(request) + request.token.length
  const arrived = keep(deps.budgets.of(strangerOf(call)), weight)
  const caller = (await deps.authenticate?.(call)) ?? LOCAL
  const budget = deps.budgets.of(caller)
  keep(budget, weight)
  arrived()
  if (request.token === '') throw new RequestProblem('request_invalid', 'token is empty')
  const traceparent = String(call.metadata.get('traceparent')[0] ?? '')
  const answer = await deps.answer(await deps.recognize(request.token), { ...readRequest(request), traceparent })
  keep(budget, deps.weightOf({ answer }))
  return answer
}

/** Counts bytes until the answer is sent, the caller has left, or the returned function is called. Throws RequestProblem `overloaded`. */
function holdUntilEnd(call: object): (budget: Holding, weight: number) => () => void {
  const http2 = Reflect.get(Object(Reflect.get(call, 'call')), 'stream')
  return (budget, weight) => {
    const release = hold(budget, 'bytes', weight)
    if (release === null) throw new RequestProblem('overloaded', 'the questions of this caller take too much memory')
    if (http2 instanceof Duplex && !http2.destroyed) http2.once('close', release)
    else release()
    return release
  }
}

const tooManyStreams = (): RequestProblem => new RequestProblem('overloaded', 'too many streams are open')

/** A caller before authentication. All such callers share one group's limits, because a stranger can have many addresses. */
const strangerOf = (call: Pick<ServerCall, 'getPeer'>): GrpcCaller => ({
  name: `address ${call.getPeer().replace(/:\d+$/, '')}`,
  group: 'strangers',
})

/** Lets an unread stream buffer only one message instead of 16, which no budget would count. */
function keepOneMessage(call: object): void {
  const state: unknown = Reflect.get(call, '_readableState')
  if (typeof state === 'object' && state !== null) Reflect.set(state, 'highWaterMark', 1)
}

/** The problem code travels in the trailer `portcullis-problem`. */
function grpcError(problem: RequestProblem): { code: number; details: string; metadata: Metadata } {
  const metadata = new Metadata()
  metadata.set('portcullis-problem', problem.code)
  // gRPC clients wait this long before a retry.
  if (problem.code === 'overloaded') metadata.set('grpc-retry-pushback-ms', RETRY_PUSHBACK_MS)
  return { code: STATUS[problem.code].grpc, details: problem.message, metadata }
}

async function bind(server: Server, wanted: ListenAddress, credentials: ServerCredentials): Promise<ListenAddress> {
  // A plain server tries the address first, because grpc-js writes to standard error when it cannot listen.
  const probe = createServer()
  const { host } = await listenOn(probe, 'The gRPC listener', wanted)
  await new Promise((resolve) => probe.close(resolve))
  return new Promise((resolve, reject) => {
    server.bindAsync(formatAddress({ host, port: wanted.port }), credentials, (err, port) => {
      // grpc-js gives the reason only as text.
      if (err !== null) reject(listenError(withCode(err), 'The gRPC listener', wanted))
      else resolve({ host, port })
    })
  })
}

function withCode(err: Error): Error {
  const code = /\b(EADDRINUSE|EACCES|EADDRNOTAVAIL|ENOTFOUND)\b/.exec(err.message)?.[1] ?? 'EADDRINUSE'
  return Object.assign(new Error(err.message, { cause: err }), { code })
}

/** Sends GOAWAY, waits for open answers, then closes the connections that are left. */
async function drain(server: Server, streams: Pick<ReturnType<typeof createStreams>, 'drain'>): Promise<void> {
  streams.drain()
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, DRAIN_TIMEOUT_MS)
  const closed = new Promise<void>((done) => server.tryShutdown(() => done()))
  await Promise.race([closed, late])
  clearTimeout(timer)
  server.forceShutdown()
}

/** Server reflection: gRPC tools learn the services from the server. */
function addReflection(server: Server): void {
  const files = [file_portcullis_v1_decision, ...file_portcullis_v1_decision.dependencies, file_portcullis_v1_routes]
  const fileDescriptorProtos = files.map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)))
  new ReflectionService({
    [DecisionService.typeName]: { format: 'Protocol Buffer 3 DescriptorProto', type: {}, fileDescriptorProtos },
  }).addToServer(server)
}
