/** Finds the latest change that a step of an answer depends on, in the journals. */

import type { JournalEntry } from '../../engine/store/contract.ts'
import type { Change } from '../../shared/domain/change.ts'
import type { ReasonStep } from '../../shared/domain/decision.ts'
import { ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { formatTuple } from '../../shared/domain/names.ts'
import { readBackwards } from './journal-backwards.ts'
import type { ConsoleVisit } from './visit.ts'

/** The search ends after this many entries, and the page says which revisions were not searched. */
const ENTRIES_SEARCHED_MAX = 2_000

/** Changes by the text of a step. `unsearched`: steps without a change, and the revision before which no change was searched. */
export type FoundChanges = {
  readonly entries: ReadonlyMap<string, JournalEntry>
  readonly unsearched: ReadonlyMap<string, number>
}

/** The latest change of each step before `untilMs`. Logs that the person may not read are left out. */
export async function changesOf(
  visit: ConsoleVisit,
  path: readonly ReasonStep[],
  untilMs: number,
): Promise<FoundChanges> {
  const entries = new Map<string, JournalEntry>()
  const unsearched = new Map<string, number>()
  for (const [log, wanted] of await soughtIn(visit, path)) {
    const may = log === ENVIRONMENT ? visit.mayEverywhere('audit:read') : await visit.mayWithin('audit:read', log)
    if (!may) continue
    const { found, since } = await search(visit, { log, wanted, untilMs })
    for (const [change, text] of wanted) {
      const entry = found.get(change)
      if (entry !== undefined) entries.set(text, entry)
      else if (since !== null) unsearched.set(text, since)
    }
  }
  return { entries, unsearched }
}

/** The changes to find in one log: their names, and the text of the step for each. */
type Sought = ReadonlyMap<string, string>

async function soughtIn(
  { organization, deps }: ConsoleVisit,
  path: readonly ReasonStep[],
): Promise<ReadonlyMap<JournalId, Sought>> {
  const logs = new Map<JournalId, Map<string, string>>()
  const seek = (log: JournalId, change: string, text: string): void => {
    const sought = logs.get(log) ?? new Map<string, string>()
    logs.set(log, sought.set(change, text))
  }
  for (const step of path) {
    if ('tuple' in step && organization !== null) seek(organization, `tuple ${step.tuple}`, step.tuple)
    if ('member' in step && organization !== null)
      seek(organization, `member ${step.member.slice(step.member.lastIndexOf('@') + 1)}`, step.member)
    if (!('role_grant' in step)) continue
    const { role_grant: id } = step
    const [grant] = await deps.management.store.roleGrants({ id }, { after: null, countMax: 1 })
    if (grant !== undefined) seek(grant.log, `grant ${id}`, id)
  }
  return logs
}

function nameOf(change: Change): string | null {
  if (change.kind === 'tuple') return `tuple ${formatTuple(change.tuple)}`
  if (change.kind === 'membership') return `member user:${change.user}`
  return change.kind === 'role_grant' ? `grant ${change.grant.id}` : null
}

/** `since`: changes before this revision were not searched; null: the whole log was. */
async function search(
  { deps }: ConsoleVisit,
  of: { readonly log: JournalId; readonly wanted: Sought; readonly untilMs: number },
): Promise<{ readonly found: ReadonlyMap<string, JournalEntry>; readonly since: number | null }> {
  const { log, untilMs } = of
  const { store } = deps.management
  const found = new Map<string, JournalEntry>()
  const left = new Set(of.wanted.keys())
  const to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  let [since, searched] = [to + 1, 0]
  for await (const { entries, first } of readBackwards(store, { log, to })) {
    for (const entry of entries) {
      const name = entry.atMs > untilMs ? null : nameOf(entry.change)
      if (name !== null && left.delete(name)) found.set(name, entry)
    }
    since = first
    searched += entries.length
    if (left.size === 0 || searched >= ENTRIES_SEARCHED_MAX) break
  }
  return { found, since: since === 1 ? null : since }
}
