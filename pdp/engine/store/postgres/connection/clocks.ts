/** Finds clocks that jumped between two renewals of a lease, and machines that were suspended. */
import { atLeast, atMost } from '../../leases/terms.ts'

/** `apartMs`: the wall clock less the monotonic one, when the statement was sent. */
export type Renewed = {
  readonly clockMs: number
  readonly timeline: number
  readonly sentMs: number
  readonly gotMs: number
  readonly apartMs: number
}
/** How far two clocks may move apart: less than a write waits beyond the term. */
export const JUMP_MS = 100

/** Whether no clock has jumped between two renewals. Another server has another clock. */
export function agree(last: Renewed, next: Renewed): boolean {
  if (Math.abs(next.apartMs - last.apartMs) > JUMP_MS) return false
  if (next.timeline !== last.timeline) return true
  const leastMs = last.clockMs + atLeast(next.sentMs - last.gotMs)
  const mostMs = last.clockMs + atMost(next.gotMs - last.sentMs)
  return next.clockMs >= leastMs - JUMP_MS && next.clockMs <= mostMs + JUMP_MS
}
