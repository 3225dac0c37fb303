/** The transmitter of Shared Signals in one process: streams of receivers, and what carries events to them. */

import { PdpError } from '../../domain/errors.ts'
import type { MasterKeys } from '../../process/encryption.ts'
import type { Log } from '../../process/log.ts'
import type { Sql } from '../../store/directory.ts'
import type { GuardedPost } from '../outgoing/guarded-post.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import type { SubjectIdentifier } from '../set/subjects.ts'
import { patchedRequest, requestOf, requireUnchanged, type StreamBody, VERIFICATION_INTERVAL } from './configuration.ts'
import { createDeliverer, type DeliveryOutcome } from './deliverer.ts'
import { createFeed } from './feed.ts'
import { HELD_MAX, lookAtHeld } from './held.ts'
import { type PollAnswer, type PollBody, pollStream } from './poll.ts'
import { type SignSet, tellReceiver } from './queue.ts'
import { createScheduler, SILENT } from './scheduler.ts'
import { openAuthorization } from './sealed.ts'
import {
  addSubject,
  createStream,
  deleteStream,
  newStreamId,
  type Receiver,
  readState,
  readStates,
  readStream,
  readStreams,
  removeSubject,
  STREAM_COLUMNS,
  STREAMS_PER_CLIENT_MAX,
  type Stream,
  type StreamState,
  type StreamStatus,
  writeStatus,
  writeStream,
} from './streams.ts'

/** Shorter than the time after which proxies give up a request. */
const LONG_POLL_MS = 20_000
/** Transactions at once, so that most connections are left to decisions and writes. */
const TRANSACTIONS_MAX = 3

export type TransmitterDeps = {
  readonly issuer: string
  readonly sql: Sql
  readonly masterKeys: MasterKeys
  readonly signSet: SignSet
  readonly publishedKids: () => ReadonlySet<string>
  readonly post: GuardedPost
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly onOutcome: (outcome: DeliveryOutcome, count: number) => void
  /** Events that a stream holds at most. */
  readonly heldMax?: number
}
type StatusChange = { readonly status: StreamStatus; readonly reason: string | null }
/** Null and false mean that the receiver has no such stream. All throw PdpError `store_unavailable`. */
export type Transmitter = {
  readonly issuer: string
  streams(receiver: Receiver): Promise<readonly Stream[]>
  stream(receiver: Receiver, id: string): Promise<Stream | null>
  /** Throws PdpError `request_invalid`, and `conflict` when the receiver has as many streams as it may. */
  create(receiver: Receiver, body: StreamBody): Promise<Stream>
  /** `replace`: what is absent is deleted. Throws PdpError `request_invalid`. */
  update(receiver: Receiver, id: string, change: { body: StreamBody; replace: boolean }): Promise<Stream | null>
  remove(receiver: Receiver, id: string): Promise<boolean>
  setStatus(receiver: Receiver, id: string, change: StatusChange): Promise<boolean>
  addSubject(receiver: Receiver, id: string, subject: SubjectIdentifier): Promise<boolean>
  /** Throws PdpError `conflict` when as many are removed as may be. */
  removeSubject(receiver: Receiver, id: string, subject: SubjectIdentifier): Promise<boolean>
  /** Throws PdpError `overloaded` when it is too soon after the last one, and `conflict` for a disabled stream. */
  verify(receiver: Receiver, id: string, state: string | null): Promise<boolean>
  /** Waits for the first event, unless told not to. A later poll of the same stream here ends the wait. */
  poll(receiver: Receiver, id: string, body: PollBody): Promise<PollAnswer | null>
  /** For operators: the streams of all receivers. */
  readonly operator: {
    states(page: { readonly after: string | null; readonly countMax: number }): Promise<readonly StreamState[]>
    state(id: string): Promise<StreamState | null>
    /** Tells the receiver, before the stream stops or after it began again. */
    setStatus(id: string, change: StatusChange): Promise<boolean>
    verify(id: string): Promise<boolean>
  }
  /** A transaction of this process was committed. */
  poke(): void
  /** Later calls wait for the first one. */
  close(): Promise<void>
}

