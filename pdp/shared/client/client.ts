/** `portcullis/client`: asks a PDP in another process. Questions use one stream, those of one event loop pass one message. */
import { ChannelCredentials } from '@grpc/grpc-js'
import type { EntitlementResult, PermissionCheck } from '../domain/decision.ts'
import type { JsonObject } from '../domain/json.ts'
import { ask } from './attempts.ts'
import { type Decision, echoes, type StreamedQuestion } from './codec.ts'
import { createPdpPool } from './pool.ts'

/**
 * The addresses of the PDPs, and how this process authenticates itself.
 * @example
 * ```ts
 * const options: RemotePdpOptions = { address: 'pdp.internal:8443', tls: {}, token: () => process.env.PDP_TOKEN ?? '' }
 * ```
 */
export type RemotePdpOptions = {
  /** `host:port`, or several: each question goes to one that answers. */
  readonly address: string | readonly string[]
  /** TLS to the PDP; null: plain text, which a PDP accepts on loopback only. */
  readonly tls: RemoteTls | null
  /** The access token of this process, with the scope `decisions:ask`. Called for each new stream. Default: no token is sent. */
  readonly token?: () => string
  /** The milliseconds for an answer, with all attempts. Default 500. */
  readonly deadlineMs?: number
  /** How many questions may wait for answers; more are refused. Default 10,000. */
  readonly openMax?: number
}

/**
 * PEM texts. Without `ca`, the authorities that Node trusts; with `certificate` and `key`, this process shows its own.
 *
 * @example
 * ```ts
 * import { readFileSync } from 'node:fs'
 *
 * const tls: RemoteTls = { ca: readFileSync('ca.pem', 'utf8') }
 * ```
 */
export type RemoteTls = { readonly ca?: string; readonly certificate?: string; readonly key?: string }

/**
 * A question about the bearer of a token. `context`: values of parameters of conditions. `requestId` and
 * `clientAddress`: of your request and of its sender, for the decision log.
 *
 * @example
 * ```ts
 * const question: RemoteQuestion = { permissions: [{ relation: 'viewer', resource: 'invoice:42' }], entitlements: ['feature.export'] }
 * ```
 */
export type RemoteQuestion = {
  readonly permissions?: readonly PermissionCheck[]
  readonly entitlements?: readonly string[]
  readonly context?: JsonObject
  readonly requestId?: string
  readonly clientAddress?: string
  /** The milliseconds for this answer. Default: `deadlineMs` of RemotePdpOptions. */
  readonly deadlineMs?: number
}

/**
 * The PDP's decision. With a token that is not active, nothing is allowed, and `subject` is null.
 *
 * @example
 * ```ts
 * const isAllowed = (decision: RemoteDecision): boolean => decision.permissions.every(({ allowed }) => allowed)
 * ```
 */
export type RemoteDecision = {
  readonly active: boolean
  readonly subject: { readonly type: string; readonly id: string } | null
  readonly organization: string | null
  /** The result of each check, in the order asked. `error`: why the check is undecided; `allowed` is then false. */
  readonly permissions: readonly (PermissionCheck & { readonly allowed: boolean; readonly error: string | null })[]
  /** The entitlements by key; null: the organization does not have it. */
  readonly entitlements: ReadonlyMap<string, EntitlementResult | null>
}

/**
 * Nothing was decided: treat it as a denial, or answer 503. `code`: `pdp_unavailable`, `overloaded`, or that of the PDP.
 *
 * @example
 * ```ts
 * const statusOf = (error: unknown): number => (error instanceof DecisionError ? 503 : 500)
 * ```
 */
