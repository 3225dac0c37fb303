/** The door for Envoy and for gateways based on it: external authorization over gRPC (ext_authz v3). */
import { randomUUID } from 'node:crypto'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { bindableAddress, formatAddress, type ListenAddress, listenError } from '../../pdp/shared/process/listen.ts'
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
} from '../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import type { Pem } from '../config/certificates.ts'
import { nextNonce } from '../enforce/own-answer.ts'
import { CALLER_FIELD, type GrpcProfile } from '../http/door-fields.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { DoorEntry } from '../route-file/doors.ts'
import type { KnowsCaller } from './caller.ts'
import { readCheck, UnfitGateway } from './check-request.ts'
import { allowing, denying } from './check-response.ts'
import { denyErrors } from './deny-errors.ts'
import { type DoorOutcome, type EnterDoor, evaluateHeld, failure } from './held-request.ts'
import { ownFields } from './service-fields.ts'
import { openSocketFile } from './socket-file.ts'

export type Door = {
  /** `host:port` as bound, or `unix:` and the path. */
  readonly address: string
  /** Applies the limits of a reloaded route file. */
  applyLimits(): void
  /** Answers the open questions, and accepts no more. */
  close(): Promise<void>
}
export type DoorDeps = {
  readonly enter: EnterDoor
  /** The limits that are in force now. */
  readonly limits: () => SidecarLimits
  readonly knowsCaller: KnowsCaller
  readonly keys: { readonly tls: Pem | null }
  readonly log: { warn(line: object): void; error(line: object): void }
}

/** The longest time for an answer, if the gateway sends no shorter deadline. */
export const ANSWER_MS = 5_000
/** The share of the gateway's deadline in which we answer: after it, the gateway sees an error, which it may let pass. */
const SHARE_OF_DEADLINE = 0.8
/** The longest message: larger than any body that a check may read. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024
/** How long a closing door waits: an open question gets the full time for its answer, because the gateway treats a cut one as an error. */
const CLOSE_MS = ANSWER_MS + 1_000

type CheckCall = ServerUnaryCall<Buffer, CheckResponse>
type Entry = DoorEntry & { readonly profile: GrpcProfile }

/** Throws StartError when it cannot listen. */
export async function openExtAuthz(entry: Entry, deps: DoorDeps): Promise<Door> {
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.keepalive_permit_without_calls': 1,
    interceptors: [denyErrors(entry.profile, deps.log)],
  })
  const path = `/${Authorization.typeName}/${Authorization.method.check.name}`
  const definition = {
    path,
    requestStream: false,
    responseStream: false,
    // Parsed later, in `answerTo`: an error here would be a gRPC error, which a gateway may be configured to let pass.
    requestDeserialize: (bytes: Buffer): Buffer => bytes,
    requestSerialize: (bytes: Buffer): Buffer => bytes,
    responseSerialize: (response: CheckResponse): Buffer => Buffer.from(toBinary(CheckResponseSchema, response)),
    responseDeserialize: (bytes: Buffer): CheckResponse => fromBinary(CheckResponseSchema, bytes),
  } as const
  server.addService(
    { check: definition },
    {
      check(call: CheckCall, done: sendUnaryData<CheckResponse>) {
        answerTo(call, entry, deps).then(
          (answer) => done(null, answer),
          (err: unknown) => {
            deps.log.error({ event: 'request_failed', door: entry.profile, err })
            done(null, denying(failure('internal', randomUUID())))
          },
        )
      },
    },
  )
  const address = await bind(server, entry, deps.keys.tls)
  // No limits need to be applied, since each question reads those in force.
  return { address, applyLimits: () => undefined, close: () => close(server) }
}

async function answerTo(call: CheckCall, entry: Entry, { enter, knowsCaller, log }: DoorDeps): Promise<CheckResponse> {
  const { profile, body } = entry
  if (!knowsCaller(call.metadata.get(CALLER_FIELD).map(String))) {
    log.warn({ event: 'door_caller_refused', door: profile, address: call.getPeer() })
    return denying(failure('internal', randomUUID()))
  }
  try {
    const held = readCheck(fromBinary(CheckRequestSchema, call.request), { profile, body })
    const withinMs = timeFor(call)
    const asked = { ...held, door: profile, holdsBody: body, withinMs, objection: () => null }
    const verdict = await evaluateHeld(asked, enter)
    return verdict.kind === 'answer' ? denying(verdict.answer) : allow(verdict)
  } catch (err) {
    const reason = messageOf(err)
    log.error({ event: 'door_unfit', door: profile, reason, ...(!(err instanceof UnfitGateway) && { err }) })
    return denying(failure('internal', randomUUID()))
  }
}

function timeFor(call: CheckCall): number {
  const deadline = call.getDeadline()
  const leftMs = (deadline instanceof Date ? deadline.getTime() : deadline) - Date.now()
  return Math.max(1, Math.min(ANSWER_MS, leftMs * SHARE_OF_DEADLINE))
}

function allow(verdict: Extract<DoorOutcome, { kind: 'allow' }>): CheckResponse {
  const { permit, rules: inForce, origin, requestId, toClient, rewritten } = verdict
  const { rules, publicPort } = inForce.forwarding
  const own = ownFields(permit, { origin, requestId, publicPort, rules })
  return allowing(permit, {
    own,
    rules,
    rewritten,
    toClient: ['x-request-id', requestId, ...nextNonce(permit, inForce), ...toClient],
  })
}

async function bind(server: Server, { listen, profile }: Entry, tls: Pem | null): Promise<string> {
  const credentials = credentialsOf(tls)
  const what = `The ${profile} door`
  const listening = (target: string): Promise<number> =>
    new Promise((resolve, reject) =>
      server.bindAsync(target, credentials, (err, port) => (err === null ? resolve(port) : reject(err))),
    )
  if ('path' in listen) {
    await openSocketFile(listen.path, what, () => listening(`unix:${listen.path}`))
    return `unix:${listen.path}`
  }
  const bound: ListenAddress = await bindableAddress(listen)
  try {
    return formatAddress({ host: bound.host, port: await listening(formatAddress(bound)) })
  } catch (err) {
    // The code is cut out of a text, in which alone grpc-js gives it.
    const code = /\b(EADDRINUSE|EACCES|EADDRNOTAVAIL|ENOTFOUND)\b/.exec(String(err))?.[1]
    const known = listenError(Object.assign(new Error(String(err)), { code }), what, listen)
    throw known instanceof StartError ? known : new StartError(`${what} cannot listen: ${String(err)}`)
  }
}

function credentialsOf(tls: Pem | null): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure()
  const { ca, cert, key } = tls
  if (cert === null || key === null) throw new StartError('tls of a door needs a certificate and its key')
  return ServerCredentials.createSsl(ca, [{ cert_chain: cert, private_key: key }], ca !== null)
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), CLOSE_MS)
    server.tryShutdown(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