export function createTransmitter(deps: TransmitterDeps): Transmitter {
  const { issuer, log } = deps
  const sql = withFewTransactions(deps.sql)
  const feed = createFeed({ sql: deps.sql, onError: (err) => log.warn({ event: 'signals_not_read', err }) })
  const queue = { ...deps, sql, feed }
  const outcomes = { onOutcome: deps.onOutcome }
  const sending = {
    ...queue,
    openAuthorization: (stream: Pick<Stream, 'id' | 'authorizationSealed'>) =>
      openAuthorization(deps.masterKeys, stream),
    onOutcome: (outcome: DeliveryOutcome) => deps.onOutcome(outcome, 1),
  }
  const { heldMax = HELD_MAX } = deps
  const scheduler = createScheduler({
    ...{ issuer, sql: deps.sql, feed, log },
    deliver: createDeliverer(sending),
    heldMax,
    onHolding: (id) => lookAtHeld({ ...sending, heldMax }, id),
    onSilent: (id) =>
      sql.transaction(async (tx) => {
        // Of several processes, the first one finds it silent.
        const [stream] = await tx.query<Stream>(
          `update signal_stream s set verified_at = now() where s.stream_id = $1 and ${SILENT} returning ${STREAM_COLUMNS}`,
          [id],
        )
        if (stream !== undefined) await verify(tx, stream, null)
      }),
  })

  let closing: Promise<void> | null = null

  /** Under the lock of the stream's row. Null: there is no such stream. */
  function locked<T>(
    receiver: Receiver,
    id: string,
    work: (sql: Queries, stream: Stream) => Promise<T>,
  ): Promise<T | null> {
    return deps.sql.transaction(async (tx) => {
      const stream = await readStream(tx, receiver, { id, lock: true })
      return stream === null ? null : work(tx, stream)
    })
  }

  async function verify(tx: Queries, stream: Stream, state: string | null): Promise<true> {
    if (stream.status === 'disabled') throw new PdpError('conflict', 'the stream is disabled')
    const members = state === null ? {} : { state }
    await tellReceiver(queue, tx, { stream, type: STREAM_EVENTS.verification, members })
    return true
  }

  return {
    issuer,
    streams: (receiver) => readStreams(deps.sql, receiver),
    stream: (receiver, id) => readStream(deps.sql, receiver, { id }),
    async create(receiver, body) {
      const id = newStreamId()
      const request = requestOf(deps, { id, body })
      const stream = await deps.sql.transaction((tx) => createStream(tx, receiver, { ...request, id }))
      if (stream === null) throw new PdpError('conflict', `a receiver has ${STREAMS_PER_CLIENT_MAX} streams at most`)
      scheduler.refresh()
      return stream
    },
    async update(receiver, id, { body, replace }) {
      const updated = await locked(receiver, id, async (tx, stream) => {
        requireUnchanged(issuer, stream, body)
        await writeStream(tx, id, replace ? requestOf(deps, { id, body }) : patchedRequest(deps, stream, body))
        return readStream(tx, receiver, { id })
      })
      scheduler.refresh()
      return updated
    },
    remove: (receiver, id) => deleteStream(deps.sql, receiver, id),
    async setStatus(receiver, id, change) {
      const done = await locked(receiver, id, async (tx, stream) => {
        if (stream.status !== change.status || stream.statusReason !== change.reason) await writeStatus(tx, id, change)
        return true
      })
      scheduler.refresh()
      scheduler.wake(id)
      return done === true
    },
    addSubject: async (receiver, id, subject) =>
      (await locked(receiver, id, async (tx) => addSubject(tx, id, subject).then(() => true))) === true,
    async removeSubject(receiver, id, subject) {
      const removed = await locked(receiver, id, (tx) => removeSubject(tx, id, subject))
      if (removed === false) throw new PdpError('conflict', 'the stream leaves out as many subjects as it may')
      return removed === true
    },
    async verify(receiver, id, state) {
      const done = await locked(receiver, id, async (tx, stream) => {
        const begun = await tx.query(
          `update signal_stream set verified_at = now() where stream_id = $1
           and (verified_at is null or verified_at <= now() - make_interval(secs => ${VERIFICATION_INTERVAL})) returning 1`,
          [id],
        )
        if (begun.length === 0)
          throw new PdpError('overloaded', `one verification is possible in ${VERIFICATION_INTERVAL} seconds`)
        return verify(tx, stream, state)
      })
      scheduler.wake(id)
      return done === true
    },
    async poll(receiver, id, body) {
      const asked = { ...queue, ...outcomes }
      const over = new AbortController()
      const ends = AbortSignal.any([over.signal, AbortSignal.timeout(LONG_POLL_MS)])
      try {
        for (let request = body; ; request = onlyAsk(body)) {
          // It waits from before it reads, so that it misses nothing in between.
          const next = scheduler.wait(id, ends)
          const answer = await pollStream(asked, receiver, { id, body: request })
          const isDone = answer === null || Object.keys(answer.sets).length > 0 || body.maxEvents === 0
          if (isDone || body.returnImmediately === true || ends.aborted || (await next) === 'ended') return answer
        }
      } finally {
        over.abort()
      }
    },
    operator: operatorOf(deps, { scheduler, queue, verify }),
    poke: feed.poke,
    close() {
      closing ??= (async () => {
        await scheduler.close()
        await feed.close()
        deps.post.close()
      })()
      return closing
    },
  }
}

