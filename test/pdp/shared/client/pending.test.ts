import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PendingQuestions } from '../../../../pdp/shared/client/pending.ts'

const LAST_ID = 2 ** 32 - 1

describe('what waits for answers', () => {
  test('is found under its own id until it is deleted, and under no other', () => {
    const open = new PendingQuestions<string>()
    const id = open.add('a')
    expect(open.find(id)).toBe('a')
    // They share its slot, at any size of the table.
    for (const other of [id + 64, id + 128, id + 2 ** 20, id + 2 ** 31, LAST_ID, 0, -1, 1.5, Number.NaN])
      expect([open.find(other), open.delete(other)]).toEqual([null, false])
    expect([open.delete(id), open.delete(id), open.find(id)]).toEqual([true, false, null])
  })

  test('has an id of its own, however much of it there is', () => {
    const open = new PendingQuestions<number>()
    const ids = Array.from({ length: 10_000 }, (_, at) => open.add(at))
    expect(new Set(ids).size).toBe(10_000)
    expect(ids.every((id, at) => open.find(id) === at)).toBe(true)
  })

  test('keeps its id while all around it come and go', () => {
    const open = new PendingQuestions<string>()
    const watched = Array.from({ length: 20 }, (_, at) => [open.add(`watched ${at}`), `watched ${at}`] as const)
    for (let round = 0; round < 5_000; round += 1) {
      const id = open.add(`passing ${round}`)
      expect(open.find(id)).toBe(`passing ${round}`)
      open.delete(id)
    }
    for (const [id, value] of watched) expect(open.find(id)).toBe(value)
  })

  test('finds nothing for an answer that comes late, also when its slot was taken again', () => {
    const open = new PendingQuestions<string>()
    const late = open.add('late')
    open.delete(late)
    const later = Array.from({ length: 1_000 }, (_, at) => {
      const id = open.add(`later ${at}`)
      open.delete(id)
      return id
    })
    expect(later).not.toContain(late)
    expect(open.find(late)).toBeNull()
  })

  test('uses all 32 bits before an id comes again, and passes over those that are open', () => {
    const open = new PendingQuestions<string>(LAST_ID - 3)
    const ids = Array.from({ length: 6 }, (_, at) => open.add(`${at}`))
    expect(ids).toEqual([LAST_ID - 2, LAST_ID - 1, LAST_ID, 0, 1, 2])
    expect(ids.map((id) => open.find(id))).toEqual(['0', '1', '2', '3', '4', '5'])
    const crowded = new PendingQuestions<string>(LAST_ID - 10)
    // Ids before and after the wrap that share slots do not share an id.
    const many = Array.from({ length: 5_000 }, (_, at) => crowded.add(`${at}`))
    expect(new Set(many).size).toBe(5_000)
    expect(many.every((id, at) => crowded.find(id) === `${at}`)).toBe(true)
    expect(many.every((id) => Number.isInteger(id) && id >= 0 && id <= LAST_ID)).toBe(true)
  })

  test('is all handed over by clear, once, and later ids are new', () => {
    const open = new PendingQuestions<number>()
    const ids = Array.from({ length: 300 }, (_, at) => open.add(at))
    open.delete(ids[7] ?? -1)
    expect(open.clear().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, at) => at).toSpliced(7, 1))
    expect([open.clear(), ids.filter((id) => open.find(id) !== null || open.delete(id))]).toEqual([[], []])
    const next = open.add(1)
    expect(ids).not.toContain(next)
    expect(open.clear()).toEqual([1])
  })

  test('is what a Map would hold, whatever is added and deleted', () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.constant({ kind: 'add' as const }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), at: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('find' as const), id: fc.nat(LAST_ID) }) },
    )
    const steps = fc.array(step, { size: 'large', maxLength: 600 })
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 63, LAST_ID - 40), (all, lastId) => {
        const open = new PendingQuestions<object>(lastId)
        const model = new Map<number, object>()
        for (const one of all) {
          if (one.kind === 'add') {
            const value = {}
            const id = open.add(value)
            expect(model.has(id)).toBe(false)
            model.set(id, value)
          } else if (one.kind === 'delete') {
            const id = [...model.keys()][one.at % Math.max(model.size, 1)] ?? one.at
            expect(open.delete(id)).toBe(model.delete(id))
          } else expect(open.find(one.id)).toBe(model.get(one.id) ?? null)
        }
        for (const [id, value] of model) expect(open.find(id)).toBe(value)
        expect(new Set(open.clear())).toEqual(new Set(model.values()))
      }),
    )
  })
})
