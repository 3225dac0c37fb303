/** What is too rare for a random schedule: one log's cache, step by step. */
import { describe, expect, test } from 'vitest'
import { FALSE } from '../../../../../pdp/engine/decide/view.ts'
import { JournalCache, type Reading, type Target } from '../../../../../pdp/engine/store/cache/journal-cache.ts'
import { RowBudget } from '../../../../../pdp/engine/store/cache/row-budget.ts'
import { RowsView } from '../../../../../pdp/engine/store/cache/rows-view.ts'
import type { JournalEntry, RowSet } from '../../../../../pdp/engine/store/contract.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import type { JournalPosition } from '../../../../../pdp/shared/domain/journal.ts'
import { drop, put } from '../../../../support/tuples.ts'

const at = (revision: number, sentTick: number): Target => {
  const position: JournalPosition = {
    revision,
    writeId: `w${revision}`,
    entitlementVersion: 0,
    entitlementWriteId: '0',
  }
  const reading: Reading = { vector: { clockMs: 0, logs: new Map([['acme', position]]) }, sentTick }
  return { position, reading }
}
const groups = (subject: string, ...names: string[]): RowSet => ({
  key: { log: 'acme', kind: 'groups', subject },
  groups: names.map((name) => ({ subject: `group:${name}#member`, expiresAtMs: null })),
})
const load = (cache: JournalCache, target: Target, ...rows: RowSet[]): void => {
  const pending = cache.startLoad()
  cache.finishLoad(pending, target.position, rows)
}
const entry = (revision: number, change: Change): JournalEntry => ({
  log: 'acme',
  revision,
  writeId: `w${revision}`,
  change,
  actor: '',
  requestId: '',
  atMs: 0,
})
const NOTHING: Change = { kind: 'membership', user: 'x', membership: null }
const closureOf = (cache: JournalCache, subject: string) =>
  new RowsView(() => cache.rows, 0).closure('acme', subject)?.groups

describe('a log’s cache', () => {
  test('forgets what was derived from groups when everything was evicted and it jumps over a change of groups', () => {
    const cache = new JournalCache('acme', new RowBudget(1e9))
    cache.compare(at(1, 1), 2)
    load(cache, at(1, 1), groups('user:ann', 'a'), groups('group:a#member', 'b'), groups('group:b#member'))
    expect(closureOf(cache, 'user:ann')).toEqual(new Set(['group:a#member', 'group:b#member']))
    for (const held of [...cache.rows.all()]) held.evict()
    expect(cache.compare(at(2, 3), 4)).toBe('at')
    load(cache, at(2, 3), groups('user:ann', 'a'), groups('group:a#member'))
    expect(closureOf(cache, 'user:ann')).toEqual(new Set(['group:a#member']))
  })

  test('brings a probe of a wide set forward over what was applied while it was read', () => {
    const cache = new JournalCache('acme', new RowBudget(1e9))
    const wide: RowSet = {
      key: { log: 'acme', kind: 'set', object: 'doc:1', relation: 'viewer' },
      subjects: [],
      complete: false,
      usersetsComplete: true,
    }
    const probe: RowSet = {
      key: { log: 'acme', kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:ann' },
      row: { subject: 'user:ann', expiresAtMs: null },
    }
    cache.compare(at(1, 1), 2)
    load(cache, at(1, 1), wide)
    const probing = cache.startLoad()
    for (const held of [...cache.rows.all()]) held.evict()
    const reloading = cache.startLoad()
    cache.advance(
      {
        from: cache.position,
        target: at(2, 3),
        entries: [entry(1, put('x:1#r@user:x')), entry(2, drop('doc:1#viewer@user:ann'))],
      },
      4,
    )
    cache.finishLoad(reloading, at(2, 3).position, [wide])
    cache.finishLoad(probing, at(1, 3).position, [probe])
    expect(new RowsView(() => cache.rows, 0).has('acme', 'doc:1', 'viewer', 'user:ann')).toBe(FALSE)
  })

  test('ignores a vector that was sent before its own position was confirmed', () => {
    const cache = new JournalCache('acme', new RowBudget(1e9))
    cache.compare(at(5, 1), 4)
    load(cache, at(5, 1), groups('user:ann', 'a'))
    expect(cache.compare(at(4, 3), 6)).toBe('ahead')
    expect(closureOf(cache, 'user:ann')).toBeUndefined() // group:a's own groups are not known
    expect(cache.position.revision).toBe(5)
  })

  test('is emptied by a lower revision in a later statement, and by the same revision of another history', () => {
    for (const revision of [4, 5]) {
      const cache = new JournalCache('acme', new RowBudget(1e9))
      cache.compare(at(5, 1), 4)
      load(cache, at(5, 1), groups('user:ann'))
      const other: Target = { ...at(revision, 9), position: { ...at(revision, 9).position, writeId: 'other' } }
      expect(cache.compare(other, 10)).toBe('at')
      expect(cache.rows.empty).toBe(true)
    }
  })

  test.each([
    ['a gap', [2, 4], at(4, 5)],
    ['a missing end', [2, 3], at(4, 5)],
    ['a missing beginning', [3, 4], at(4, 5)],
    ['another write at the end', [2, 3, 4], { ...at(4, 5), position: { ...at(4, 5).position, writeId: 'other' } }],
  ])('is emptied by a delta with %s', (_, revisions, target) => {
    const cache = new JournalCache('acme', new RowBudget(1e9))
    cache.compare(at(1, 1), 2)
    load(cache, at(1, 1), groups('user:ann'))
    const entries = [1, ...revisions].map((revision) => entry(revision, NOTHING))
    cache.advance({ from: cache.position, target, entries }, 6)
    expect([cache.rows.empty, cache.position.revision]).toEqual([true, 4])
  })

  test('keeps its rows over a whole delta that begins at its own last write', () => {
    const cache = new JournalCache('acme', new RowBudget(1e9))
    cache.compare(at(1, 1), 2)
    load(cache, at(1, 1), groups('user:ann'))
    const entries = [1, 2].map((revision) => entry(revision, NOTHING))
    cache.advance({ from: cache.position, target: at(2, 5), entries }, 6)
    expect([cache.rows.empty, cache.position.revision]).toEqual([false, 2])
  })
})
