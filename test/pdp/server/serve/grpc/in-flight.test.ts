/** What the questions and answers of streams hold while they are under way, counted. */
import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Answer } from '../../../../../pdp/server/serve/decisions/answer.ts'
import type { AnswerOrError, StreamAnswer } from '../../../../../pdp/server/serve/grpc/answer-codec.ts'
import { createOutbox, type StreamCall } from '../../../../../pdp/server/serve/grpc/answer-sender.ts'
import type { Budgets } from '../../../../../pdp/server/serve/grpc/budgets.ts'
import { serveStream } from '../../../../../pdp/server/serve/grpc/stream.ts'
import { asRequestProblem } from '../../../../../pdp/server/serve/http/status.ts'
import { answerOf, counting, LARGE, LARGE_WEIGHT, MIB, TOTALS } from './in-flight.ts'

/** A transport that takes a message only when it is told to. */
class SlowCall extends EventEmitter {
  readonly written: StreamAnswer[][] = []
  readonly #callbacks: (() => void)[] = []
  paused = false
  ended = false
  writableNeedDrain = false
  readonly writable = true
  write(answers: StreamAnswer[], done: () => void): boolean {
    this.written.push(answers)
    this.#callbacks.push(done)
    return true
  }
  pause(): void {
    this.paused = true
  }
  resume(): void {
    this.paused = false
  }
  end(): void {
    this.ended = true
  }
  takeAll(): void {
    for (const done of this.#callbacks.splice(0)) done()
  }
  get answers(): StreamAnswer[] {
    return this.written.flat()
  }
}
const asCall = (call: SlowCall): StreamCall => call as unknown as StreamCall
const soon = () => new Promise((done) => setImmediate(done))
const errorsOf = (answers: readonly { readonly outcome: AnswerOrError }[]) =>
  answers.flatMap(({ outcome }) => ('error' in outcome ? [outcome.error] : []))

function streamOf(budgets: Budgets, caller: string) {
  const call = new SlowCall()
  const asked: ((answer: Answer) => void)[] = []
  const watched: ((answer: Answer) => boolean)[] = []
  serveStream(asCall(call), {
    recognize: async () => ({ active: false }),
    answer: () => new Promise((resolve) => asked.push(resolve)),
    watched: {
      ask: ({ onAnswer }) => {
        watched.push(onAnswer)
        return () => undefined
      },
      close: async () => undefined,
    },
    group: null,
    holding: budgets.of({ name: caller, group: null }),
    problemCode: (err) => asRequestProblem(err).code,
  })
  call.emit('data', { tokens: [{ handle: 1, token: 't' }], questions: [], cancel: [] })
  let nextId = 0
  const ask = (count: number, options: { permissions?: typeof LARGE; watched?: boolean } = {}): void => {
    const { permissions = LARGE, watched: stands = false } = options
    const questions = Array.from({ length: count }, () => {
      nextId += 1
      return {
        id: nextId,
        handle: 1,
        permissions,
        entitlements: [],
        context: '',
        requestId: '',
        watched: stands,
        guest: '',
      }
    })
    call.emit('data', { tokens: [], questions, cancel: [] })
  }
  return { call, asked, watched, ask }
}

describe('the questions of one caller', () => {
  test('hold a quarter of the bytes at most, over all of its streams, and those of others have theirs', async () => {
    const { budgets, heldBy, mostOf } = counting()
    const streams = Array.from({ length: 4 }, () => streamOf(budgets, 'greedy'))
    for (let round = 0; round < 10; round += 1) for (const { ask } of streams) ask(10)
    await soon()
    const accepted = streams.reduce((n, { asked }) => n + asked.length, 0)
    expect(accepted).toBe(Math.floor(MIB / LARGE_WEIGHT))
    expect(mostOf('greedy')).toBeLessThanOrEqual(MIB)
    const refused = streams.flatMap(({ call }) => errorsOf(call.answers))
    expect(new Set(refused)).toEqual(new Set(['overloaded']))
    expect(refused).toHaveLength(400 - accepted)
    const normal = streamOf(budgets, 'normal')
    normal.ask(3)
    await soon()
    expect(normal.asked).toHaveLength(3)
    for (const { call, asked } of streams) {
      for (const answer of asked) answer(answerOf(0))
      await soon()
      call.takeAll()
    }
    expect(heldBy('greedy')).toBe(0)
  })

  test('that stand hold their bytes until they end, and no more stand than these allow', async () => {
    const { budgets, heldBy, mostOf } = counting()
    const { call, watched, ask } = streamOf(budgets, 'greedy')
    ask(100, { watched: true })
    expect(watched.length).toBeLessThanOrEqual(Math.floor(MIB / LARGE_WEIGHT))
    expect(watched.length).toBeGreaterThan(0)
    for (const onAnswer of watched) onAnswer(answerOf(0))
    await soon()
    call.takeAll()
    expect(heldBy('greedy')).toBe(watched.length * LARGE_WEIGHT)
    ask(100, { watched: true })
    await soon()
    expect(new Set(errorsOf(call.answers))).toEqual(new Set(['watched_limit', 'overloaded']))
    expect(mostOf('greedy')).toBeLessThanOrEqual(MIB)
    call.emit('cancelled')
    expect(heldBy('greedy')).toBe(0)
  })
})

describe('a stream', () => {
  test('is not read while its questions hold the bytes that are its own, and is read again afterwards', async () => {
    const { budgets, heldBy } = counting({ ...TOTALS, bytes: 400 * MIB })
    const { call, asked, ask } = streamOf(budgets, 'a')
    while (!call.paused) ask(8)
    expect(heldBy('a')).toBeGreaterThanOrEqual(8 * MIB)
    expect(heldBy('a')).toBeLessThan(8 * MIB + 8 * LARGE_WEIGHT)
    await soon()
    for (const answer of asked) answer(answerOf(0))
    await soon()
    await soon()
    call.takeAll()
    expect(call.paused).toBe(false)
    expect(heldBy('a')).toBe(0)
  })

  test('whose caller reads nothing keeps no more answers than it may hold', async () => {
    const { budgets, mostOf, heldBy } = counting({ ...TOTALS, bytes: 40 * MIB })
    const { call, asked, ask } = streamOf(budgets, 'slow')
    const small = LARGE.slice(0, 1)
    ask(200, { permissions: small })
    await soon()
    for (const answer of asked) answer(answerOf(256, { text: 'v'.repeat(100_000) }))
    await soon()
    await soon()
    expect(call.answers).toHaveLength(200)
    expect(errorsOf(call.answers).length).toBeGreaterThan(100)
    expect(mostOf('slow')).toBeLessThanOrEqual(10 * MIB)
    call.emit('close')
    expect(heldBy('slow')).toBe(0)
    call.takeAll()
    expect(heldBy('slow')).toBe(0)
  })

  test('gets its answers in messages of a mebibyte, unless one alone is larger', async () => {
    const { budgets } = counting({ ...TOTALS, bytes: 400 * MIB })
    const call = new SlowCall()
    const outbox = createOutbox(asCall(call), budgets.of({ name: 'a', group: null }))
    const values = [600_000, 600_000, 100, 3_000_000, 100]
    for (const [id, size] of values.entries()) {
      outbox.expect(10)
      outbox.reply(id, { answer: answerOf(0, { text: 'v'.repeat(size) }) }, 10)
    }
    await soon()
    expect(call.written.map((answers) => answers.map(({ id }) => id))).toEqual([[0], [1, 2], [3], [4]])
  })

  test('gives back what its unsent updates held when a newer one takes their place, or it ends', async () => {
    const { budgets, heldBy } = counting()
    const call = new SlowCall()
    call.writableNeedDrain = true
    const outbox = createOutbox(asCall(call), budgets.of({ name: 'a', group: null }))
    for (let i = 0; i < 50; i += 1) expect(outbox.update(7, { answer: answerOf(1, { i }) })).toBe(true)
    const one = heldBy('a')
    expect(one).toBeGreaterThan(2_000)
    expect(one).toBeLessThan(4_000)
    outbox.cancelUpdate(7)
    expect(heldBy('a')).toBe(0)
    outbox.update(8, { answer: answerOf(1) })
    outbox.clear()
    outbox.update(9, { answer: answerOf(1) })
    expect(heldBy('a')).toBe(0)
  })
})
