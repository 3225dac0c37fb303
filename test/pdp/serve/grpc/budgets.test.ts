/** What the streams of one caller may hold, of what there is for all. */
import { describe, expect, test } from 'vitest'
import { createBudgets } from '../../../../pdp/serve/grpc/budgets.ts'
import { createHandles } from '../../../../pdp/serve/grpc/token-handles.ts'

const TOTALS = { streams: 8, watched: 8, tokenCharacters: 4_000, bytes: 8 }

describe('a caller', () => {
  test.each(['streams', 'watched', 'tokenCharacters', 'bytes'] as const)(
    'has a quarter of all %s and no more',
    (kind) => {
      const budgets = createBudgets(TOTALS)
      const quarter = TOTALS[kind] / 4
      const mine = budgets.of('a')
      expect(mine.take(kind, quarter)).toBe(true)
      expect(mine.take(kind, 1)).toBe(false)
      expect(budgets.of('a').take(kind, 1)).toBe(false)
      for (const other of ['b', 'c', 'd']) expect(budgets.of(other).take(kind, quarter)).toBe(true)
      expect(budgets.of('e').take(kind, 1)).toBe(false)
      mine.give(kind, 1)
      expect(budgets.of('e').take(kind, 1)).toBe(true)
    },
  )
})

describe('handles', () => {
  const token = (letter: string): string => letter.repeat(400)

  test('make room for a newer token by the oldest of the same stream', () => {
    const handles = createHandles(createBudgets(TOTALS).of('a'))
    for (const [i, letter] of ['a', 'b', 'c'].entries()) handles.define(i, token(letter))
    expect([0, 1, 2].map((handle) => handles.find(handle)?.[0])).toEqual([undefined, 'b', 'c'])
  })

  test('of all streams of a caller hold no more than the caller may, whatever is defined again', () => {
    const budgets = createBudgets(TOTALS)
    const streams = Array.from({ length: 12 }, () => createHandles(budgets.of('a')))
    for (let round = 0; round < 5; round++) {
      for (const [i, handles] of streams.entries()) {
        for (let handle = 0; handle < 20; handle++) handles.define(handle, token(String.fromCharCode(97 + i)))
      }
    }
    let held = 0
    for (const handles of streams) for (let i = 0; i < 20; i++) held += handles.find(i)?.length ?? 0
    expect(held).toBeLessThanOrEqual(1_000)
    expect(held).toBeGreaterThan(0)
    expect(budgets.of('b').take('tokenCharacters', 1_000)).toBe(true)
  })

  test('give everything back at the end of their stream', () => {
    const budgets = createBudgets(TOTALS)
    const handles = createHandles(budgets.of('a'))
    handles.define(1, token('a'))
    handles.define(1, token('b'))
    handles.clear()
    handles.clear()
    expect(handles.find(1)).toBeUndefined()
    expect(budgets.of('a').take('tokenCharacters', 1_000)).toBe(true)
  })
})
