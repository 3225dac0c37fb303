/** Which change made a step of an answer what it is: looked for in the logs of changes, the latest first. */
import type { Change } from '../domain/change.ts'
import type { ReasonStep } from '../domain/decision.ts'
import { ENVIRONMENT, type LogId } from '../domain/log.ts'
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

/** `since`: older changes were not searched; null: the whole log was. */
async function search(
  { deps }: Visit,
  of: { readonly log: LogId; readonly wanted: Sought; readonly untilMs: number },
): Promise<{ readonly found: ReadonlyMap<string, LogEntry>; readonly since: number | null }> {
  const { log, untilMs } = of
  const { store } = deps.management
  const found = new Map<string, LogEntry>()
  const left = new Set(of.wanted.keys())
  let to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  let [revisions, searched] = [REVISIONS_FIRST, 0]
  for (let read = 0; read < READS_MAX && to > 0 && left.size > 0 && searched < ENTRIES_SEARCHED_MAX; read++) {
    const from = Math.max(0, to - revisions)
    const entries = await store.entries([{ log, from, to }], ENTRIES_PER_READ_MAX)
    const range = entries.filter(({ revision }) => revision > from)
    searched += range.length
    if (range.length < REVISIONS_MAX) revisions = Math.min(REVISIONS_MAX, 2 * revisions)
    for (const entry of range.toReversed()) {
      const name = entry.atMs > untilMs ? null : nameOf(entry.change)
      if (name !== null && left.delete(name)) found.set(name, entry)
    }
    to = from
  }
  return { found, since: to === 0 ? null : to }
}
