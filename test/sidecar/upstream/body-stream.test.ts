import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'
import { BodyMemory } from '../../../sidecar/upstream/body-memory.ts'
import { streamBody } from '../../../sidecar/upstream/body-stream.ts'
import { until } from '../../support/until.ts'

/** `source`: what the client sends. `got`: each piece that is passed on. */
function start(): { readonly source: Readable; readonly body: Readable; readonly got: Buffer[] } {
  const source = new Readable({ read: () => undefined })
  const client = { ...syntheticRequest({ method: 'POST', target: '/', raw: [] }), body: source }
  const body = streamBody({ client, sendContinue: () => undefined, pace: null, bodies: new BodyMemory() })
  const got: Buffer[] = []
  body.on('data', (piece) => got.push(piece))
  return { source, body, got }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a request body', () => {
  test.each([
    [1, 10_000],
    [7, 2_000],
    [1_000, 400],
    [4_095, 100],
  ])('in small pieces of %i bytes is passed on in few, whole and in order', async (size, count) => {
    const { source, body, got } = start()
    const pieces = Array.from({ length: count }, (_, at) => Buffer.alloc(size, at % 251))
    for (const piece of pieces) {
      // A parser emits them one by one, while it reads what has arrived.
      source.emit('data', piece)
    }
    source.push(null)
    await new Promise((resolve) => body.once('end', resolve))
    expect(Buffer.concat(got).equals(Buffer.concat(pieces))).toBe(true)
    expect(got.length).toBeLessThanOrEqual(16 + Math.ceil((size * count) / 4_096))
  })

  test('passes each piece on although no other follows', async () => {
    const { source, got } = start()
    for (let count = 1; count <= 40; count += 1) {
      source.push(Buffer.from('a'))
      await until(() => Buffer.concat(got).length === count)
    }
  })

  test('that was given up passes nothing on any more', async () => {
    const { source, body, got } = start()
    for (let count = 0; count < 17; count += 1) source.emit('data', Buffer.from('a'))
    body.destroy()
    await turn()
    expect(got.length).toBeLessThanOrEqual(16)
  })

  test('in large pieces is passed on as it came, also after small ones', async () => {
    const { source, body, got } = start()
    for (let count = 0; count < 30; count += 1) source.emit('data', Buffer.from('a'))
    const large = Buffer.alloc(64 * 1024)
    await turn()
    source.push(large)
    source.push(null)
    await new Promise((resolve) => body.once('end', resolve))
    expect(got.at(-1)?.buffer).toBe(large.buffer)
  })
})
