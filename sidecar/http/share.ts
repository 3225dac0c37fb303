/** How much of a limit that all clients share one client may take. */

/**
 * True if a client that has `own` of `max` places, of which `used` are taken, may take another. The fewer places are free, the fewer one
 * client may have: alone at most half of all. So a client without a place finds a free one, unless very many clients have taken their
 * share.
 */
export function mayTake(own: number, { used, max }: { readonly used: number; readonly max: number }): boolean {
  const free = max - used
  return free > 0 && (own === 0 || own * max < 2 * free * free)
}
