import { describe, expect, test } from 'vitest'
import { BodyMemory } from '../../../sidecar/upstream/body-memory.ts'

const PIECE_BYTES = 64 * 1024

describe('the memory of streamed bodies', () => {
  test('is collected after each 4 MiB, of however many bodies, and not before', () => {
    let collected = 0
    const bodies = new BodyMemory(() => {
      collected += 1
    })
    for (let piece = 1; piece < 64; piece += 1) bodies.passed(PIECE_BYTES)
    expect(collected).toBe(0)
    bodies.passed(PIECE_BYTES)
    expect(collected).toBe(1)
    for (let piece = 0; piece < 128; piece += 1) bodies.passed(PIECE_BYTES)
    expect(collected).toBe(3)
  })

  test('is freed by the collector of this process', async () => {
    const bodies = new BodyMemory()
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    for (let piece = 0; piece < 2_000; piece += 1) {
      bodies.passed(Buffer.from(new ArrayBuffer(PIECE_BYTES)).length)
      // What was collected is swept beside this thread.
      if (piece % 64 === 0) await new Promise(setImmediate)
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    expect(most).toBeLessThan(64 * 1024 * 1024)
  })
})
