/** Detects that the database has stopped answering, so that callers fail at once until it answers again. */

export type Silence = {
  /** Null: the database is silent and must not be asked now. Else a function to be called once, with whether there was any answer. */
  begin(options: { readonly prompt: boolean }): ((answered: boolean) => void) | null
}

/**
 * The database counts as silent once a statement that should be answered at once (`prompt`) got no answer for `silentMs`, until any
 * statement is answered. Meanwhile one attempt is let through every `retryMs`. `clock`: monotonic milliseconds.
 */
export function createSilence(options: {
  readonly silentMs: number
  readonly retryMs: number
  readonly clock: () => number
}): Silence {
  const { silentMs, retryMs, clock } = options
  /** When the prompt statements under way began, the oldest first. */
  const prompt = new Map<object, number>()
  let answeredMs = Number.NEGATIVE_INFINITY
  let silent = false
  let triedMs = Number.NEGATIVE_INFINITY

  function isSilent(nowMs: number): boolean {
    const [oldestMs] = prompt.values()
    if (oldestMs !== undefined && nowMs - Math.max(oldestMs, answeredMs) > silentMs) silent = true
    return silent
  }

  return {
    begin({ prompt: isPrompt }) {
      const beganMs = clock()
      if (isSilent(beganMs)) {
        if (beganMs - triedMs < retryMs) return null
        triedMs = beganMs
      }
      const attempt = {}
      if (isPrompt) prompt.set(attempt, beganMs)
      return (answered) => {
        prompt.delete(attempt)
        if (answered) {
          answeredMs = clock()
          silent = false
        } else if (isPrompt && answeredMs <= beganMs) silent = true
      }
    },
  }
}
