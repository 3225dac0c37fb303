/** Remembers used DPoP proofs until they expire (RFC 9449 section 11.1). */
import { hash } from 'node:crypto'

/** Identifies a proof: the thumbprint of its key, and its `jti`. */
export type UsedProof = { readonly jkt: string; readonly jti: string }

export interface ReplayMemory {
  /** True if this process knows that the proof was used; false: unknown. Asks no other system. */
  seen(proof: UsedProof): boolean
  /**
   * True when the proof was not used before; it is then remembered until `untilMs`. Of concurrent calls exactly one
   * gets true. Throws when the answer is unknown or the memory is full: forgetting a proof early would allow a replay.
   * One key cannot fill the whole memory.
   */
  remember(proof: UsedProof, untilMs: number): boolean | Promise<boolean>
}

const SLICE_MS = 10_000

/** A name for the proof of fixed length, whatever `jti` the client chose. */
export const digestOf = ({ jti }: UsedProof): string => hash('sha256', jti, 'base64url')

/**
 * Stores proofs in this process. `entriesMax` must hold all proofs of one acceptance window; 100 bytes each. A key may hold
 * as many proofs as there are free entries: one key gets at most half of the memory, two keys a third each.
 */
export function processReplayMemory(options: {
  readonly clock: () => number
  readonly entriesMax: number
}): ReplayMemory {
  const { clock, entriesMax } = options
  // Proofs by the time slice of their expiry, so that a whole slice is dropped at once; in a slice, by key.
  const slices = new Map<number, Map<string, Set<string>>>()
  const heldByKey = new Map<string, number>()
  let count = 0

  const held = (jkt: string): number => heldByKey.get(jkt) ?? 0

  function forgetEnded(): void {
    const current = Math.floor(clock() / SLICE_MS)
    for (const [slice, keys] of slices) {
      if (slice >= current) continue
      slices.delete(slice)
      for (const [jkt, digests] of keys) {
        count -= digests.size
        const left = held(jkt) - digests.size
        if (left > 0) heldByKey.set(jkt, left)
        else heldByKey.delete(jkt)
      }
    }
  }

  function has(jkt: string, digest: string): boolean {
    for (const keys of slices.values()) if (keys.get(jkt)?.has(digest)) return true
    return false
  }

  return {
    seen: (proof) => has(proof.jkt, digestOf(proof)),
    remember(proof, untilMs) {
      forgetEnded()
      const { jkt } = proof
      const digest = digestOf(proof)
      if (has(jkt, digest)) return false
      if (held(jkt) >= entriesMax - count) throw new Error('the replay memory has no room for more proofs of this key')
      const slice = Math.floor(untilMs / SLICE_MS)
      const keys = slices.get(slice) ?? new Map<string, Set<string>>()
      slices.set(slice, keys)
      keys.set(jkt, (keys.get(jkt) ?? new Set()).add(digest))
      heldByKey.set(jkt, held(jkt) + 1)
      count += 1
      return true
    },
  }
}
