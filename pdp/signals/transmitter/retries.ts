/** The waits before a failed receiver is called again, and the time when it is given up. */

const STEPS_MS = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]
const JITTER = 0.25
/** How long calls may fail. Then a stream is paused, with its events stored for a week; a logout token is dropped. */
export const FAILING_MS_MAX = 86_400_000

/** `attempts`: how many attempts have failed, at least 1. `random`: 0 to 1. */
export function backoffMs(attempts: number, random: number): number {
  const step = STEPS_MS[Math.min(attempts, STEPS_MS.length) - 1] ?? 0
  return Math.round(step * (1 - JITTER + 2 * JITTER * random))
}
