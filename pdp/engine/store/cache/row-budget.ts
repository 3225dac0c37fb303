/** Keeps the row sets in memory below a budget of bytes, evicting rows that were not read recently (SIEVE order). */

/** An entry that can be evicted. The budget sets `newer`, `older` and `bytes`; each read sets `hot`. */
export interface Evictable {
  bytes: number
  hot: boolean
  newer: Evictable | null
  older: Evictable | null
  /** Removes the entry from its holder. */
  evict(): void
}

export class RowBudget {
  bytes = 0
  count = 0
  evictedCount = 0
  readonly #bytesMax: number
  #newest: Evictable | null = null
  #oldest: Evictable | null = null
  #hand: Evictable | null = null

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(row: Evictable, bytes: number): void {
    row.bytes = bytes
    row.older = this.#newest
    row.newer = null
    if (this.#newest !== null) this.#newest.newer = row
    this.#newest = row
    this.#oldest ??= row
    this.bytes += bytes
    this.count++
    this.#shrink(row)
  }

  /** Notes the new size of an entry that changed. */
  resize(row: Evictable, bytes: number): void {
    this.bytes += bytes - row.bytes
    row.bytes = bytes
    this.#shrink(row)
  }

  remove(row: Evictable): void {
    if (this.#hand === row) this.#hand = row.newer
    if (row.newer === null) this.#newest = row.older
    else row.newer.older = row.older
    if (row.older === null) this.#oldest = row.newer
    else row.older.newer = row.newer
    row.newer = null
    row.older = null
    this.bytes -= row.bytes
    this.count--
  }

  /** Evicts entries, but never `spared`, which is in use: otherwise an evaluation might never end. */
  #shrink(spared: Evictable): void {
    while (this.bytes > this.#bytesMax && this.count > 1) {
      let victim = this.#hand ?? this.#oldest
      while (victim !== null && (victim.hot || victim === spared)) {
        victim.hot = false
        victim = victim.newer ?? this.#oldest
      }
      if (victim === null) return
      this.#hand = victim.newer
      this.remove(victim)
      this.evictedCount++
      victim.evict()
    }
  }
}
