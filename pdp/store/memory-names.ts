/** Distinct names in key order out of a log in memory. */
import type { NameSource } from './contracts.ts'
import type { MemoryLog } from './memory-log.ts'

/** Of tuples, as many names are looked at as the page holds; of memberships and grants, which are fewer, all. */
export function namesIn(
  log: MemoryLog | undefined,
  source: NameSource,
  page: { readonly after: string | null; readonly countMax: number },
): readonly string[] {
  if (log === undefined) return []
  const prefix = source.kind === 'members' ? 'user:' : `${source.type}:`
  const start = page.after === null || page.after < prefix ? prefix : page.after
  const names: string[] = []
  for (const name of namesFrom(log, source, start)) {
    if (!name.startsWith(prefix) || names.length === page.countMax) break
    if (name !== page.after) names.push(name)
  }
  return names
}

/** In key order, from `start` (inclusive) on. */
function namesFrom(log: MemoryLog, { kind }: NameSource, start: string): Iterable<string> {
  switch (kind) {
    case 'objects':
    case 'subjects':
      return log.tuples.names(kind, start)
    case 'members':
      return sorted(
        [...log.memberships.keys()].map((user) => `user:${user}`),
        start,
      )
    case 'grantees':
      return sorted(
        [...log.grants.values()].map((grant) => grant.subject),
        start,
      )
  }
}

const sorted = (names: readonly string[], start: string): readonly string[] =>
  [...new Set(names.filter((name) => name >= start))].sort()
