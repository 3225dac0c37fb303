/** Which change made a tuple what it is: looked for in the log of changes, the latest first. */
import { formatTuple } from '../domain/names.ts'
import type { LogEntry } from '../store/contract.ts'
import type { Visit } from './visit.ts'

/** Of the first read. A later one has twice as many, unless an import made them large. */
const REVISIONS_FIRST = 2
const REVISIONS_MAX = 512
const READS_MAX = 16
/** After so many entries the search ends, and the page says which revisions were not searched. */
const ENTRIES_SEARCHED_MAX = 2_000
const ENTRIES_PER_READ_MAX = 20_000

/** `since`: older changes were not searched; null: the whole log was. */
export type Found = { readonly entries: ReadonlyMap<string, LogEntry>; readonly since: number | null }

/** The latest change of each of these tuples until `untilMs`. Nothing for a person who may not read the log. */
export async function changesOf(visit: Visit, tuples: readonly string[], untilMs: number): Promise<Found> {
  const { organization: log, deps } = visit
  const entries = new Map<string, LogEntry>()
  const wanted = new Set(tuples)
  if (log === null || wanted.size === 0 || !visit.may('audit:read')) return { entries, since: null }
  const { store } = deps.management
  let to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  let [revisions, searched] = [REVISIONS_FIRST, 0]
  for (let read = 0; read < READS_MAX && to > 0 && wanted.size > 0 && searched < ENTRIES_SEARCHED_MAX; read++) {
    const from = Math.max(0, to - revisions)
    const found = await store.entries([{ log, from, to }], ENTRIES_PER_READ_MAX)
    const range = found.filter(({ revision }) => revision > from)
    searched += range.length
    if (range.length < REVISIONS_MAX) revisions = Math.min(REVISIONS_MAX, 2 * revisions)
    for (const entry of range.toReversed()) {
      if (entry.change.kind !== 'tuple' || entry.atMs > untilMs) continue
      const name = formatTuple(entry.change.tuple)
      if (wanted.delete(name)) entries.set(name, entry)
    }
    to = from
  }
  return { entries, since: to === 0 ? null : to }
}
