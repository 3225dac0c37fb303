/** Keys of a log in memory, distinct and in order, page by page. */
import type { LogId } from '../../../shared/domain/change-log.ts'
import { compareNames } from '../../../shared/domain/names.ts'
import type { NameSource } from '../../../shared/domain/tuple.ts'
import { type MemoryLog, type MemoryState, START } from './change-log.ts'
import { lowerBound } from './key-order.ts'

type Page = { readonly after: string | null; readonly countMax: number }
/** Tuples keep the order of their names themselves, since they are more than all the rest. */
type Kind = 'members' | 'grantees' | 'organizations'
type Sorted = { readonly revision: number; readonly keys: { [K in Kind]?: readonly string[] } }

export class MemoryNames {
  readonly #state: MemoryState
  /** Sorted once for each revision that pages are asked of. */
  readonly #sorted = new WeakMap<MemoryLog, Sorted>()

  constructor(state: MemoryState) {
    this.#state = state
  }

  /** As Snapshot.names. */
  names(log: LogId, source: NameSource, { after, countMax }: Page): readonly string[] {
    if (source.kind === 'members') {
      const page = { after: after?.slice('user:'.length) ?? null, countMax }
      return this.keys(log, 'members', page).map((user) => `user:${user}`)
    }
    const prefix = `${source.type}:`
    const page = { after: after ?? prefix, countMax }
    const names = source.kind === 'grantees' ? this.keys(log, 'grantees', page) : this.#ofTuples(log, source.kind, page)
    return names.filter((name) => name.startsWith(prefix))
  }

  #ofTuples(log: LogId, kind: 'objects' | 'subjects', { after, countMax }: Page): readonly string[] {
    const names: string[] = []
    for (const name of this.#state.logs.get(log)?.tuples.names(kind, after ?? '') ?? []) {
      if (names.length === countMax) break
      if (name !== after) names.push(name)
    }
    return names
  }

  /** Users, subjects of role grants, or organizations, greater than `after`. */
  keys(log: LogId, kind: Kind, { after, countMax }: Page): readonly string[] {
    const keys = this.#all(log, kind)
    const at = after === null ? 0 : lowerBound(keys, after)
    const from = keys[at] === after ? at + 1 : at
    return keys.slice(from, from + countMax)
  }

  #all(log: LogId, kind: Kind): readonly string[] {
    const content = this.#state.logs.get(log)
    if (content === undefined) return []
    const { revision } = this.#state.positions.get(log) ?? START
    const last = this.#sorted.get(content)
    const { keys } = last?.revision === revision ? last : { keys: {} as Sorted['keys'] }
    this.#sorted.set(content, { revision, keys })
    keys[kind] ??= sorted(content, kind)
    return keys[kind]
  }
}

function sorted({ memberships, grants, organizations }: MemoryLog, kind: Kind): readonly string[] {
  switch (kind) {
    case 'members':
      return [...memberships.keys()].sort(compareNames)
    case 'grantees':
      return [...grants.subjects()].sort(compareNames)
    case 'organizations':
      return [...organizations.keys()].sort(compareNames)
  }
}
