/** A journal, read from its end: what people look for is mostly late, and a log may have millions of entries. */

import type { JournalEntry, Store } from '../../engine/store/contract.ts'
import type { JournalId } from '../../shared/domain/journal.ts'

/** Entries of one read, about: a range of revisions grows until it brings as many, and is halved when it would bring more. */
const ENTRIES_PER_READ = 1_002
/** Bounds one revision, which is never split. */
const REVISION_ENTRIES_MAX = 200_000

/**
 * The entries of `log` up to revision `to`, the newest first, a range at a time; it ends where the log begins. `first`: the log was
 * read from there. Entries that were deleted after their time end it too, at a `first` beyond 1.
 */
export async function* readBackwards(
  store: Pick<Store, 'entries'>,
  { log, to: end }: { readonly log: JournalId; readonly to: number },
): AsyncGenerator<{ readonly entries: readonly JournalEntry[]; readonly first: number }> {
  let [to, revisions] = [end, 1]
  while (to > 0) {
    const from = Math.max(0, to - revisions)
    const found = await between(store, { log, from, to, entriesMax: ENTRIES_PER_READ })
    if (found.at(-1)?.revision !== to && revisions > 1) {
      revisions = Math.ceil(revisions / 2)
      continue
    }
    const entries = found.length > 0 ? found : await between(store, { log, from, to, entriesMax: REVISION_ENTRIES_MAX })
    const first = entries[0]?.revision
    if (first === undefined) return
    yield { entries: entries.toReversed(), first }
    if (first > from + 1) return
    to = from
    if (2 * entries.length <= ENTRIES_PER_READ) revisions *= 2
  }
}

async function between(
  store: Pick<Store, 'entries'>,
  { log, from, to, entriesMax }: { log: JournalId; from: number; to: number; entriesMax: number },
): Promise<readonly JournalEntry[]> {
  // A range begins with the first entry of `from` itself.
  const found = await store.entries([{ log, from, to }], entriesMax)
  return found.filter(({ revision }) => revision > from)
}
