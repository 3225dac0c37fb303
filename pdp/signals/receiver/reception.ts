/** Serves a stream while this process has its lease: creates it, polls it, and requests verification events. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from '../../engine/store/directory.ts'
import { type MasterKeys, open } from '../../shared/base/encryption.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import type { Log } from '../../shared/process/log.ts'
import { members } from '../../shared/token/jws.ts'
import { SetError } from '../set/errors.ts'
import type { Intake } from './intake.ts'
import { deleteStream, makeStream, type Stream, urlOf } from './make-stream.ts'
import { TRANSMITTER_SEALED_AS } from './registration.ts'
import {
  noteFailure,
  noteHeard,
  noteMade,
  noteStatus,
  pushAuthorization,
  type ReceivedStream,
  settingsOf,
} from './streams.ts'
import {
  createTransmitter,
  type Metadata,
  type Transmitter,
  TransmitterError,
  type TransmitterFetch,
} from './transmitter.ts'
import type { VerificationStates } from './verification-state.ts'

export type ReceptionDeps = {
  readonly sql: Sql
  readonly masterKeys: MasterKeys
  readonly intake: Intake
  readonly states: VerificationStates
  readonly fetch: TransmitterFetch
  readonly clock: () => number
  readonly log: Log
  /** URL to which the transmitter pushes. */
  readonly pushUrlOf: (receiverId: string) => string
  /** The time between two requests for a verification event. */
  readonly verifyEveryMs: number
}
export type Reception = {
  /** The settings' version at the start. */
  readonly version: string
  /** The stream's transmitter. */
  readonly transmitter: string
  /** Stops; resolves when all its work has ended. */
  stop(): Promise<void>
  /** Deletes the stream at the transmitter, without a second try. */
  abandon(): Promise<void>
}

const BACKOFF_MS = [1_000, 2_000, 5_000, 15_000, 30_000, 60_000] as const
/** The pause between polls of a transmitter that answers each at once. */
const POLL_PAUSE_MS = 250
const POLL_SETS_MAX = 100
/** A transmitter counts as silent after this many missed signs of life. */
const MISSED = 3

type Running = {
  readonly transmitter: Transmitter
  readonly metadata: Metadata
  readonly current: ReceivedStream
} & Stream

/** A text that changes with the settings, so that the reception must be restarted. */
export const versionOf = ({ ssf, algorithms, keys, receiverId, authorizationSealed }: ReceivedStream): string =>
  JSON.stringify([ssf, algorithms, keys, receiverId, authorizationSealed])

export const transmitterOf = ({ issuer, ssf }: ReceivedStream): string =>
  JSON.stringify([issuer, ssf.issuer, ssf.metadata_uri])

