/** Changes that receivers and operators make to streams: alone, or inside an open transaction. */

import type { Queries, Sql } from '../../engine/store/directory.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { STREAM_EVENTS } from '../set/event-types.ts'
import type { SubjectIdentifier } from '../set/subjects.ts'
import { patchedRequest, requestOf, requireUnchanged, type StreamBody, VERIFICATION_INTERVAL } from './configuration.ts'
import { type QueueDeps, tellReceiver } from './queue.ts'
import {
  addSubject,
  createStream,
  deleteStream,
  lockStream,
  newStreamId,
  type Receiver,
  readStream,
  removeSubject,
  STREAMS_PER_CLIENT_MAX,
  type Stream,
  type StreamStatus,
  writeStatus,
  writeStream,
} from './streams.ts'

type StatusChange = { readonly status: StreamStatus; readonly reason: string | null }
/** Null and false mean that the receiver has no such stream. All throw PdpError `store_unavailable`. */
export type StreamWrites = {
  /** Throws PdpError `request_invalid`, and `conflict` when the receiver has as many streams as it may. */
  create(receiver: Receiver, body: StreamBody): Promise<Stream>
  /** `replace`: absent members are deleted. Throws PdpError `request_invalid`. */
  update(receiver: Receiver, id: string, change: { body: StreamBody; replace: boolean }): Promise<Stream | null>
  remove(receiver: Receiver, id: string): Promise<boolean>
  setStatus(receiver: Receiver, id: string, change: StatusChange): Promise<boolean>
  addSubject(receiver: Receiver, id: string, subject: SubjectIdentifier): Promise<boolean>
  /** Throws PdpError `conflict` when the stream has as many removed subjects as it may have. */
  removeSubject(receiver: Receiver, id: string, subject: SubjectIdentifier): Promise<boolean>
  /** Throws PdpError `overloaded` too soon after the last verification, and `conflict` for a disabled stream. */
  verify(receiver: Receiver, id: string, state: string | null): Promise<boolean>
  /** The writes of operators, to a stream of any receiver. */
  readonly operator: {
    /** Sets the status and tells the receiver by an event: before the stream stops, or after it is enabled. */
    setStatus(id: string, change: StatusChange): Promise<boolean>
    verify(id: string): Promise<boolean>
  }
}
export type StreamWritesDeps = Parameters<typeof requestOf>[0] & {
  readonly issuer: string
  readonly sql: Sql
  readonly queue: QueueDeps
  /** Called when a stream was changed; inside a transaction, before the commit. */
  readonly onWritten: (id: string) => void
}

export function createStreamWrites(deps: StreamWritesDeps): StreamWrites {
  const { issuer, sql, queue, onWritten } = deps

  /** Runs `work` under the lock of the stream's row. Null when there is no such stream. */
  async function locked<T>(
    receiver: Receiver,
    id: string,
    work: (sql: Queries, stream: Stream) => Promise<T>,
  ): Promise<T | null> {
    const done = await sql.transaction(async (tx) => {
      const stream = await readStream(tx, receiver, { id, lock: true })
      return stream === null ? null : work(tx, stream)
    })
    onWritten(id)
    return done
  }

  return {
    async create(receiver, body) {
      const id = newStreamId()
      const request = requestOf(deps, { id, body })
      const stream = await sql.transaction((tx) => createStream(tx, receiver, { ...request, id }))
      if (stream === null) throw new PdpError('conflict', `a receiver has ${STREAMS_PER_CLIENT_MAX} streams at most`)
      onWritten(id)
      return stream
    },
    update: (receiver, id, { body, replace }) =>
      locked(receiver, id, async (tx, stream) => {
        requireUnchanged(issuer, stream, body)
        await writeStream(tx, id, replace ? requestOf(deps, { id, body }) : patchedRequest(deps, stream, body))
        return readStream(tx, receiver, { id })
      }),
    remove: (receiver, id) => deleteStream(sql, receiver, id),
    async setStatus(receiver, id, change) {
      const done = await locked(receiver, id, async (tx, stream) => {
        if (stream.status !== change.status || stream.statusReason !== change.reason) await writeStatus(tx, id, change)
        return true
      })
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
        await sendVerification(queue, tx, { stream, state })
        return true
      })
      return done === true
    },
    operator: operatorWrites(deps),
  }
}

function operatorWrites({ sql, queue, onWritten }: StreamWritesDeps): StreamWrites['operator'] {
  async function locked(id: string, work: (tx: Queries, stream: Stream) => Promise<unknown>): Promise<boolean> {
    const found = await sql.transaction(async (tx) => {
      const stream = await lockStream(tx, id)
      if (stream === null) return false
      await work(tx, stream)
      return true
    })
    onWritten(id)
    return found
  }
  return {
    setStatus: (id, { status, reason }) =>
      locked(id, async (tx, stream) => {
        if (stream.status === status) return
        await writeStatus(tx, id, { status, reason })
        // A disabled stream stores no events, so none is made about it.
        if (status === 'disabled') return
        const members = { status, ...(reason === null ? {} : { reason }) }
        const told = await tellReceiver(queue, tx, { stream, type: STREAM_EVENTS.streamUpdated, members })
        if (status === 'paused')
          await tx.query('update signal_stream set announced_number = $2 where stream_id = $1', [id, told.number])
      }),
    verify: (id) => locked(id, (tx, stream) => sendVerification(queue, tx, { stream, state: null })),
  }
}

/** Stores a verification event. Throws PdpError `conflict` for a disabled stream. */
export async function sendVerification(
  queue: QueueDeps,
  tx: Queries,
  { stream, state }: { readonly stream: Stream; readonly state: string | null },
): Promise<void> {
  if (stream.status === 'disabled') throw new PdpError('conflict', 'the stream is disabled')
  const members = state === null ? {} : { state }
  await tellReceiver(queue, tx, { stream, type: STREAM_EVENTS.verification, members })
}
