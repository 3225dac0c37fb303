/** The inverse of a write, from the log of changes: for each thing that it changed, the state before. */

import type { ProposedChange } from '../../../engine/decision-point/supposed-changes.ts'
import type { JournalEntry, Store } from '../../../engine/store/contract.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { formatTuple } from '../../../shared/domain/names.ts'
import { readBackwards } from '../journal-backwards.ts'

/** How many changes of one write can be undone, and how many entries before it are searched. */
const CHANGES_MAX = 50
const SEARCHED_MAX = 2_000

type OwnEntry = JournalEntry & { readonly change: ProposedChange }
const UNDOABLE: ReadonlySet<string> = new Set(['tuple', 'membership', 'role_grant'])
const isUndoable = (entry: JournalEntry): entry is OwnEntry => UNDOABLE.has(entry.change.kind)

/** The changes that undo the write; null if the log does not tell all of them, or if another actor wrote it. */
export async function inverseOf(
  store: Pick<Store, 'entries'>,
  { log, revision, actor }: { readonly log: JournalId; readonly revision: number; readonly actor: string },
): Promise<readonly ProposedChange[] | null> {
  const found = await store.entries([{ log, from: revision - 1, to: revision }], CHANGES_MAX + 2)
  const entries = found.filter((entry) => entry.revision === revision)
  const written = entries.filter(isUndoable).filter((entry) => entry.actor === actor)
  if (written.length === 0 || written.length < entries.length || written.length > CHANGES_MAX) return null
  const before = await stateBefore(store, { log, revision, keys: new Set(written.map(keyOf)) })
  return before === null ? null : written.map((entry) => back(entry.change, before.get(keyOf(entry)) ?? null))
}

/** `before`: the latest earlier change of the same thing; null: there was none. */
function back(change: ProposedChange, before: ProposedChange | null): ProposedChange {
  if (change.kind === 'membership')
    return before?.kind === 'membership' ? before : { kind: 'membership', user: change.user, membership: null }
  return before !== null && 'op' in before && before.op === 'write' ? before : { ...change, op: 'delete' }
}

const keyOf = ({ change }: OwnEntry): string => {
  if (change.kind === 'tuple') return `tuple ${formatTuple(change.tuple)}`
  return change.kind === 'membership' ? `member ${change.user}` : `grant ${change.grant.id}`
}

/** The latest change of each key; a key without one did not exist. Null if the search ended too early. */
async function stateBefore(
  store: Pick<Store, 'entries'>,
  of: { readonly log: JournalId; readonly revision: number; readonly keys: ReadonlySet<string> },
): Promise<ReadonlyMap<string, ProposedChange> | null> {
  const left = new Set(of.keys)
  const state = new Map<string, ProposedChange>()
  let [searched, first] = [0, of.revision]
  for await (const { entries, first: from } of readBackwards(store, { log: of.log, to: of.revision - 1 })) {
    for (const entry of entries) {
      if (entry.change.kind === 'clear') return null
      if (isUndoable(entry) && left.delete(keyOf(entry))) state.set(keyOf(entry), entry.change)
    }
    first = from
    searched += entries.length
    if (left.size === 0) return state
    if (searched >= SEARCHED_MAX) return null
  }
  // If the log's beginning was deleted, it is unknown whether there was an earlier change.
  return first > 1 ? null : state
}

/** The revision that a request wrote; null: it changed nothing. */
export async function revisionOf(
  store: Pick<Store, 'entries' | 'vector'>,
  { log, requestId }: { readonly log: JournalId; readonly requestId: string },
): Promise<number | null> {
  const to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  let searched = 0
  for await (const { entries } of readBackwards(store, { log, to })) {
    const found = entries.find((entry) => entry.requestId === requestId)
    if (found !== undefined) return found.revision
    searched += entries.length
    if (searched >= WRITES_SINCE_MAX) return null
  }
  return null
}

/** How many entries are read after a write that was made a moment ago. */
const WRITES_SINCE_MAX = 1_000
