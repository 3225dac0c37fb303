/** The names in a journal in memory, without repetition, in ascending order and in pages. */
import type { JournalId } from '../../../shared/domain/journal.ts'
import { compareNames } from '../../../shared/domain/names.ts'
import type { NameSource } from '../../../shared/domain/tuple.ts'
import { type MemoryJournal, type MemoryState, START } from './journal.ts'
import { lowerBound } from './key-order.ts'

type Page = { readonly after: string | null; readonly countMax: number }
/** The names sorted here. TupleIndex itself keeps tuples' names in order, since they are many. */
type Kind = 'members' | 'grantees' | 'organizations'
type Sorted = { readonly revision: number; readonly keys: { [K in Kind]?: readonly string[] } }

export class MemoryNames {
  readonly #state: MemoryState
  /** Sorted names of each journal, sorted again when a page is read at another revision. */
  readonly #sorted = new WeakMap<MemoryJournal, Sorted>()

  constructor(state: MemoryState) {
    this.#state = state
  }

  /** Does the work of `Snapshot.names`. */
  names(log: JournalId, source: NameSource, { after, countMax }: Page): readonly string[] {
    if (source.kind === 'members') {
      const page = { after: after?.slice('user:'.length) ?? null, countMax }
      return this.keys(log, 'members', page).map((user) => `user:${user}`)
    }
    const prefix = `${source.type}:`
    const page = { after: after ?? prefix, countMax }
    const names = source.kind === 'grantees' ? this.keys(log, 'grantees', page) : this.#ofTuples(log, source.kind, page)
    return names.filter((name) => name.startsWith(prefix))
  }

  #ofTuples(log: JournalId, kind: 'objects' | 'subjects', { after, countMax }: Page): readonly string[] {
    const names: string[] = []
    for (const name of this.#state.logs.get(log)?.tuples.names(kind, after ?? '') ?? []) {
      if (names.length === countMax) break
      if (name !== after) names.push(name)
    }
    return names
  }

  /** Users, subjects of role grants, or organizations, greater than `after`. */
  keys(log: JournalId, kind: Kind, { after, countMax }: Page): readonly string[] {
    const keys = this.#all(log, kind)
    const at = after === null ? 0 : lowerBound(keys, after)
    const from = keys[at] === after ? at + 1 : at
    return keys.slice(from, from + countMax)
  }

  #all(log: JournalId, kind: Kind): readonly string[] {
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

function sorted({ memberships, grants, organizations }: MemoryJournal, kind: Kind): readonly string[] {
  const names = { members: memberships.keys(), grantees: grants.subjects(), organizations: organizations.keys() }
  return [...names[kind]].sort(compareNames)
}
