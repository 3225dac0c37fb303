/** A gRPC stream to one PDP address: sends questions in batches, finds their answers by id, and reconnects. */
import {
  type ChannelCredentials,
  type Client,
  type ClientDuplexStream,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { DecisionService } from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import { messageOf } from '../base/error-message.ts'
import { serviceDefinition } from '../process/grpc/service.ts'
import { createQuestionBatch } from './batch.ts'
import {
  type Decision,
  decodeAnswers,
  encodeQuestions,
  type Questions,
  type StreamAnswer,
  type StreamedQuestion,
} from './codec.ts'
import { openPdpConnection, type PdpConnection } from './connection.ts'
import { PendingQuestions } from './pending.ts'

/**
 * `lost`: the stream ended before the answer arrived. Asking again is safe, because a question only reads. `taken`: false
 * when the PDP ended the stream in order; it answers all that it took before that, so it has not read this question.
 */
export type Reply =
  | { readonly kind: 'answer'; readonly decision: Decision }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'lost'; readonly taken: boolean }

export type PdpStreamOptions = {
  /** The PDP's address as `host:port`. */
  readonly address: string
  readonly credentials: ChannelCredentials
  /** The token that authenticates this process; null: no token is sent. Throws if it cannot be read. */
  readonly authorize: (() => string) | null
  readonly random: () => number
  /** Time limit of one attempt to connect, including TLS and the first HTTP/2 frame. */
  readonly connectMs: number
  /** The stream is ready for questions. */
  readonly onOpen: () => void
  /** `wasOpen`: false when another attempt to connect failed. */
  readonly onClosed: (reason: string, wasOpen: boolean) => void
  /** The `Date` field of the answer to a stream that began at `startedMs`. */
  readonly onDate: (date: string, startedMs: number) => void
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  /** Uses the connection for something else, too, until the returned function is called. */
  readonly share?: ((client: Client, metadata: Metadata) => () => void) | null
}

type Call = ClientDuplexStream<Questions, readonly StreamAnswer[]>
type Pending = {
  readonly question: StreamedQuestion
  readonly settle: (reply: Reply) => void
  readonly watched: boolean
  resent: boolean
}

const { path: PATH } = serviceDefinition(DecisionService).decideStream
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000
/** Between two attempts while questions wait. */
const HURRY_MS = 100

export class PdpStream {
  readonly #options: PdpStreamOptions
  readonly #batch = createQuestionBatch((message) => void this.#call?.write(message))
  readonly #pending = new PendingQuestions<Pending>()
  #connection: PdpConnection | null = null
  #call: Call | null = null
  #unshare: (() => void) | undefined
  #closed = false
  #failures = 0
  #isNew = true
  #attemptedMs = 0
  /** Runs while the next attempt to connect waits. */
  #timer: NodeJS.Timeout | undefined

  /** A new stream connects at once. */
  constructor(options: PdpStreamOptions) {
    this.#options = options
    this.#connect()
  }

  /** True while questions can be sent. */
  isOpen(): boolean {
    return this.#call !== null
  }

  /** True until the first attempt to connect has succeeded or failed. */
  isNew(): boolean {
    return this.#isNew
  }

