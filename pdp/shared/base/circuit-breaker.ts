/** A circuit breaker: after several failures in a row callers fail at once instead of waiting. */

export type Circuit = {
  /** Null: the circuit is open, so do not call now. Else a function to be called once, with whether there was any answer. */
  begin(): ((answered: boolean) => void) | null
}

/**
 * After `failuresMax` failures in a row it rests `restMs`, then lets one attempt through, and rests twice as long after each
 * that fails, at most `restMsMax`. `clock`: monotonic milliseconds.
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
