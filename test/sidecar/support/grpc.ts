/** A gRPC service without a schema, whose messages are texts, and a client of it. */
import {
  type Client,
  type ClientReadableStream,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServiceError,
} from '@grpc/grpc-js'

const method = (name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<string, string> => ({
  path: `/docs.Docs/${name}`,
  requestStream,
  responseStream,
  requestSerialize: (value) => Buffer.from(value),
  requestDeserialize: (bytes) => bytes.toString(),
  responseSerialize: (value) => Buffer.from(value),
  responseDeserialize: (bytes) => bytes.toString(),
})
export const METHODS = {
  Get: method('Get', false, false),
  List: method('List', false, true),
  Upload: method('Upload', true, false),
  Chat: method('Chat', true, true),
  Gated: method('Gated', false, false),
  Admin: method('Admin', false, false),
}

export type Seen = { readonly metadata: Metadata; readonly deadline: unknown; cancelled: boolean }
export type GrpcService = {
  readonly origin: string
  /** Calls whose metadata arrived, in order. */
  readonly seen: Seen[]
  /** Replace the answers. */
  onGet: handleUnaryCall<string, string> | null
  onList: handleServerStreamingCall<string, string> | null
  close(): void
}

export async function startGrpcService(): Promise<GrpcService> {
  const server = new Server()
  function note(call: {
    metadata: Metadata
    getDeadline(): unknown
    on(event: 'cancelled', then: () => void): unknown
  }) {
    const one: Seen = { metadata: call.metadata, deadline: call.getDeadline(), cancelled: false }
    service.seen.push(one)
    call.on('cancelled', () => {
      one.cancelled = true
    })
  }
  const unary: handleUnaryCall<string, string> = (call, done) => {
    note(call)
    if (service.onGet !== null) return service.onGet(call, done)
    const [initial, trailer] = [new Metadata(), new Metadata()]
    initial.set('x-initial', 'first')
    trailer.set('x-trailer', 'last')
    call.sendMetadata(initial)
    done(null, `got ${call.request}`, trailer)
  }
  const list: handleServerStreamingCall<string, string> = (call) => {
    note(call)
    if (service.onList !== null) return service.onList(call)
    for (let at = 0; at < 100; at += 1) call.write(`${call.request} ${at}`)
    call.end()
  }
  function upload(call: ServerReadableStream<string, string>, done: (err: null, value: string) => void): void {
    note(call)
    let size = 0
    call.on('data', (text: string) => {
      size += text.length
    })
    call.on('error', () => undefined)
    call.on('end', () => done(null, String(size)))
  }
  function chat(call: ServerDuplexStream<string, string>): void {
    note(call)
    call.on('error', () => undefined)
    call.on('data', (text: string) => call.write(`echo ${text}`))
    call.on('end', () => call.end())
  }
  server.addService(METHODS, { Get: unary, Gated: unary, Admin: unary, List: list, Upload: upload, Chat: chat })
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (err, bound) =>
      err === null ? resolve(bound) : reject(err),
    )
  })
  const service: GrpcService = {
    origin: `http://127.0.0.1:${port}`,
    seen: [],
    onGet: null,
    onList: null,
    close: () => server.forceShutdown(),
  }
  return service
}

export type Called = {
  readonly value: string | null
  readonly error: ServiceError | null
  readonly initial: Metadata | null
  /** Trailers, or the whole answer when there was no more. */
  readonly trailer: Metadata | null
}
export function callUnary(
  client: Client,
  metadata: Metadata,
  { path = METHODS.Get.path, deadline }: { readonly path?: string; readonly deadline?: number } = {},
): Promise<Called> {
  const { requestSerialize, responseDeserialize } = METHODS.Get
  const options = deadline === undefined ? {} : { deadline }
  return new Promise((resolve) => {
    let called: Called = { value: null, error: null, initial: null, trailer: null }
    const answered = (error: ServiceError | null, value?: string): void => {
      called = { ...called, error, value: value ?? null }
    }
    const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, 'it', metadata, options, answered)
    call.on('metadata', (initial) => {
      called = { ...called, initial }
    })
    call.on('status', ({ metadata: trailer }) => {
      setImmediate(() => resolve({ ...called, trailer }))
    })
  })
}

/** `ended`: null when it ended well. */
export function callList(client: Client, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize } = METHODS.List
  const stream: ClientReadableStream<string> = client.makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    'doc',
    metadata,
  )
  const messages: string[] = []
  stream.on('data', (text: string) => void messages.push(text))
  const ended = new Promise<ServiceError | null>((resolve) => {
    stream.on('error', resolve)
    stream.on('end', () => resolve(null))
  })
  return { stream, messages, ended }
}