export class DecisionError extends Error {
  override readonly name = 'DecisionError'
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * A PDP that runs elsewhere.
 *
 * @example
 * ```ts
 * const pdp: RemotePdp = connectPdp({ address: '127.0.0.1:9090', tls: null })
 * ```
 */
export type RemotePdp = {
  /** Asks for a decision. Throws DecisionError. */
  decide(token: string, question: RemoteQuestion): Promise<RemoteDecision>
  /** The result of one check; false also for a token that is not active. Throws DecisionError. */
  can(token: string, relation: string, resource: string): Promise<boolean>
  /** True if a PDP answers at this moment. */
  isConnected(): boolean
  /** Ends the connections, which keep the process alive. Questions that wait are refused. */
  close(): void
}

const DEADLINE_MS = 500
const OPEN_MAX = 10_000
const ASKER = 'this process'

/**
 * Connects to one PDP or several, and connects again whenever a connection is lost. Only an answer that allows, in time and
 * to exactly what was asked, ever allows. Throws TypeError for options that cannot work.
 *
 * @example
 * ```ts
 * const pdp = connectPdp({ address: '127.0.0.1:9090', tls: null })
 * const mayRead = (accessToken: string): Promise<boolean> => pdp.can(accessToken, 'viewer', 'invoice:42')
 * ```
 */
export function connectPdp(options: RemotePdpOptions): RemotePdp {
  const { deadlineMs = DEADLINE_MS, openMax = OPEN_MAX } = options
  const addresses = [options.address].flat()
  if (addresses.length === 0 || addresses.some((address) => !/^\S+:\d+$/.test(address)))
    throw new TypeError('address is not host:port, or a list of those')
  assertDeadline(deadlineMs)
  /** The end of the last connection, in words: errors contain it, so that an operator knows what to correct. */
  let lastClosed = ''
  let openCount = 0
  let closed = false
  const pool = createPdpPool({
    addresses,
    credentials: credentialsOf(options.tls),
    authorize: options.token ?? null,
    random: Math.random,
    clock: Date.now,
    onConnectionChange: ({ open, reason }) => {
      lastClosed = open ? lastClosed : reason
    },
  })
  const undecided = (reason: string, code: string): DecisionError =>
    new DecisionError(code, lastClosed === '' ? reason : `${reason}; the last connection ended: ${lastClosed}`)

  const settled = (): void => {
    openCount -= 1
  }

  async function decide(token: string, asked: RemoteQuestion): Promise<RemoteDecision> {
    if (closed) throw new DecisionError('pdp_unavailable', 'the client was closed')
    if (openCount >= openMax) throw new DecisionError('overloaded', `${openMax} questions wait for answers already`)
    const question = streamed(token, asked)
    const timeoutMs = asked.deadlineMs ?? deadlineMs
    assertDeadline(timeoutMs)
    openCount += 1
    const read = (found: Decision): RemoteDecision => readDecision(found, question)
    return ask(pool, { question, timeoutMs, asker: ASKER, read, undecided, settled })
  }

  return {
    decide,
    async can(token, relation, resource) {
      const { permissions } = await decide(token, { permissions: [{ relation, resource }] })
      const error = permissions[0]?.error ?? null
      if (error !== null)
        throw new DecisionError(error, `the PDP could not decide ${relation} of ${resource}: ${error}`)
      return permissions[0]?.allowed === true
    },
    isConnected: () => !closed && pool.silentSinceMs() === null,
    close() {
      closed = true
      pool.close()
    },
  }
}

function assertDeadline(ms: number): void {
  if (!(ms > 0 && ms < 2 ** 31)) throw new TypeError('deadlineMs is not a positive number of milliseconds')
}

function credentialsOf(tls: RemoteTls | null): ChannelCredentials {
  if (tls === null) return ChannelCredentials.createInsecure()
  const bytes = (pem: string | undefined): Buffer | null => (pem === undefined ? null : Buffer.from(pem))
  return ChannelCredentials.createSsl(bytes(tls.ca), bytes(tls.key), bytes(tls.certificate))
}

function streamed(token: string, asked: RemoteQuestion): StreamedQuestion {
  if (typeof token !== 'string' || token === '') throw new TypeError('the token is not a text')
  const { permissions = [], entitlements = [], context, requestId = '', clientAddress = '' } = asked
  return {
    token,
    // The token serves as its own digest, which never leaves this process.
    digest: token,
    permissions,
    entitlements,
    context: context === undefined ? '' : JSON.stringify(context),
    requestId,
    clientAddress,
  }
}

function readDecision(decision: Decision, question: StreamedQuestion): RemoteDecision {
  const { active, subjectType, subjectId, organization } = decision
  if (active && !echoes(decision, question))
    throw new DecisionError('pdp_unavailable', 'the answer of the PDP does not match the question')
  return {
    active,
    subject: active ? { type: subjectType, id: subjectId } : null,
    organization: active && organization !== '' ? organization : null,
    permissions: question.permissions.map(({ relation, resource }, at) => {
      const found = active ? decision.permissions[at] : undefined
      const error = found === undefined || found.error === '' ? null : found.error
      return { relation, resource, allowed: found?.allowed === true && error === null, error }
    }),
    entitlements: new Map(
      question.entitlements.map((key) => [key, active ? entitlementOf(decision.entitlements.get(key)) : null]),
    ),
  }
}

function entitlementOf(found: NonNullable<ReturnType<Decision['entitlements']['get']>> | undefined) {
  if (found?.value === undefined) return null
  const { value } = found
  return { value, version: Number(found.version), boolean: () => value.enabled === true }
}
