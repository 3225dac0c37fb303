/** The text of a moment: equal for equal content, another after any move, whether it was made or remembered. */
import { describe, expect, test } from 'vitest'
import type { JournalId, JournalPosition } from '../../../../pdp/shared/domain/journal.ts'
import { createRevisionTexts, revisionText } from '../../../../pdp/shared/domain/revision.ts'

const standing = (revision: number, writeId: string): JournalPosition => ({
  revision,
  writeId,
  entitlementVersion: 0,
  entitlementWriteId: '0',
})
const at = (logs: Record<JournalId, JournalPosition>, names: readonly JournalId[] = Object.keys(logs)) => ({
  logs: names,
  vector: { clockMs: 0, logs: new Map(Object.entries(logs)) },
})
const a = standing(1, '11')

describe('the text of a moment', () => {
  test('is said again while nothing has moved, whatever else the vector holds', () => {
    const text = createRevisionTexts()
    const first = text(at({ a, b: a }))
    expect(
      text({ ...at({ b: standing(1, '11'), c: standing(9, '99'), a: standing(1, '11') }), logs: ['a', 'b'] }),
    ).toBe(first)
    expect(first).toBe(revisionText(at({ a, b: a })))
  })

  test.each([
    ['a later revision', at({ a: standing(2, '12'), b: a })],
    ['another history', at({ a: standing(1, '12'), b: a })],
    ['a log behind the first', at({ a, b: standing(2, '11') })],
    ['one log more', at({ a, b: a, c: a })],
    ['one log less', at({ a })],
    ['another log', at({ a, c: a })],
    ['a log that is gone', at({ a }, ['a', 'b'])],
  ])('is another for %s, and the old one when that is where things stand again', (_, other) => {
    const text = createRevisionTexts()
    const first = text(at({ a, b: a }))
    const second = text(other)
    expect(second).not.toBe(first)
    expect(second).toBe(revisionText(other))
    expect(text(at({ a, b: a }))).toBe(first)
  })

  test('is right for more organizations than are remembered', () => {
    const text = createRevisionTexts()
    for (let i = 0; i <= 10_000; i++) {
      const moment = at({ [`o${i}`]: standing(i, `${i}`) })
      expect(text(moment)).toBe(revisionText(moment))
    }
  })
})
