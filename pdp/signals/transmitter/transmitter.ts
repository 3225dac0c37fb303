/** The transmitter of Shared Signals in one process: receivers' streams, and the delivery of events to them. */
import type { Sql } from '../../engine/store/directory.ts'
import type { GuardedPost } from '../../shared/base/guarded-post.ts'
import type { Log } from '../../shared/process/log.ts'
import { openAuthorization } from './configuration.ts'
import { createDeliverer, type DeliveryOutcome } from './deliverer.ts'
import { createFeed } from './feed.ts'
import { HELD_MAX, lookAtHeld } from './held.ts'
import { type PollAnswer, type PollBody, pollStream } from './poll.ts'
import type { QueueDeps } from './queue.ts'
import { createScheduler, SILENT } from './scheduler.ts'
import { createStreamWrites, type StreamWrites, sendVerification } from './stream-writes.ts'
import {
  type Receiver,
  readState,
  readStates,
  readStream,
  readStreams,
  STREAM_COLUMNS,
  type Stream,
  type StreamState,
} from './streams.ts'

/** How long a long poll waits: less than the time after which proxies give up a request. */
const LONG_POLL_MS = 20_000
/** How many transactions may run at once, so that most connections stay free for decisions and writes. */
const TRANSACTIONS_MAX = 3

export type TransmitterDeps = QueueDeps & {
  readonly sql: Sql
  readonly post: GuardedPost
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly onOutcome: (outcome: DeliveryOutcome, count: number) => void
  /** How many events a stream may store. */
  readonly heldMax?: number
}
/** Null means that the receiver has no such stream. All throw PdpError `store_unavailable`. */
export type Transmitter = StreamWrites & {
  readonly issuer: string
  streams(receiver: Receiver): Promise<readonly Stream[]>
  stream(receiver: Receiver, id: string): Promise<Stream | null>
  /** Changes streams in the transaction of `sql`. `onWritten` gets each changed stream; call `wake` for it after the commit. */
  within(sql: Sql, onWritten: (id: string) => void): StreamWrites
  /** Must be called after a change of a stream. */
  wake(id: string): void
  /**
   * Answers a poll, after a wait for the first event unless `returnImmediately` is set. A later poll of the stream in this process ends the
   * wait. `again`: authorizes the receiver once more after a wait.
   */
  poll(
    receiver: Receiver,
    id: string,
    asked: { body: PollBody; again(): Promise<Receiver> },
  ): Promise<PollAnswer | null>
  /** Reads and writes of operators, for the streams of all receivers. */
  readonly operator: StreamWrites['operator'] & {
    states(page: { readonly after: string | null; readonly countMax: number }): Promise<readonly StreamState[]>
    state(id: string): Promise<StreamState | null>
  }
  /** Must be called after a transaction of this process. */
  poke(): void
  /** Stops the transmitter. Later calls wait for the first one. */
  close(): Promise<void>
}

export function createTransmitter(deps: TransmitterDeps): Transmitter {
  const { issuer, masterKeys, signSet, publishedKids, post, clock, random, log, onOutcome, heldMax = HELD_MAX } = deps
  const sql = withFewTransactions(deps.sql)
  const feed = createFeed({ sql: deps.sql, onError: (err) => log.warn({ event: 'signals_not_read', err }) })
  const queue = { issuer, masterKeys, signSet, publishedKids, clock }
  const sending = {
    ...queue,
    sql,
    feed,
    post,
    random,
    log,
    openAuthorization: (stream: Pick<Stream, 'id' | 'authorizationSealed'>) => openAuthorization(masterKeys, stream),
    onOutcome: (outcome: DeliveryOutcome) => onOutcome(outcome, 1),
  }
  const scheduler = createScheduler({
    issuer,
    sql: deps.sql,
    feed,
    log,
    deliver: createDeliverer(sending),
    heldMax,
    onHolding: (id) => lookAtHeld({ ...sending, heldMax }, id),
    onSilent: (id) =>
      sql.transaction(async (tx) => {
        // Only one of several processes finds the stream silent, because the update ends this state.
        const [stream] = await tx.query<Stream>(
          `update signal_stream s set verified_at = now() where s.stream_id = $1 and ${SILENT} returning ${STREAM_COLUMNS}`,
          [id],
        )
        if (stream !== undefined) await sendVerification(queue, tx, { stream, state: null })
      }),
  })

  let closing: Promise<void> | null = null

  const wake = (id: string): void => {
    scheduler.refresh()
    scheduler.wake(id)
  }
  const within: Transmitter['within'] = (at, onWritten) =>
    createStreamWrites({ issuer, masterKeys, post, sql: at, queue, onWritten })
  const writes = within(deps.sql, wake)

  return {
    ...writes,
    within,
    wake,
    issuer,
    streams: (receiver) => readStreams(deps.sql, receiver),
    stream: (receiver, id) => readStream(deps.sql, receiver, { id }),
    async poll(receiver, id, { body, again }) {
      const asked = { ...queue, sql, feed, log, onOutcome }
      const over = new AbortController()
      const ends = AbortSignal.any([over.signal, AbortSignal.timeout(LONG_POLL_MS)])
      try {
        for (let request = body, by = receiver; ; request = onlyAsk(body), by = await again()) {
          // The wait begins before the reading, so that no event in between is missed.
          const next = scheduler.wait(id, ends)
          const answer = await pollStream(asked, by, { id, body: request })
          const isDone = answer === null || Object.keys(answer.sets).length > 0 || body.maxEvents === 0
          if (isDone || body.returnImmediately === true || ends.aborted || (await next) === 'ended') return answer
        }
      } finally {
        over.abort()
      }
    },
    operator: {
      ...writes.operator,
      states: (page) => readStates(deps.sql, page),
      state: (id) => readState(deps.sql, id),
    },
    poke: feed.poke,
    close() {
      closing ??= (async () => {
        await scheduler.close()
        await feed.close()
        post.close()
      })()
      return closing
    },
  }
}

const onlyAsk = ({ maxEvents }: PollBody): PollBody => (maxEvents === undefined ? {} : { maxEvents })

/** Bounds simultaneous transactions: others wait before they take a connection. */
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