type Queries = Pick<Sql, 'query'>
const onlyAsk = ({ maxEvents }: PollBody): PollBody => (maxEvents === undefined ? {} : { maxEvents })

function operatorOf(
  deps: TransmitterDeps,
  parts: {
    readonly scheduler: { wake(id: string): void; refresh(): void }
    readonly queue: Parameters<typeof tellReceiver>[0]
    readonly verify: (tx: Queries, stream: Stream, state: string | null) => Promise<true>
  },
): Transmitter['operator'] {
  async function locked(id: string, work: (tx: Queries, stream: Stream) => Promise<unknown>): Promise<boolean> {
    const found = await deps.sql.transaction(async (tx) => {
      const [stream] = await tx.query<Stream>(
        `select ${STREAM_COLUMNS} from signal_stream s where s.stream_id = $1 for update`,
        [id],
      )
      if (stream === undefined) return false
      await work(tx, stream)
      return true
    })
    parts.scheduler.refresh()
    parts.scheduler.wake(id)
    return found
  }
  return {
    states: (page) => readStates(deps.sql, page),
    state: (id) => readState(deps.sql, id),
    setStatus: (id, { status, reason }) =>
      locked(id, async (tx, stream) => {
        if (stream.status === status) return
        await writeStatus(tx, id, { status, reason })
        // A disabled stream holds nothing, so there is nothing to tell on it.
        if (status === 'disabled') return
        const members = { status, ...(reason === null ? {} : { reason }) }
        const told = await tellReceiver(parts.queue, tx, { stream, type: STREAM_EVENTS.streamUpdated, members })
        if (status === 'paused')
          await tx.query('update signal_stream set announced_number = $2 where stream_id = $1', [id, told.number])
      }),
    verify: (id) => locked(id, (tx, stream) => parts.verify(tx, stream, null)),
  }
}

/** Waits for a turn before a transaction takes a connection. */
function withFewTransactions(sql: Sql): Sql {
  const waiting: (() => void)[] = []
  let running = 0
  const take = async (): Promise<void> => {
    if (running < TRANSACTIONS_MAX) running += 1
    else await new Promise<void>((turn) => waiting.push(turn))
  }
  const free = (): void => {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
  return {
    query: (text, values) => sql.query(text, values),
    async transaction(work) {
      await take()
      try {
        return await sql.transaction(work)
      } finally {
        free()
      }
    },
  }
}
