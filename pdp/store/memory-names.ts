/** Distinct names in key order out of a log in memory. */
import type { NameSource } from './contracts.ts'
import type { MemoryLog } from './memory-log.ts'

/** Looks at the whole log: lists are asked seldom enough in a store of this kind. */
export function namesIn(
  log: MemoryLog | undefined,
  source: NameSource,
  page: { readonly after: string | null; readonly countMax: number },
): readonly string[] {
  const names = new Set<string>()
  const prefix = source.kind === 'members' ? 'user:' : `${source.type}:`
  for (const name of log === undefined ? [] : namesOf(log, source)) {
    if (name.startsWith(prefix) && (page.after === null || name > page.after)) names.add(name)
  }
  return [...names].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).slice(0, page.countMax)
}

function* namesOf(log: MemoryLog, { kind }: NameSource): Iterable<string> {
  if (kind === 'members') for (const user of log.memberships.keys()) yield `user:${user}`
  if (kind === 'grantees') for (const grant of log.grants.values()) yield grant.subject
  if (kind === 'objects') for (const tuple of log.tuples.all()) yield tuple.object
  if (kind === 'subjects') for (const tuple of log.tuples.all()) yield tuple.subject
}
