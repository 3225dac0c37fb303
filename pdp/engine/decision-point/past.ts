/** Answers about a time in the past: replays the journals that a question depends on from their beginning until then. */
import { setImmediate as turn } from 'node:timers/promises'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { ancestors } from '../decide/roles.ts'
import { isDecidedBy } from '../store/changes.ts'
import type { JournalEntry, Store } from '../store/contract.ts'
import { memoryStore } from '../store/memory/memory.ts'
import type { ResidentStore } from '../store/memory/resident.ts'
import { createTenantPlaces } from '../store/tenant-places.ts'

/** The most changes that are replayed for one question. */
export const REPLAYED_MAX = 100_000
const ENTRIES_PER_READ = 5_000
/** The most entries that one revision can have. */
const ENTRIES_PER_REVISION_MAX = 200_000

/** How many replays may run at once: each holds whole journals in memory. */
const OPEN_MAX = { all: 2, tenant: 1 }
const WAITING_MAX = { all: 16, tenant: 8 }
/** How many changes are replayed before other requests get a turn. */
const CHANGES_PER_TURN = 200

/**
 * `storeAt`: a store with the content of the organization's journals at `atMs`, without any cache. Throws PdpError `request_invalid` if a
 * journal lacks its beginning or is too long, and `overloaded` if too many wait.
 */
export function createPast(store: Pick<Store, 'vector' | 'entries'>) {
  const places = createTenantPlaces({ open: OPEN_MAX, waiting: WAITING_MAX })
  return {
    storeAt: (organization: string, atMs: number): Promise<ResidentStore> =>
      places.run(organization, () => replay(store, organization, atMs)),
  }
}

async function replay(
  store: Pick<Store, 'vector' | 'entries'>,
  organization: string,
  atMs: number,
): Promise<ResidentStore> {
  const past = memoryStore({ clock: () => atMs })
  const budget = { left: REPLAYED_MAX }
  await replayJournal(store, past, { log: ENVIRONMENT, atMs, budget })
  // The ancestors at that time, which may not be the present ones.
  for (const log of ancestors(past.currentView(), organization) ?? [])
    await replayJournal(store, past, { log, atMs, budget })
  return past
}

async function replayJournal(
  store: Pick<Store, 'vector' | 'entries'>,
  past: ResidentStore,
  of: { readonly log: JournalId; readonly atMs: number; readonly budget: { left: number } },
): Promise<void> {
  const { log, atMs, budget } = of
  const to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  for (let from = 0; from < to; ) {
    const entries = await entriesAfter(store, { log, from, to })
    for (const changes of byRevision(entries)) {
      const [first] = changes
      if (first === undefined || first.revision !== from + 1) throw lost(log, 'the beginning of the log was deleted')
      if (first.atMs > atMs) return
      if (changes.some(({ change }) => change.kind === 'clear'))
        throw lost(log, 'too much changed at once to be replayed')
      const turns = Math.floor(budget.left / CHANGES_PER_TURN)
      budget.left -= changes.length
      if (Math.floor(budget.left / CHANGES_PER_TURN) < turns) await turn()
      if (budget.left < 0) throw lost(log, `there are more than ${REPLAYED_MAX} changes until then`)
      const { actor, requestId } = first
      const decided = changes.map(({ change }) => change).filter((change) => isDecidedBy(log, change))
      if (decided.length > 0) await past.write(log, decided, { context: { actor, requestId } })
      from = first.revision
    }
    if (entries.length === 0) throw lost(log, 'the beginning of the log was deleted')
  }
}

/** Does what `Map.groupBy` does: embedders use this file on Node 20, which lacks it. */
function* byRevision(entries: readonly JournalEntry[]): Generator<readonly JournalEntry[]> {
  for (let from = 0, to = 0; from < entries.length; from = to) {
    while (entries[to]?.revision === entries[from]?.revision) to++
    yield entries.slice(from, to)
  }
}

async function entriesAfter(
  store: Pick<Store, 'entries'>,
  range: { readonly log: JournalId; readonly from: number; readonly to: number },
): Promise<readonly JournalEntry[]> {
  for (const entriesMax of [ENTRIES_PER_READ, ENTRIES_PER_REVISION_MAX]) {
    const entries = (await store.entries([range], entriesMax)).filter(({ revision }) => revision > range.from)
    if (entries.length > 0) return entries
  }
  return []
}

function lost(log: JournalId, why: string): PdpError {
  const message = `what was true then is not known: ${why} (${log})`
  return new PdpError('request_invalid', message, { issues: [{ place: '/asOfMs', message }] })
}
