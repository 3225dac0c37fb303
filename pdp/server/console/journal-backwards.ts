/** Reads a journal from its end: people mostly look for late changes, and a log may have millions of entries. */

import type { JournalEntry, Store } from '../../engine/store/contract.ts'
import type { JournalId } from '../../shared/domain/journal.ts'

/** About how many entries one read returns: the range of revisions grows until it has this many, and is halved when it has more. */
const ENTRIES_PER_READ = 1_002
/** The most entries of one revision, which is never split. */
const REVISION_ENTRIES_MAX = 200_000

/**
 * The entries of `log` up to revision `to`, the newest first, in several ranges. It ends at the log's beginning, or where older
 * entries were deleted. `first`: the earliest revision that was read; above 1 at the end if entries were deleted.
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
  // `from` is exclusive: the store also returns entries of that revision.
  const found = await store.entries([{ log, from, to }], entriesMax)
  return found.filter(({ revision }) => revision > from)
}
