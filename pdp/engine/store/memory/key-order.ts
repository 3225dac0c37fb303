/** A sorted set of keys that counts how often each was added. Reading a page costs the size of the page, not of the set. */
import { compareNames } from '../../../shared/domain/names.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'

/** The most keys of one block; a block with more is split in two. */
const BLOCK_MAX = 512

export class KeyOrder {
  readonly #counts = new Map<string, number>()
  /** The keys in ascending order, cut into blocks. No block is empty, unless it is the only one. */
  readonly #blocks: string[][] = []

  constructor(keys: Iterable<string>) {
    for (const key of keys) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    const sorted = [...this.#counts.keys()].sort(compareNames)
    for (let i = 0; i < sorted.length; i += BLOCK_MAX / 2) this.#blocks.push(sorted.slice(i, i + BLOCK_MAX / 2))
    if (this.#blocks.length === 0) this.#blocks.push([])
  }

  add(key: string): void {
    const count = this.#counts.get(key) ?? 0
    this.#counts.set(key, count + 1)
    if (count > 0) return
    const at = this.#blockOf(key)
    const block = this.#blocks[at] ?? []
    block.splice(lowerBound(block, key), 0, key)
    if (block.length > BLOCK_MAX) this.#blocks.splice(at + 1, 0, block.splice(BLOCK_MAX / 2))
  }

  delete(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    if (count !== 1) return
    this.#counts.delete(key)
    const at = this.#blockOf(key)
    const block = this.#blocks[at] ?? []
    block.splice(lowerBound(block, key), 1)
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(at, 1)
  }

  *from(start: string): Iterable<string> {
    const first = this.#blockOf(start)
    for (let at = first; at < this.#blocks.length; at++) {
      const block = this.#blocks[at] ?? []
      for (let i = at === first ? lowerBound(block, start) : 0; i < block.length; i++) yield block[i] ?? ''
    }
  }

  /** The index of the block for the key: the last whose first key is not greater, else 0. */
  #blockOf(key: string): number {
    let [low, high] = [0, this.#blocks.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (compareNames(this.#blocks[middle]?.[0] ?? '', key) <= 0) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The index of the first key that is not less than `key`, where `key` would be inserted. */
export function lowerBound(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareNames(keys[middle] ?? '', key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

export function* namesOf(tuples: Iterable<Tuple>, of: 'object' | 'subject'): Iterable<string> {
  for (const tuple of tuples) yield tuple[of]
}
