/** A circuit breaker: after several failures in a row, callers fail immediately instead of waiting. */

export type Circuit = {
  /** Begins a call; null: the circuit is open, and the caller must not call. The caller reports once whether an answer came. */
  begin(): ((answered: boolean) => void) | null
}

/**
 * Lets no calls through for `restMs` after `failuresMax` failures in a row, then one attempt. Each further failure doubles the rest, up to
 * `restMsMax`. `clock`: monotonic milliseconds.
 */
export function createCircuit(options: {
  readonly failuresMax: number
  readonly restMs: number
  readonly restMsMax: number
  readonly clock: () => number
}): Circuit {
  const { failuresMax, restMs, restMsMax, clock } = options
  let failures = 0
  let restUntilMs = Number.NEGATIVE_INFINITY
  let trying = false

  const rests = (): boolean => failures >= failuresMax
  function note(answered: boolean, attempt: { readonly atRest: boolean }): void {
    if (attempt.atRest) trying = false
    if (answered) failures = 0
    // A failure of an attempt that began before the pause does not count again.
    else if (!rests() || attempt.atRest) {
      failures += 1
      if (rests()) restUntilMs = clock() + Math.min(restMsMax, restMs * 2 ** (failures - failuresMax))
    }
  }

  return {
    begin() {
      const atRest = rests()
      if (atRest && (trying || clock() < restUntilMs)) return null
      trying = atRest
      return (answered) => note(answered, { atRest })
    },
  }
}
