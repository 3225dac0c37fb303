/** Remembers which DPoP proofs were used for as long as they would be accepted again (RFC 9449 section 11.1). */

export interface ReplayMemory {
  /**
   * True when the key was not seen before; it is then remembered until `untilMs`. Throws when that cannot be said,
   * also for want of room: forgetting a proof early would let it be used twice.
   */
  remember(key: string, untilMs: number): boolean | Promise<boolean>
}

const SLICE_MS = 10_000

/** In this process only. `entriesMax` must hold all proofs of one acceptance window; 100 bytes each. */
export function processReplayMemory(options: {
  readonly clock: () => number
  readonly entriesMax: number
}): ReplayMemory {
  const { clock, entriesMax } = options
  // By the slice of time in which entries end, so that a whole slice is forgotten at once.
  const slices = new Map<number, Set<string>>()
  let count = 0

  function forgetEnded(): void {
    const current = Math.floor(clock() / SLICE_MS)
    for (const [slice, keys] of slices) {
      if (slice >= current) continue
      slices.delete(slice)
      count -= keys.size
    }
  }

  return {
    remember(key, untilMs) {
      forgetEnded()
      for (const keys of slices.values()) if (keys.has(key)) return false
      if (count >= entriesMax) throw new Error(`the replay memory holds ${entriesMax} proofs and no more`)
      const slice = Math.floor(untilMs / SLICE_MS)
      const keys = slices.get(slice) ?? new Set()
      slices.set(slice, keys.add(key))
      count += 1
      return true
    },
  }
}
