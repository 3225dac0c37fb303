import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { startFramesHarness } from '../support/frames-harness.ts'
import type { Harness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { block, FLAGS, frame, headers, PREFACE, pseudo, sendFrames, settings, TYPES } from '../support/raw-http2.ts'

let h: Harness
beforeAll(async () => {
  h = await startFramesHarness()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.handle = null
})
const GET = pseudo('GET', '/public/x')

describe('frames that no request needs', () => {
  const many = (count: number, one: (at: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, at) => one(at)))
  const FLOODS: [string, Buffer][] = [
    ['PING', many(2_000, () => frame(TYPES.ping, FLAGS.none, 0, Buffer.alloc(8)))],
    ['SETTINGS', many(2_000, settings)],
    ['PRIORITY', many(2_000, (at) => frame(TYPES.priority, FLAGS.none, 2 * at + 1, Buffer.from([0, 0, 0, 0, 1])))],
    [
      'empty DATA',
      Buffer.concat([headers(1, pseudo('POST', '/public/x'), { end: false }), many(2_000, () => frame(0, 0, 1))]),
    ],
    ['empty CONTINUATION', Buffer.concat([frame(1, 0, 1, block(GET)), many(2_000, () => frame(9, 0, 1))])],
    [
      'CONTINUATION without an end',
      Buffer.concat([frame(1, 0, 1, block(GET)), many(2_000, () => frame(9, 0, 1, block([['x', 'y'.repeat(1_000)]])))]),
    ],
    ['frames of unknown types', many(2_000, () => frame(0xbb, FLAGS.none, 0))],
    [
      'HEADERS and RST_STREAM',
      many(10_000, (at) =>
        Buffer.concat([headers(2 * at + 1, GET), frame(3, 0, 2 * at + 1, Buffer.from([0, 0, 0, 8]))]),
      ),
    ],
  ]

  async function refusals(): Promise<number> {
    const line = /^portcullis_sidecar_requests_total\{route="",decision="deny",outcome="request_invalid"\} (\d+)$/m
    return Number(line.exec(await h.registry.metrics())?.[1] ?? 0)
  }

  test.each(FLOODS)('%s: a flood ends the connection, and no other', async (_name, bytes) => {
    const session = openSession(h.port)
    const before = await refusals()
    const answer = await sendFrames(h.port, bytes)
    expect([answer.closed, await refusals()]).toEqual([true, before + 1])
    expect(h.upstream.reached.length).toBeLessThan(200)
    expect((await ask(session, 'GET /public/y')).status).toBe(200)
    session.destroy()
  })

  test('streams that we reset because a body has another length, a few at a time, end the connection', async () => {
    const before = await refusals()
    const socket = connect(h.port, '127.0.0.1').on('error', () => undefined)
    const closed = new Promise((resolve) => socket.on('close', () => resolve(true)))
    socket.resume()
    socket.write(Buffer.concat([PREFACE, settings()]))
    let id = 1
    const sending = setInterval(() => {
      const head = headers(id, [...pseudo('POST', '/public/x'), ['content-length', '5']], { end: false })
      if (socket.writable) socket.write(Buffer.concat([head, frame(TYPES.data, FLAGS.endStream, id)]))
      id += 2
    }, 2)
    expect(await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 5_000, false))])).toBe(true)
    clearInterval(sending)
    expect(await refusals()).toBe(before + 1)
  })

  test('a PING for each answer is no flood', async () => {
    const session = openSession(h.port)
    for (let at = 0; at < 300; at += 1) {
      session.ping(() => undefined)
      expect((await ask(session, 'GET /public/x')).status).toBe(200)
    }
    session.destroy()
  })

  test.each<[string, Buffer]>([
    ['a frame larger than allowed', frame(TYPES.data, FLAGS.none, 1, Buffer.alloc(16_385))],
    [
      'a header block that is none',
      frame(TYPES.headers, FLAGS.endHeaders | FLAGS.endStream, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    ],
    ['an index that nobody has set', frame(TYPES.headers, FLAGS.endHeaders | FLAGS.endStream, 1, Buffer.from([0xfe]))],
    [
      'a frame between the pieces of a header block',
      Buffer.concat([frame(TYPES.headers, FLAGS.endStream, 1, block(GET)), settings()]),
    ],
    ['DATA of a stream that was never opened', frame(TYPES.data, FLAGS.endStream, 1, Buffer.from('x'))],
    ['a stream of the server', headers(2, GET)],
    ['PUSH_PROMISE', frame(TYPES.push, FLAGS.endHeaders, 1, Buffer.alloc(8))],
    ['more padding than payload', frame(TYPES.headers, FLAGS.endHeaders | FLAGS.padded, 1, Buffer.from([9, 1]))],
    ['a window that overflows', frame(TYPES.window, FLAGS.none, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))],
  ])('%s ends the connection', async (_name, bytes) => {
    const answer = await sendFrames(h.port, bytes)
    expect([answer.closed, answer.status]).toEqual([true, 0])
  })

  test('a stream with a lower number than one before is not answered', async () => {
    const { statuses } = await sendFrames(h.port, Buffer.concat([headers(5, GET), headers(3, GET)]))
    expect([...statuses]).toEqual([[5, 200]])
  })

  test('garbage after the preface ends the connection', async () => {
    const answer = await sendFrames(h.port, Buffer.from('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n'), {
      preface: PREFACE,
    })
    expect([answer.closed, h.upstream.reached.length]).toEqual([true, 0])
  })
})

describe('streams', () => {
  test('beyond the number that a connection may have are refused, and may be sent again', async () => {
    const waiting: (() => void)[] = []
    h.upstream.handle = (_req, res) => void waiting.push(() => res.end())
    const answered = sendFrames(h.port, Buffer.concat(Array.from({ length: 8 }, (_, at) => headers(2 * at + 1, GET))), {
      endCount: 8,
    })
    await until(() => waiting.length === 5)
    await new Promise((resolve) => setTimeout(resolve, 50))
    for (const finish of waiting) finish()
    const { statuses, resets, goaway } = await answered
    expect([...statuses.values()]).toEqual([200, 200, 200, 200, 200])
    expect(resets.size === 3 || goaway !== null).toBe(true)
  })

  test('beyond half of what all clients may have are refused to one of them', async () => {
    const waiting: (() => void)[] = []
    h.upstream.handle = (_req, res) => void waiting.push(() => res.end())
    const sessions = Array.from({ length: 5 }, () => openSession(h.port))
    const asked = sessions.flatMap((session) => Array.from({ length: 5 }, () => ask(session, 'GET /public/x')))
    let refusedCount = 0
    for (const answer of asked) void answer.then(() => (refusedCount += 1))
    await until(() => waiting.length === 10 && refusedCount === 15)
    for (const finish of waiting) finish()
    const answers = await Promise.all(asked)
    expect(answers.filter(({ status }) => status === 200).length).toBe(10)
    expect(answers.filter(({ reset }) => reset === 7).length).toBe(15)
    for (const session of sessions) session.destroy()
    h.upstream.handle = null
    const again = openSession(h.port)
    expect((await ask(again, 'GET /public/x')).status).toBe(200)
    again.destroy()
  })
})
