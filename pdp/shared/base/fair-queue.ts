/**
 * A queue of items by group, and by name within each group. The groups take turns, and so do the names of a group: who has just had a turn
 * waits behind all others. Items of one name keep their order. The caller must bound the number of items.
 */
export class FairQueue<Item> {
  /** Groups and names, each in the order of their next turns. Empty ones are removed. */
  readonly #groups = new Map<string, Map<string, Set<Item>>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  has(group: string): boolean {
    return this.#groups.has(group)
  }

  hasLine({ group, name }: Line): boolean {
    return this.#groups.get(group)?.has(name) === true
  }

  add(item: Item, { group, name }: Line): void {
    const lines = this.#groups.get(group) ?? new Map<string, Set<Item>>()
    const line = lines.get(name) ?? new Set()
    this.#groups.set(group, lines.set(name, line.add(item)))
    this.#size += 1
  }

  /** Removes the item; false when it does not wait. */
  remove(item: Item, { group, name }: Line): boolean {
    const lines = this.#groups.get(group)
    const line = lines?.get(name)
    if (lines === undefined || line === undefined || !line.delete(item)) return false
    this.#size -= 1
    if (line.size === 0) lines.delete(name)
    if (lines.size === 0) this.#groups.delete(group)
    return true
  }

  /** Removes and returns the next item of a group that `mayStart`; undefined: there is none. */
  next(mayStart: (group: string) => boolean = () => true): Item | undefined {
    for (const [group, lines] of this.#groups) {
      if (!mayStart(group)) continue
      for (const [name, line] of lines)
        for (const item of line) {
          this.remove(item, { group, name })
          if (lines.delete(name)) lines.set(name, line)
          if (this.#groups.delete(group)) this.#groups.set(group, lines)
          return item
        }
    }
    return undefined
  }

  /** The oldest item of this name; if it has none, the oldest of the name that is next in its group. */
  oldest({ group, name }: Line): Item | undefined {
    const lines = this.#groups.get(group)
    const [next = []] = lines?.values() ?? []
    const [item] = lines?.get(name) ?? next
    return item
  }

  /** The oldest or newest item of the longest line in the largest group. Of equal ones, `preferred` is taken, else the first or last. */
  longest(end: 'oldest' | 'newest', preferred: Line | null): { readonly item: Item; readonly line: Line } | undefined {
    const [group, lines] = largest(this.#groups, { end, preferred: preferred?.group, sizeOf: countOf }) ?? []
    const [name, items] = largest(lines ?? [], { end, preferred: preferred?.name, sizeOf: ({ size }) => size }) ?? []
    const item = [...(items ?? [])].at(end === 'oldest' ? 0 : -1)
    return item === undefined || group === undefined || name === undefined ? undefined : { item, line: { group, name } }
  }
}

export type Line = { readonly group: string; readonly name: string }

const countOf = (lines: ReadonlyMap<string, ReadonlySet<unknown>>): number =>
  lines.values().reduce((count, { size }) => count + size, 0)

function largest<T>(
  all: Iterable<readonly [string, T]>,
  by: {
    readonly end: 'oldest' | 'newest'
    readonly preferred: string | undefined
    readonly sizeOf: (one: T) => number
  },
): readonly [string, T] | undefined {
  let most: readonly [string, T] | undefined
  let size = 0
  for (const entry of all) {
    const own = by.sizeOf(entry[1])
    const isBefore = own === size && most?.[0] !== by.preferred && (entry[0] === by.preferred || by.end === 'newest')
    if (own <= size && !isBefore) continue
    most = entry
    size = own
  }
  return most
}
