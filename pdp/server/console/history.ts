/** Finds the change that a step of an answer rests on, in the logs of changes, the latest first. */

import type { LogEntry } from '../../engine/store/contract.ts'
import type { Change } from '../../shared/domain/change.ts'
import { ENVIRONMENT, type LogId } from '../../shared/domain/change-log.ts'
import type { ReasonStep } from '../../shared/domain/decision.ts'
import { formatTuple } from '../../shared/domain/names.ts'
import { readBackwards } from './log-backwards.ts'
import type { Visit } from './visit.ts'

/** After so many entries the search ends, and the page says which revisions were not searched. */
const ENTRIES_SEARCHED_MAX = 2_000

/** By the text of a step. `unsearched`: steps without an entry, and the revision before which no change was searched. */
export type FoundChanges = {
  readonly entries: ReadonlyMap<string, LogEntry>
  readonly unsearched: ReadonlyMap<string, number>
}

/** The latest change of each step until `untilMs`. Nothing of a log that the person may not read. */
export async function changesOf(visit: Visit, path: readonly ReasonStep[], untilMs: number): Promise<FoundChanges> {
  const entries = new Map<string, LogEntry>()
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

/** For each log, the names of changes with the texts of their steps. */
type Sought = ReadonlyMap<string, string>

async function soughtIn(
  { organization, deps }: Visit,
  path: readonly ReasonStep[],
): Promise<ReadonlyMap<LogId, Sought>> {
  const logs = new Map<LogId, Map<string, string>>()
  const seek = (log: LogId, change: string, text: string): void => {
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
  { deps }: Visit,
  of: { readonly log: LogId; readonly wanted: Sought; readonly untilMs: number },
): Promise<{ readonly found: ReadonlyMap<string, LogEntry>; readonly since: number | null }> {
  const { log, untilMs } = of
  const { store } = deps.management
  const found = new Map<string, LogEntry>()
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