export function startReception(stream: ReceivedStream, deps: ReceptionDeps): Reception {
  const stopping = new AbortController()
  const { signal } = stopping
  const { issuer } = stream
  let running: Running | null = null

  async function run(): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        running = await connect(stream, deps)
        deps.log.info({ event: 'signals_connected', issuer, stream_id: running.made.stream_id })
        await serve(running, () => {
          failures = 0
        })
      } catch (err) {
        if (signal.aborted) return
        deps.log.warn({ event: 'signals_failed', issuer, err })
        await noteFailure(deps.sql, issuer, messageOf(err)).catch(() => undefined)
        const waitMs = BACKOFF_MS[Math.min(failures, BACKOFF_MS.length - 1)]
        await delay(waitMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Polls and requests verification until one task fails; then both stop. */
  async function serve(at: Running, onWorking: () => void): Promise<void> {
    const failed = new AbortController()
    const both = AbortSignal.any([signal, failed.signal])
    const reasons: unknown[] = []
    const end = (work: Promise<void>): Promise<unknown> =>
      work.catch((err: unknown) => reasons.push(err)).finally(() => failed.abort())
    const asking = end(askForLife(at, deps, both, onWorking))
    if (at.pollUrl !== null) await end(poll(at, deps, both, onWorking))
    await asking
    // The first error is the reason. The other task fails only because it is aborted.
    if (reasons.length > 0) throw reasons[0]
  }

  const done = run()
  return {
    version: versionOf(stream),
    transmitter: transmitterOf(stream),
    async stop() {
      stopping.abort()
      await done
    },
    async abandon() {
      if (running === null) return
      const { transmitter, metadata, made } = running
      await deleteStream(transmitter, metadata, made.stream_id).catch((err: unknown) =>
        deps.log.warn({ event: 'signals_stream_left', issuer, stream_id: made.stream_id, err }),
      )
    },
  }
}

async function connect(stream: ReceivedStream, deps: ReceptionDeps): Promise<Running> {
  const { ssf } = stream
  const iss = ssf.issuer ?? stream.issuer
  const transmitter = createTransmitter(
    {
      issuer: iss,
      metadataUri: ssf.metadata_uri ?? null,
      authorization: ssf.authorization,
      secret: () => open(deps.masterKeys.derive(TRANSMITTER_SEALED_AS), TRANSMITTER_SEALED_AS, ssf.secret_sealed),
    },
    deps,
  )
  const metadata = await transmitter.metadata()
  const made = await makeStream(transmitter, {
    stream,
    metadata,
    pushUrl: deps.pushUrlOf(stream.receiverId),
    pushAuthorization: pushAuthorization(deps.masterKeys, stream),
    issuer: iss,
    isChanged: stream.madeBy !== settingsOf(stream),
  })
  const everyMs = Math.max(deps.verifyEveryMs, made.verificationIntervalMs)
  await noteMade(deps.sql, stream, { stream: made.made, silentAfterMs: MISSED * everyMs })
  return { transmitter, metadata, current: { ...stream, stream: made.made, madeBy: settingsOf(stream) }, ...made }
}

/** Requests verification events at an interval, and enables the stream after the transmitter has disabled it. */
async function askForLife(at: Running, deps: ReceptionDeps, signal: AbortSignal, onWorking: () => void): Promise<void> {
  const { transmitter, metadata, made, current } = at
  const everyMs = Math.max(deps.verifyEveryMs, at.verificationIntervalMs)
  while (!signal.aborted) {
    if (metadata.statusEndpoint !== null) await requireEnabled(at, deps, signal)
    if (metadata.verificationEndpoint !== null) {
      const state = deps.states.make(current.receiverId, deps.clock())
      const body = { stream_id: made.stream_id, state }
      // 429 means too early: another process, for example, had the lease and has just requested one.
      await transmitter.call('POST', metadata.verificationEndpoint, { statuses: [204, 200, 202, 429], body, signal })
    } else if (current.ssf.delivery === 'push') await noteHeard(deps.sql, current.issuer) // its API answered; there is no better sign
    onWorking()
    await delay(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

/** Enables a stream that is not enabled (SSF 1.0 section 8.1.2). */
async function requireEnabled(
  { transmitter, metadata, made, current }: Running,
  deps: ReceptionDeps,
  signal: AbortSignal,
) {
  const url = metadata.statusEndpoint ?? ''
  const { body } = await transmitter.call('GET', urlOf(url, made.stream_id), { statuses: [200], signal })
  const status = members(body)?.status
  if (status !== 'paused' && status !== 'disabled') return noteStatus(deps.sql, current.issuer, 'enabled')
  await noteStatus(deps.sql, current.issuer, status)
  const wanted = { stream_id: made.stream_id, status: 'enabled' }
  await transmitter.call('POST', url, { statuses: [200, 202], body: wanted, signal })
  return noteStatus(deps.sql, current.issuer, 'enabled')
}

type Acknowledgement = { readonly ack: string[]; readonly setErrs: { [jti: string]: object } }

/** Polls (RFC 8936); each poll acknowledges the SETs of the one before. */
async function poll(at: Running, deps: ReceptionDeps, signal: AbortSignal, onWorking: () => void): Promise<void> {
  let acknowledged: Acknowledgement = { ack: [], setErrs: {} }
  while (!signal.aborted) {
    const { sets, isMore } = await askForSets(at, acknowledged, signal)
    onWorking()
    if (at.metadata.verificationEndpoint === null) await noteHeard(deps.sql, at.current.issuer)
    acknowledged = { ack: [], setErrs: {} }
    for (const [jti, text] of sets) {
      if (signal.aborted) break
      await takeIn(at, deps, { jti, text, acknowledged })
    }
    const isPending = acknowledged.ack.length > 0 || Object.keys(acknowledged.setErrs).length > 0
    // The pause is for transmitters without long polls, which answer at once.
    if (!isMore && !isPending) await delay(POLL_PAUSE_MS, undefined, { signal }).catch(() => undefined)
  }
}

async function askForSets(
  { transmitter, pollUrl }: Running,
  { ack, setErrs }: Acknowledgement,
  signal: AbortSignal,
): Promise<{ sets: readonly (readonly [string, unknown])[]; isMore: boolean }> {
  const body = {
    maxEvents: POLL_SETS_MAX,
    returnImmediately: false,
    ...(ack.length > 0 && { ack }),
    ...(Object.keys(setErrs).length > 0 && { setErrs }),
  }
  const answer = await transmitter.call('POST', pollUrl ?? '', { statuses: [200], body, signal, isPoll: true })
  const found = members(answer.body)
  const sets = members(found?.sets)
  if (sets === null) throw new TransmitterError(`${pollUrl} answered without sets`)
  return { sets: Object.entries(sets), isMore: found?.moreAvailable === true }
}

/** Takes in a SET. One that could not be judged is not acknowledged, so the transmitter sends it again. */
async function takeIn(
  { current }: Running,
  { intake }: ReceptionDeps,
  { jti, text, acknowledged }: { jti: string; text: unknown; acknowledged: Acknowledgement },
): Promise<void> {
  try {
    if (typeof text !== 'string') throw new SetError('invalid_request', 'the SET is not a text')
    await intake.take(current, text)
    acknowledged.ack.push(jti)
  } catch (err) {
    if (!(err instanceof SetError)) throw err
    acknowledged.setErrs[jti] = { err: err.code, description: err.message }
  }
}
