/** A gRPC server in the PDP's place whose answers a test scripts. The real PDP has tests of its own. */
import { create } from '@bufbuild/protobuf'
import { type handleBidiStreamingCall, Server, ServerCredentials, status } from '@grpc/grpc-js'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideResponse,
  DecideResponseSchema,
  type DecideStreamRequest,
  type DecideStreamResponse,
  DecideStreamResponseSchema,
  DecisionService,
  EntitlementResultSchema,
  type StreamAnswer,
  StreamAnswerSchema,
} from '../../../proto/gen/portcullis/v1/decision_pb.ts'
import type { PdpQuestion } from '../../../sidecar/pdp-client/question.ts'
import { freePort } from '../free-port.ts'

/** A question of alice, whom the token names: a scripted PDP reads its claims and verifies nothing. */
export const QUESTION: PdpQuestion = {
  token: `x.${Buffer.from(JSON.stringify({ sub: 'alice', org: 'acme', client_id: 'c1' })).toString('base64url')}.x`,
  digest: 'alice',
  subject: 'alice',
  organization: 'acme',
  permissions: [{ relation: 'viewer', resource: 'invoice:1' }],
  entitlements: [],
  context: '',
  requestId: '',
}

export type Asked = {
  readonly token: string
  /** The organization in which a guest is asked about; empty: none is. */
  readonly guest: string
  readonly permissions: readonly string[]
  readonly entitlements: readonly string[]
  /** As JSON; empty for none. */
  readonly context: string
}
/** A decision, an error code, or null for no answer at all. */
export type Script = (asked: Asked) => DecideResponse | string | null
export type ScriptedPdp = {
  readonly address: string
  readonly asked: Asked[]
  /** How many messages the questions came in. */
  messages(): number
  /** How often a token was sent. */
  tokens(): number
  script: Script
  /** Ends every stream, and takes no more until it is started again on the same port. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Breaks the streams that are open. */
  cut(): void
  /** Standing questions that are open. */
  watched(): number
  /** Answers every watched question again, as the real one does when something has changed. */
  changed(): void
}

const subjectOf = (token: string): { sub: string; org: string; client: string } => {
  const { sub, org, client_id: client } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return { sub, org: org ?? '', client }
}

/** Allows exactly the given relations, written `alice viewer invoice:1`, and has the given entitlements enabled. */
export function tuples(allowed: readonly string[], entitlements: readonly string[] = []): Script {
  return (asked) => {
    const { sub, org, client } =
      asked.guest === '' ? subjectOf(asked.token) : { sub: '*', org: asked.guest, client: '' }
    return create(DecideResponseSchema, {
      active: true,
      subject: { type: sub === client ? 'service' : 'user', id: sub },
      organization: org,
      permissions: asked.permissions.map((text) => {
        const [relation = '', resource = ''] = text.split(/ any | /)
        return { relation, resource, allowed: org !== '' && allowed.includes(`${sub} ${text}`), reasonCode: 'tuple' }
      }),
      entitlements: Object.fromEntries(
        asked.entitlements.map((key) => [
          key,
          create(EntitlementResultSchema, entitlements.includes(key) ? { value: { enabled: true }, version: 1n } : {}),
        ]),
      ),
    })
  }
}

/** `identity`: the certificate and key that it shows; without them it speaks plain text. */
export async function startScriptedPdp(
  script: Script,
  identity?: { readonly cert: Buffer; readonly key: Buffer },
): Promise<ScriptedPdp> {
  let server: Server | null = null
  const port = await freePort()
  let messages = 0
  let tokenCount = 0
  const streams = new Set<{ emit(event: 'error', err: Error): boolean }>()
  const watched = new Map<string, () => void>()
  let streamCount = 0
  const asked: Asked[] = []

  const decideStream: handleBidiStreamingCall<DecideStreamRequest, DecideStreamResponse> = (call) => {
    const tokens = new Map<number, string>()
    streamCount += 1
    const own = `${streamCount}:`
    streams.add(call)
    const leave = (): void => {
      streams.delete(call)
      for (const key of [...watched.keys()]) if (key.startsWith(own)) watched.delete(key)
    }
    call.on('close', leave).on('cancelled', leave)
    const reply = (answers: StreamAnswer[]): void => {
      if (answers.length > 0 && call.writable) call.write(create(DecideStreamResponseSchema, { answers }))
    }
    call.on('error', () => undefined)
    call.on('end', () => call.end())
    call.on('data', (message: DecideStreamRequest) => {
      messages += 1
      tokenCount += message.tokens.length
      for (const { handle, token } of message.tokens) tokens.set(handle, token)
      for (const id of message.cancel) watched.delete(`${own}${id}`)
      const answers: StreamAnswer[] = []
      for (const { id, handle, guest, permissions, entitlements, context, watched: isWatched } of message.questions) {
        const question = {
          token: tokens.get(handle) ?? '',
          guest,
          permissions: permissions.map(({ relation, resource, any }) => `${relation} ${any ? 'any ' : ''}${resource}`),
          entitlements,
          context,
        }
        if (isWatched) watched.set(`${own}${id}`, () => reply(answerTo(id, question)))
        else asked.push(question)
        answers.push(...answerTo(id, question))
      }
      reply(answers)
    })
  }

  function answerTo(id: number, question: Asked): StreamAnswer[] {
    const answer = pdp.script(question)
    if (answer === null) return []
    const outcome =
      typeof answer === 'string'
        ? ({ case: 'error', value: answer } as const)
        : ({ case: 'decision', value: answer } as const)
    return [create(StreamAnswerSchema, { id, outcome })]
  }

  async function start(): Promise<void> {
    const started = new Server()
    const { decideStream: definition } = serviceDefinition(DecisionService)
    started.addService({ decideStream: definition }, { decideStream })
    await new Promise<void>((resolve, reject) => {
      const credentials =
        identity === undefined
          ? ServerCredentials.createInsecure()
          : ServerCredentials.createSsl(null, [{ cert_chain: identity.cert, private_key: identity.key }])
      started.bindAsync(`127.0.0.1:${port}`, credentials, (err) => (err === null ? resolve() : reject(err)))
    })
    server = started
  }

  const pdp: ScriptedPdp = {
    address: `127.0.0.1:${port}`,
    asked,
    messages: () => messages,
    tokens: () => tokenCount,
    script,
    start,
    watched: () => watched.size,
    changed() {
      for (const again of watched.values()) again()
    },
    cut() {
      for (const stream of streams)
        stream.emit('error', Object.assign(new Error('cut by the test'), { code: status.UNAVAILABLE }))
    },
    async stop() {
      server?.forceShutdown()
      server = null
    },
  }
  await start()
  return pdp
}
