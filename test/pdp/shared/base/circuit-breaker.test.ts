import { beforeEach, describe, expect, test } from 'vitest'
import { type Circuit, createCircuit } from '../../../../pdp/shared/base/circuit-breaker.ts'

let nowMs: number
let circuit: Circuit
beforeEach(() => {
  nowMs = 0
  circuit = createCircuit({ failuresMax: 3, restMs: 100, restMsMax: 350, clock: () => nowMs })
})
/** Whether it was let through. */
const attempt = (answered: boolean): boolean => {
  const settle = circuit.begin()
  settle?.(answered)
  return settle !== null
}

describe('a circuit', () => {
  test('lets everything through until three attempts in a row have failed', () => {
    for (const answered of [false, false, true, false, false, true]) expect(attempt(answered)).toBe(true)
    for (let i = 0; i < 3; i++) expect(attempt(false)).toBe(true)
    expect(attempt(true)).toBe(false)
  })

  test('rests twice as long each time, up to the longest, and ends with an answer', () => {
    for (let i = 0; i < 3; i++) attempt(false)
    for (const restMs of [100, 200, 350, 350]) {
      nowMs += restMs - 1
      expect(attempt(true)).toBe(false)
      nowMs += 1
      expect(attempt(false)).toBe(true)
    }
    nowMs += 350
    expect([attempt(true), attempt(false), attempt(false), attempt(true)]).toEqual([true, true, true, true])
  })

  test('lets one attempt through after a rest, and the others wait for what it finds', () => {
    for (let i = 0; i < 3; i++) attempt(false)
    nowMs += 100
    const settle = circuit.begin()
    expect([circuit.begin(), circuit.begin()]).toEqual([null, null])
    settle?.(true)
    expect(attempt(true)).toBe(true)
  })

  test('is not kept at rest longer by attempts that began before', () => {
    const early = Array.from({ length: 50 }, () => circuit.begin())
    for (const settle of early) settle?.(false)
    nowMs += 100
    expect(attempt(true)).toBe(true)
  })

  test('ends its rest when an attempt that began before is answered late', () => {
    const early = Array.from({ length: 4 }, () => circuit.begin())
    for (const settle of early.slice(1)) settle?.(false)
    expect(attempt(true)).toBe(false)
    early[0]?.(true)
    expect(attempt(true)).toBe(true)
  })
})
