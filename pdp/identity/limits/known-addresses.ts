/** Addresses where a person or a client authenticated lately. They have limits of their own: a flood from others does not lock them out. */

import { BoundedMap } from '../../shared/base/bounded-map.ts'

const KNOWN_MS = 86_400_000
const KNOWN_MAX = 10_000

export type KnownAddresses = {
  has(address: string): boolean
  /** Call it when a person has signed in from the address, or a client has proven its secret. */
  add(address: string): void
}

/** Kept per process. When there are too many, the oldest entry is forgotten. */
export function createKnownAddresses({ clock }: { readonly clock: () => number }): KnownAddresses {
  const untilMs = new BoundedMap<string, number>(KNOWN_MAX)
  return {
    has: (address) => (untilMs.get(address) ?? 0) > clock(),
    add: (address) => untilMs.set(address, clock() + KNOWN_MS),
  }
}
