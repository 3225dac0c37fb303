/** The asking side of `stream.ts`, a process of its own: asks in the way that it is told for a while, and reports. */
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { Pool } from 'undici'
import { decodeAnswers, encodeQuestions, type Questions, type StreamAnswer } from '../../../pdp/shared/client/codec.ts'
import { PdpStream } from '../../../pdp/shared/client/stream.ts'
import { serviceDefinition } from '../../../pdp/shared/process/grpc/service.ts'
import {
  type DecideRequest,
  DecideRequestSchema,
  type DecideResponse,
  DecisionService,
} from '../../../proto/gen/portcullis/v1/decision_pb.ts'

/**
 * `unary`, `unary8`: Decide with one check, with eight. `http`: POST /oauth/decisions. `stream`: DecideStream, each question a
 * message. `turn`, `turn8`: the sidecar's client, which sends the questions of one turn of the event loop together.
 */
export const WAYS = ['unary', 'unary8', 'http', 'stream', 'turn', 'turn8'] as const
export type Way = (typeof WAYS)[number]
export type Load = {
  readonly address: string
  readonly issuer: string
  readonly token: string
  readonly way: Way
  readonly callers: number
  readonly asks: number
  /** Questions a second that come whether or not others were answered; null: each caller waits for its answer. */
  readonly rate: number | null
}
/** In the open loop a time is from when the question was due. */
export type Measured = { readonly checks: number; readonly ms: number; readonly timesMs: readonly number[] }

/** Asks once; true if the answer is right. */
type Ask = () => Promise<boolean>

const { decide, decideStream } = serviceDefinition(DecisionService)
const PERMISSION = { relation: 'viewer', resource: 'invoice:1' }
const checksOf = (way: Way): number => (way.endsWith('8') ? 8 : 1)

async function measure(load: Load): Promise<Measured> {
  const { ask, close } = await start(load)
  const right = async (): Promise<void> => {
    if (!(await ask())) throw new Error(`a wrong answer by ${load.way}`)
  }
  const begin = performance.now()
  const timesMs = await (load.rate === null ? closedLoop(load, right) : openLoop(load, load.rate, right))
  const ms = performance.now() - begin
  close()
  return { checks: timesMs.length * checksOf(load.way), ms, timesMs }
}

async function closedLoop(load: Load, ask: () => Promise<void>): Promise<readonly number[]> {
  const timesMs: number[] = []
  let open = 0
  await Promise.all(
    Array.from({ length: load.callers }, async () => {
      while (timesMs.length + open < load.asks) {
        open += 1
        const sent = performance.now()
        await ask()
        open -= 1
        timesMs.push(performance.now() - sent)
      }
    }),
  )
  return timesMs
}

/** At random times, as callers that know nothing of each other. */
async function openLoop({ asks }: Load, rate: number, ask: () => Promise<void>): Promise<readonly number[]> {
  const timesMs: number[] = []
  const asked: Promise<void>[] = []
  let dueMs = performance.now()
  const timed = async (due: number): Promise<void> => {
    await ask()
    timesMs.push(performance.now() - due)
  }
  while (asked.length < asks) {
    dueMs += (-Math.log(1 - Math.random()) * 1_000) / rate
    const leftMs = dueMs - performance.now()
    if (leftMs > 0) await delay(leftMs)
    asked.push(timed(dueMs))
  }
  await Promise.all(asked)
  return timesMs
}

function start(load: Load): Promise<{ ask: Ask; close: () => void }> | { ask: Ask; close: () => void } {
  if (load.way === 'http') return openHttp(load)
  if (load.way === 'stream') return openStream(load)
  return load.way.startsWith('turn') ? openTurns(load) : openUnary(load)
}

function openUnary({ address, token, way }: Load): { ask: Ask; close: () => void } {
  const client = new Client(address, credentials.createInsecure())
  const permissions = Array.from({ length: checksOf(way) }, () => PERMISSION)
  const request = create(DecideRequestSchema, { token, permissions })
  return {
    ask: () =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<DecideRequest, DecideResponse>(
          decide.path,
          decide.requestSerialize,
          decide.responseDeserialize,
          request,
          (error, answer) =>
            error === null ? resolve(answer?.permissions.every((one) => one.allowed) === true) : reject(error),
        )
      }),
    close: () => client.close(),
  }
}

function openHttp({ issuer, token }: Load): { ask: Ask; close: () => void } {
  const pool = new Pool(issuer, { connections: 16 })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ permissions: [PERMISSION] })
  return {
    async ask() {
      const answer = await pool.request({ path: '/oauth/decisions', method: 'POST', headers, body })
      const { permissions } = (await answer.body.json()) as { permissions: readonly { allowed: boolean }[] }
      return permissions[0]?.allowed === true
    },
    close: () => void pool.close(),
  }
}

function openStream({ address, token }: Load): { ask: Ask; close: () => void } {
  const client = new Client(address, credentials.createInsecure())
  const call = client.makeBidiStreamRequest<Questions, readonly StreamAnswer[]>(
    decideStream.path,
    encodeQuestions,
    decodeAnswers,
  )
  const waiting = new Map<number, (answer: StreamAnswer) => void>()
  let lastId = 0
  call.on('data', (answers: readonly StreamAnswer[]) => {
    for (const answer of answers) {
      waiting.get(answer.id)?.(answer)
      waiting.delete(answer.id)
    }
  })
  call.on('error', () => undefined)
  call.write({ tokens: [{ handle: 1, token }], questions: [], cancel: [] })
  const rest = { handle: 1, permissions: [PERMISSION], entitlements: [], context: '', watched: false }
  return {
    ask: () =>
      new Promise((resolve) => {
        lastId += 1
        waiting.set(lastId, ({ decision }) => resolve(decision?.permissions[0]?.allowed === true))
        call.write({
          tokens: [],
          questions: [{ id: lastId, ...rest, requestId: '', traceparent: '', clientAddress: '', route: '', guest: '' }],
          cancel: [],
        })
      }),
    close() {
      call.cancel()
      client.close()
    },
  }
}

async function openTurns({ address, token, way }: Load): Promise<{ ask: Ask; close: () => void }> {
  const link = await openLink(address)
  const question = {
    token,
    digest: hash('sha256', token, 'base64url'),
    subject: 'bench',
    organization: 'acme',
    permissions: Array.from({ length: checksOf(way) }, () => PERMISSION),
    entitlements: [],
    context: '',
    requestId: '',
  }
  return {
    ask: () =>
      new Promise((resolve) => {
        link.send(question, (reply) =>
          resolve(reply.kind === 'answer' && reply.decision.permissions.every((one) => one.allowed)),
        )
      }),
    close: () => link.close(),
  }
}

function openLink(address: string): Promise<PdpStream> {
  return new Promise((resolve) => {
    const link: PdpStream = new PdpStream({
      address,
      credentials: credentials.createInsecure(),
      authorize: null,
      random: Math.random,
      onOpen: () => resolve(link),
      connectMs: 3_000,
      clock: Date.now,
      onDate: () => undefined,
      onClosed: () => {},
    })
  })
}

if (process.send !== undefined) {
  process.on('message', (load) => {
    measure(load as Load).then(
      (measured) => process.send?.(measured),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  })
}