  /** Connects now, without waiting for the backoff, unless the last attempt was a moment ago. */
  hurry(): void {
    if (this.#timer === undefined || performance.now() - this.#attemptedMs < HURRY_MS) return
    clearTimeout(this.#timer)
    this.#connect()
  }

  /** Sends a question. `settle` is called at most once, or never after the returned function has cancelled it. */
  send(question: StreamedQuestion, settle: (reply: Reply) => void): () => void {
    const id = this.#ask({ question, settle, watched: false, resent: false })
    return () => void this.#pending.delete(id)
  }

  /** Watches a question: settles with each answer until it is cancelled or the stream is lost. */
  watch(question: StreamedQuestion, settle: (reply: Reply) => void): () => void {
    const id = this.#ask({ question, settle, watched: true, resent: false })
    return () => {
      if (this.#pending.delete(id)) this.#batch.cancel(id)
    }
  }

  #ask(pending: Pending): number {
    const id = this.#pending.add(pending)
    this.#batch.add(id, pending.question, pending.watched)
    return id
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#call?.cancel()
    this.#call = null
    this.#closeConnection()
  }

  #closeConnection(): void {
    this.#unshare?.()
    this.#unshare = undefined
    this.#connection?.close()
  }

  /** Opens a new connection for each attempt, because one with a silent peer never ends by itself. */
  #connect(): void {
    const { address, credentials, connectMs } = this.#options
    this.#timer = undefined
    this.#attemptedMs = performance.now()
    const connection = openPdpConnection(address, credentials)
    this.#connection = connection
    // `Date.now`, because grpc-js compares the deadline with the system clock.
    connection.client.waitForReady(Date.now() + connectMs, (err) => {
      if (this.#closed || this.#connection !== connection) return
      if (err === undefined) this.#start(connection)
      else this.#reconnect(connection.problem() ?? `not connected after ${connectMs} ms`, false)
    })
  }

  /** The fields with the token; null: the token cannot be read, and the stream reconnects later. */
  #metadata(): Metadata | null {
    const metadata = new Metadata()
    const { authorize } = this.#options
    try {
      if (authorize !== null) metadata.set('authorization', `Bearer ${authorize()}`)
      return metadata
    } catch (err) {
      this.#reconnect(messageOf(err), false)
      return null
    }
  }

  #start({ client }: PdpConnection): void {
    const metadata = this.#metadata()
    if (metadata === null) return
    const { clock, onDate, onOpen, share } = this.#options
    const startedMs = clock()
    const call: Call = client.makeBidiStreamRequest(PATH, encodeQuestions, decodeAnswers, metadata)
    this.#call = call
    this.#isNew = false
    this.#batch.reset()
    call.on('data', (answers: readonly StreamAnswer[]) => {
      this.#failures = 0
      for (const answer of answers) this.#receive(answer)
    })
    call.on('metadata', (answered: Metadata) => {
      for (const date of answered.get('date')) onDate(String(date), startedMs)
    })
    call.on('error', (err: ServiceError) => this.#end(call, err.message, err.code))
    call.on('end', () => this.#end(call, 'the PDP ended the stream'))
    this.#unshare = share?.(client, metadata)
    onOpen()
  }

  #end(ended: Call, reason: string, code: status = status.OK): void {
    if (this.#call !== ended) return
    this.#call = null
    ended.cancel()
    this.#batch.reset()
    const lost = this.#pending.clear()
    this.#reconnect(reason, true)
    // An overloaded PDP must not get the same questions again, directly or through another address.
    const reply: Reply =
      code === status.RESOURCE_EXHAUSTED
        ? { kind: 'error', code: 'overloaded' }
        : { kind: 'lost', taken: code !== status.OK }
    for (const { settle } of lost) settle(reply)
  }

  #reconnect(reason: string, wasOpen: boolean): void {
    if (this.#closed) return
    this.#closeConnection()
    this.#connection = null
    this.#isNew = false
    this.#options.onClosed(reason, wasOpen)
    const longestMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.#failures)
    this.#failures = Math.min(this.#failures + 1, 10)
    this.#timer = setTimeout(() => this.#connect(), longestMs * (0.5 + this.#options.random() / 2)).unref()
  }

  #receive({ id, decision, error }: StreamAnswer): void {
    const asked = this.#pending.find(id)
    if (asked === null) return
    if (error === 'handle_unknown' && !asked.resent) {
      asked.resent = true
      this.#batch.forget(asked.question.digest)
      this.#batch.add(id, asked.question, asked.watched)
      return
    }
    // A watched question stays open until it is cancelled, even after an error.
    if (asked.watched) asked.resent = false
    else this.#pending.delete(id)
    if (decision !== null) asked.settle({ kind: 'answer', decision })
    else asked.settle({ kind: 'error', code: error })
  }
}
