/** How much of what all clients share one of them may have. */

/**
 * May a client that has `own` of `max` places, of which `used` are taken, take another? The fewer are free, the fewer a client
 * may have: alone at most half, and of clients that take all they can each a smaller part. There are always free places for
 * those that have none, until very many clients have taken their part.
 */
export function mayTake(own: number, { used, max }: { readonly used: number; readonly max: number }): boolean {
  const free = max - used
  return free > 0 && (own === 0 || own * max < 2 * free * free)
}
