/** A node asked over gRPC, as sidecars ask: one question at a time, many over one stream, and some that stand. */
import { create } from '@bufbuild/protobuf'
import { type ClientDuplexStream, credentials, makeClientConstructor } from '@grpc/grpc-js'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  type DecideStreamRequest,
  DecideStreamRequestSchema,
  type DecideStreamResponse,
  DecisionService,
  type StreamAnswer,
  StreamQuestionSchema,
  TokenHandleSchema,
} from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { Question } from './mix.ts'

/** What a node could not answer; the run goes on. */
export class Unavailable extends Error {}

export type GrpcClient = {
  /** Names the question's subject, which the token has to be allowed to. */
  decide(question: Question, token: string): Promise<DecideResponse>
  /** About the token's own subject. */
  ask(question: Question, token: string): Promise<DecideResponse>
  /** `onAnswer` is called whenever there is an answer, and with null while nobody can say. Returns what ends it. */
  stand(question: Question, token: string, onAnswer: (answer: DecideResponse | null) => void): () => void
  close(): void
}
type Outcome = StreamAnswer['outcome']
type Call = ClientDuplexStream<DecideStreamRequest, DecideStreamResponse>

const UNAVAILABLE = 14

export function grpcClient(address: string): GrpcClient {
  const definition = serviceDefinition(DecisionService)
  const Client = makeClientConstructor(definition, 'DecisionService')
  const client = new Client(address, credentials.createInsecure())
  const unary = definition.decide
  const streamed = definition.decideStream
  const stream = createStream(() =>
    client.makeBidiStreamRequest<DecideStreamRequest, DecideStreamResponse>(
      streamed.path,
      streamed.requestSerialize,
      streamed.responseDeserialize,
    ),
  )
  return {
    decide: (question, token) =>
      new Promise((resolve, reject) => {
        const [type = '', id = ''] = question.subject.split(':')
        const request = create(DecideRequestSchema, { token, ...checksOf(question), subject: { type, id } })
        client.makeUnaryRequest<DecideRequest, DecideResponse>(
          unary.path,
          unary.requestSerialize,
          unary.responseDeserialize,
          request,
          (error, value) => {
            if (error === null && value !== undefined) resolve(value)
            else reject(error?.code === UNAVAILABLE ? new Unavailable() : error)
          },
        )
      }),
    ask: (question, token) =>
      new Promise((resolve, reject) => {
        const end = stream.open({ question, token, standing: false }, (outcome) => {
          end()
          if (outcome.case === 'decision') resolve(outcome.value)
          else reject(failureOf(outcome))
        })
      }),
    stand: (question, token, onAnswer) =>
      stream.open({ question, token, standing: true }, (outcome) => {
        if (outcome.case !== 'decision' && !(failureOf(outcome) instanceof Unavailable)) throw failureOf(outcome)
        onAnswer(outcome.case === 'decision' ? outcome.value : null)
      }),
    close() {
      stream.close()
      client.close()
    },
  }
}

const checksOf = ({ permissions, entitlements }: Question) => ({
  permissions: [...permissions],
  entitlements: [...entitlements],
})

/** A stream that was lost has no handles either. */
const OUTAGES: readonly string[] = ['store_unavailable', 'handle_unknown', 'draining']

function failureOf(outcome: Outcome): Error {
  if (outcome.case === 'error' && OUTAGES.includes(outcome.value)) return new Unavailable()
  return new Error(`the stream answered ${outcome.case === 'error' ? outcome.value : 'nothing'}`)
}

/** Questions of one tick travel together; a token is sent once. */
function createStream(open: () => Call) {
  const waiting = new Map<number, (outcome: Outcome) => void>()
  const handles = new Map<string, number>()
  let call: Call | null = null
  let isClosed = false
  let lastId = 0
  let next = create(DecideStreamRequestSchema)

  function opened(): Call {
    if (call !== null) return call
    const fresh = open()
    const lost = (): void => {
      if (call !== fresh) return
      call = null
      handles.clear()
      const all = [...waiting.values()]
      waiting.clear()
      for (const answer of all) answer({ case: 'error', value: 'store_unavailable' })
    }
    fresh.on('data', ({ answers }: DecideStreamResponse) => {
      for (const { id, outcome } of answers) waiting.get(id)?.(outcome)
    })
    for (const event of ['end', 'error']) fresh.on(event, lost)
    call = fresh
    return fresh
  }

  function send(fill: (message: DecideStreamRequest) => void): void {
    const idle = next.questions.length + next.cancel.length === 0
    fill(next)
    if (!idle) return
    setImmediate(() => {
      const message = next
      next = create(DecideStreamRequestSchema)
      if (!isClosed) opened().write(message)
    })
  }

  return {
    open(
      { question, token, standing }: { question: Question; token: string; standing: boolean },
      onOutcome: (outcome: Outcome) => void,
    ): () => void {
      opened() // so that handles belong to this stream
      const id = ++lastId
      waiting.set(id, onOutcome)
      const known = handles.get(token)
      const handle = known ?? handles.size + 1
      handles.set(token, handle)
      send((message) => {
        if (known === undefined) message.tokens.push(create(TokenHandleSchema, { handle, token }))
        message.questions.push(create(StreamQuestionSchema, { id, handle, watched: standing, ...checksOf(question) }))
      })
      return () => {
        if (!waiting.delete(id) || !standing) return
        send((message) => message.cancel.push(id))
      }
    },
    close(): void {
      isClosed = true
      call?.end()
      call?.cancel()
    },
  }
}
