/** Addresses from which a person or a client has proven itself lately. They have limits of their own, so that a flood from others does not lock them out. */

import { BoundedMap } from '../../shared/base/bounded-map.ts'

const KNOWN_MS = 86_400_000
const KNOWN_MAX = 10_000

export type KnownAddresses = {
  has(address: string): boolean
  /** Somebody signed in from there, or a client proved its secret. */
  add(address: string): void
}

/** Per process. When there are too many, the one that was added first is forgotten. */
export function createKnownAddresses({ clock }: { readonly clock: () => number }): KnownAddresses {
  const untilMs = new BoundedMap<string, number>(KNOWN_MAX)
  return {
    has: (address) => (untilMs.get(address) ?? 0) > clock(),
    add: (address) => untilMs.set(address, clock() + KNOWN_MS),
  }
}
