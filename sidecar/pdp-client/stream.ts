/** One gRPC stream to one PDP address: questions out in batches, answers back by id, opened again whenever it ends. */
import { type ChannelCredentials, type ClientDuplexStream, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { serviceDefinition } from '../../pdp/process/grpc.ts'
import { DecisionService } from '../../proto/gen/portcullis/v1/decision_pb.ts'
import { createQuestionBatch } from './batch.ts'
import { type Decision, decodeAnswers, encodeQuestions, type Questions, type StreamAnswer } from './codec.ts'
import { openPdpConnection, type PdpConnection } from './connection.ts'
import { OpenQuestions } from './pending.ts'
import type { PdpQuestion } from './question.ts'

/** `lost`: the stream ended before an answer came, so asking again is safe: a question is a pure read. */
export type Outcome =
  | { readonly kind: 'answer'; readonly decision: Decision }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'lost' }

export interface PdpLink {
  /** True while questions can be sent. */
  isOpen(): boolean
  /** Settles at most once, never when cancelled. Returns the cancelling function. */
  send(question: PdpQuestion, settle: (outcome: Outcome) => void): () => void
  /** A standing question: settles with every answer until it is cancelled, or settles with anything else. */
  watch(question: PdpQuestion, settle: (outcome: Outcome) => void): () => void
  close(): void
}
export type PdpLinkOptions = {
  /** `host:port`. */
  readonly address: string
  readonly credentials: ChannelCredentials
  /** The token that says who asks; null: none is sent. Throws when it cannot be had. */
  readonly authorize: (() => string) | null
  readonly random: () => number
  /** For one attempt to connect, TLS and the first frame of HTTP/2 included. */
  readonly connectMs: number
  /** The stream can be used from now on. */
  readonly onOpen: () => void
  /** `wasOpen`: false when a further try to connect failed. */
  readonly onClosed: (reason: string, wasOpen: boolean) => void
  /** The `Date` field of the answer to a stream that began at `startedMs`. */
  readonly onDate: (date: string, startedMs: number) => void
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

type Stream = ClientDuplexStream<Questions, readonly StreamAnswer[]>
type Open = {
  readonly question: PdpQuestion
  readonly settle: (outcome: Outcome) => void
  readonly standing: boolean
  resent: boolean
}

const { path: PATH } = serviceDefinition(DecisionService).decideStream
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000

export function createPdpLink(options: PdpLinkOptions): PdpLink {
  const link = new Link(options)
  link.connect()
  return link
}

class Link implements PdpLink {
  readonly #options: PdpLinkOptions
  readonly #batch = createQuestionBatch((message) => void this.#stream?.write(message))
  readonly #open = new OpenQuestions<Open>()
  #connection: PdpConnection | null = null
  #stream: Stream | null = null
  #closed = false
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: PdpLinkOptions) {
    this.#options = options
  }

  isOpen(): boolean {
    return this.#stream !== null
  }

  send(question: PdpQuestion, settle: (outcome: Outcome) => void): () => void {
    const id = this.#ask({ question, settle, standing: false, resent: false })
    return () => void this.#open.delete(id)
  }

  watch(question: PdpQuestion, settle: (outcome: Outcome) => void): () => void {
    const id = this.#ask({ question, settle, standing: true, resent: false })
    return () => {
      if (this.#open.delete(id)) this.#batch.cancel(id)
    }
  }

  #ask(open: Open): number {
    const id = this.#open.add(open)
    this.#batch.add(id, open.question, open.standing)
    return id
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#stream?.cancel()
    this.#stream = null
    this.#connection?.close()
  }

  /** Each attempt has a connection of its own: one that was accepted and is silent never ends by itself. */
  connect(): void {
    const { address, credentials, connectMs } = this.#options
    const connection = openPdpConnection(address, credentials)
    this.#connection = connection
    // grpc-js compares the deadline with the clock of the system.
    connection.client.waitForReady(Date.now() + connectMs, (err) => {
      if (this.#closed || this.#connection !== connection) return
      if (err === undefined) this.#start(connection)
      else this.#reconnect(`not connected after ${connectMs} ms`, false)
    })
  }

  /** Null when the token cannot be had; that is tried again like a connection. */
  #metadata(): Metadata | null {
    const metadata = new Metadata()
    const { authorize } = this.#options
    try {
      if (authorize !== null) metadata.set('authorization', `Bearer ${authorize()}`)
      return metadata
    } catch (err) {
      this.#reconnect(err instanceof Error ? err.message : 'no token', false)
      return null
    }
  }

  #start({ client }: PdpConnection): void {
    const metadata = this.#metadata()
    if (metadata === null) return
    const { clock, onDate, onOpen } = this.#options
    const startedMs = clock()
    const stream: Stream = client.makeBidiStreamRequest(PATH, encodeQuestions, decodeAnswers, metadata)
    this.#stream = stream
    this.#batch.reset()
    stream.on('data', (answers: readonly StreamAnswer[]) => {
      this.#failures = 0
      for (const answer of answers) this.#receive(answer)
    })
    stream.on('metadata', (answered: Metadata) => {
      for (const date of answered.get('date')) onDate(String(date), startedMs)
    })
    stream.on('error', (err: ServiceError) => this.#end(stream, err.message, err.code))
    stream.on('end', () => this.#end(stream, 'the PDP ended the stream'))
    onOpen()
  }

  #end(ended: Stream, reason: string, code: status = status.OK): void {
    if (this.#stream !== ended) return
    this.#stream = null
    ended.cancel()
    this.#batch.reset()
    const lost = this.#open.clear()
    this.#reconnect(reason, true)
    // A PDP that has too much to do must not get the same questions again, from here or over another address.
    const outcome: Outcome =
      code === status.RESOURCE_EXHAUSTED ? { kind: 'error', code: 'overloaded' } : { kind: 'lost' }
    for (const { settle } of lost) settle(outcome)
  }

  #reconnect(reason: string, wasOpen: boolean): void {
    if (this.#closed) return
    this.#connection?.close()
    this.#connection = null
    this.#options.onClosed(reason, wasOpen)
    const longestMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.#failures)
    this.#failures = Math.min(this.#failures + 1, 10)
    this.#timer = setTimeout(() => this.connect(), longestMs * (0.5 + this.#options.random() / 2)).unref()
  }

  #receive({ id, decision, error }: StreamAnswer): void {
    const asked = this.#open.find(id)
    if (asked === null) return
    if (error === 'handle_unknown' && !asked.resent) {
      asked.resent = true
      this.#batch.forget(asked.question.digest)
      this.#batch.add(id, asked.question, asked.standing)
      return
    }
    // A standing one goes on, also after an error, until it is cancelled.
    if (asked.standing) asked.resent = false
    else this.#open.delete(id)
    if (decision !== null) asked.settle({ kind: 'answer', decision })
    else asked.settle({ kind: 'error', code: error })
  }
}
