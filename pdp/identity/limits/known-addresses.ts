/** Addresses from which a person or a client has proven itself lately. They have limits of their own, so that a flood from others does not lock them out. */

const KNOWN_MS = 86_400_000
const KNOWN_MAX = 10_000

export type KnownAddresses = {
  has(address: string): boolean
  /** Somebody signed in from there, or a client proved its secret. */
  add(address: string): void
}

/** Per process. When there are too many, the one that was added first is forgotten. */
export function createKnownAddresses({ clock }: { readonly clock: () => number }): KnownAddresses {
  const untilMs = new Map<string, number>()
  return {
    has: (address) => (untilMs.get(address) ?? 0) > clock(),
    add(address) {
      untilMs.delete(address)
      const [oldest] = untilMs.keys()
      if (untilMs.size >= KNOWN_MAX && oldest !== undefined) untilMs.delete(oldest)
      untilMs.set(address, clock() + KNOWN_MS)
    },
  }
}
