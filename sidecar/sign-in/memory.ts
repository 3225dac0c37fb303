/** The values about sessions on which replicas must agree. They expire by themselves. Stored in this process or in Redis. */

export type SignInMemory = {
  /** True when all replicas see the same values. */
  readonly isShared: boolean
  /** The values in the order of the keys; null: absent. Rejects when this cannot be known. */
  get(keys: readonly string[]): Promise<readonly (string | null)[]>
  put(key: string, value: string, ttlMs: number): Promise<void>
  /** True when the key was absent, and is now present. */
  claim(key: string, ttlMs: number): Promise<boolean>
  remove(key: string): Promise<void>
  close(): void
}

const ENTRIES_MAX = 200_000

/** Rejects when the memory is full: an entry must not be dropped, or an ended session would be valid again. */
export function processMemory(options: {
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly entriesMax?: number
}): SignInMemory {
  const { clock, entriesMax = ENTRIES_MAX } = options
  const entries = new Map<string, { readonly value: string; readonly untilMs: number }>()

  const find = (key: string): string | null => {
    const entry = entries.get(key)
    return entry === undefined || entry.untilMs <= clock() ? null : entry.value
  }
  function put(key: string, value: string, ttlMs: number): void {
    if (entries.size >= entriesMax)
      for (const known of [...entries.keys()]) if (find(known) === null) entries.delete(known)
    if (entries.size >= entriesMax && !entries.has(key)) throw new Error('the memory of ended sessions is full')
    entries.set(key, { value, untilMs: clock() + ttlMs })
  }

  return {
    isShared: false,
    get: async (keys) => keys.map(find),
    put: async (key, value, ttlMs) => put(key, value, ttlMs),
    async claim(key, ttlMs) {
      if (find(key) !== null) return false
      put(key, '', ttlMs)
      return true
    },
    async remove(key) {
      entries.delete(key)
    },
    close: () => entries.clear(),
  }
}
