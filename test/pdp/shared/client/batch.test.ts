import { describe, expect, test } from 'vitest'
import { createQuestionBatch } from '../../../../pdp/shared/client/batch.ts'
import type { Questions } from '../../../../pdp/shared/client/codec.ts'
import type { PdpQuestion } from '../../../../sidecar/pdp-client/question.ts'

const HANDLES = 1_000
const question = (name: string, over: Partial<PdpQuestion> = {}): PdpQuestion => ({
  token: `token of ${name}`,
  digest: name,
  subject: 'alice',
  organization: 'acme',
  permissions: [{ relation: 'viewer', resource: 'doc:1' }],
  entitlements: [],
  context: '',
  requestId: '',
  ...over,
})
/** All that was added meanwhile has been sent. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Sent = {
  readonly batch: ReturnType<typeof createQuestionBatch>
  readonly messages: Questions[]
  /** With which token each question is asked, as the PDP reads messages: tokens first, then what is cancelled. */
  asked(): Map<number, string | undefined>
  watched(): number[]
}
function open(): Sent {
  const messages: Questions[] = []
  return {
    batch: createQuestionBatch((message) => void messages.push(message)),
    messages,
    asked() {
      const tokens = new Map<number, string>()
      const asked = new Map<number, string | undefined>()
      for (const message of messages) {
        for (const { handle, token } of message.tokens) tokens.set(handle, token)
        for (const { id, handle } of message.questions) asked.set(id, tokens.get(handle))
      }
      return asked
    },
    watched() {
      const ids = new Set<number>()
      for (const { cancel, questions } of messages) {
        for (const id of cancel) ids.delete(id)
        for (const { id, watched } of questions) if (watched) ids.add(id)
      }
      return [...ids]
    },
  }
}

describe('questions of one turn', () => {
  test('leave in one message, with each token once', async () => {
    const { batch, messages, asked } = open()
    for (let id = 1; id <= 20; id += 1) batch.add(id, question(`t${id % 2}`), false)
    expect(messages).toEqual([])
    await turn()
    expect([messages.length, messages[0]?.tokens.length, asked().size]).toEqual([1, 2, 20])
    batch.add(21, question('t1'), false)
    await turn()
    expect([messages.length, messages[1]?.tokens]).toEqual([2, []])
  })

  test('are asked with their own token when another takes its handle in the same turn', async () => {
    const { batch, asked } = open()
    for (let at = 1; at <= HANDLES; at += 1) {
      batch.add(at, question(`t${at}`), false)
      if (at % 100 === 0) await turn()
    }
    // The oldest is defined anew, after it was asked about and before that has left.
    batch.add(2_001, question('t1'), false)
    batch.add(2_002, question('new'), false)
    batch.add(2_003, question('t1'), false)
    batch.add(2_004, question('t2'), false)
    await turn()
    expect([2_001, 2_002, 2_003, 2_004].map((id) => asked().get(id))).toEqual([
      'token of t1',
      'token of new',
      'token of t1',
      'token of t2',
    ])
  })

  test('are asked with their own token, however many there are', async () => {
    const { batch, messages, asked } = open()
    for (let id = 1; id <= 5 * HANDLES; id += 1)
      batch.add(id, question(`t${(id * 7) % 1_777}`, { permissions: [] }), false)
    await turn()
    const wrong = [...asked()].filter(([id, token]) => token !== `token of t${(id * 7) % 1_777}`)
    expect([asked().size, wrong]).toEqual([5 * HANDLES, []])
    expect(messages.length).toBeLessThan(50)
  })

  test('are sent before they grow too large for one message', async () => {
    const { batch, messages } = open()
    for (let id = 1; id <= 100; id += 1) batch.add(id, question(`t${id}`, { token: 'x'.repeat(8_000) }), false)
    expect(messages.length).toBeGreaterThan(1)
    await turn()
    expect(messages.flatMap(({ questions }) => questions)).toHaveLength(100)
  })
})

describe('a watched question', () => {
  test('is cancelled on the PDP once it has left', async () => {
    const { batch, watched } = open()
    batch.add(1, question('t1'), true)
    await turn()
    expect(watched()).toEqual([1])
    batch.cancel(1)
    await turn()
    expect(watched()).toEqual([])
  })

  test('that is cancelled before it has left is not asked at all', async () => {
    const { batch, messages, watched, asked } = open()
    batch.add(1, question('t1'), true)
    batch.add(2, question('t1'), true)
    batch.cancel(1)
    await turn()
    expect([watched(), [...asked().keys()], messages.length]).toEqual([[2], [2], 1])
  })

  test('that is cancelled alone leaves its token to the next', async () => {
    const { batch, messages, asked } = open()
    batch.add(1, question('t1'), true)
    batch.cancel(1)
    await turn()
    expect(messages).toEqual([])
    batch.add(2, question('t1'), false)
    await turn()
    expect([...asked()]).toEqual([[2, 'token of t1']])
  })
})

describe('a token', () => {
  test('that the PDP does not know any more is sent again', async () => {
    const { batch, messages } = open()
    batch.add(1, question('t1'), false)
    await turn()
    batch.forget('t1')
    batch.add(1, question('t1'), false)
    await turn()
    expect(messages.map(({ tokens }) => tokens.map(({ token }) => token))).toEqual([['token of t1'], ['token of t1']])
  })

  test('is sent again over a new stream, and what was not sent over the old one is not', async () => {
    const { batch, messages } = open()
    batch.add(1, question('t1'), false)
    batch.reset()
    await turn()
    expect(messages).toEqual([])
    batch.add(2, question('t1'), false)
    await turn()
    expect(messages).toMatchObject([{ tokens: [{ token: 'token of t1' }], questions: [{ id: 2 }] }])
  })
})
