/** The inverse of a write of relationships, from the log of changes: what each of them was before. */
import type { JournalEntry, Store } from '../../../engine/store/contract.ts'
import { formatTuple } from '../../../shared/domain/names.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import { readBackwards } from '../journal-backwards.ts'

/** Changes of one write that can be undone, and entries before it that are searched. */
const CHANGES_MAX = 50
const SEARCHED_MAX = 2_000

export type Inverse = { readonly op: 'write' | 'delete'; readonly tuples: readonly Tuple[] }
type TupleEntry = JournalEntry & { readonly change: JournalEntry['change'] & { readonly kind: 'tuple' } }
const isTupleEntry = (entry: JournalEntry): entry is TupleEntry => entry.change.kind === 'tuple'

/** Null where the log does not say all of it, the write was not `actor`'s, or one operation cannot undo it. */
export async function inverseOf(
  store: Pick<Store, 'entries'>,
  { log, revision, actor }: { readonly log: string; readonly revision: number; readonly actor: string },
): Promise<Inverse | null> {
  const found = await store.entries([{ log, from: revision - 1, to: revision }], CHANGES_MAX + 2)
  const entries = found.filter((entry) => entry.revision === revision)
  const written = entries.filter(isTupleEntry).filter((entry) => entry.actor === actor)
  if (written.length === 0 || written.length < entries.length || written.length > CHANGES_MAX) return null
  const before = await stateBefore(store, { log, revision, keys: new Set(written.map(keyOf)) })
  if (before === null) return null
  const inverses = written.map((entry): { readonly op: Inverse['op']; readonly tuple: Tuple } => {
    const tuple = before.get(keyOf(entry)) ?? null
    return tuple === null ? { op: 'delete', tuple: entry.change.tuple } : { op: 'write', tuple }
  })
  const [first] = inverses
  if (first === undefined || inverses.some(({ op }) => op !== first.op)) return null
  return { op: first.op, tuples: inverses.map(({ tuple }) => tuple) }
}

const keyOf = ({ change }: TupleEntry): string => formatTuple(change.tuple)

/** By key: null where there was none. Null in all where the search ended too soon. */
async function stateBefore(
  store: Pick<Store, 'entries'>,
  of: { readonly log: string; readonly revision: number; readonly keys: ReadonlySet<string> },
): Promise<ReadonlyMap<string, Tuple | null> | null> {
  const left = new Set(of.keys)
  const state = new Map<string, Tuple | null>()
  let [searched, first] = [0, of.revision]
  for await (const { entries, first: from } of readBackwards(store, { log: of.log, to: of.revision - 1 })) {
    for (const entry of entries) {
      if (entry.change.kind === 'clear') return null
      if (!isTupleEntry(entry) || !left.delete(keyOf(entry))) continue
      state.set(keyOf(entry), entry.change.op === 'write' ? entry.change.tuple : null)
    }
    first = from
    searched += entries.length
    if (left.size === 0) return state
    if (searched >= SEARCHED_MAX) return null
  }
  // A log that has lost its beginning does not say that there was none.
  if (first > 1) return null
  for (const key of left) state.set(key, null)
  return state
}
