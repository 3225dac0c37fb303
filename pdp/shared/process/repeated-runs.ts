/** Repeats work at an interval. A run is left out while the one before has not ended. */

/** `isStopped`: for a run with many steps. The returned function stops it, and resolves when the current run has ended. */
export function startRepeated(
  run: (isStopped: () => boolean) => Promise<void>,
  options: {
    readonly intervalMs: number
    /** A run that rejects ends; the next one tries again. */
    readonly failed: (err: unknown) => void
    /** True: the process has no other work, so the first run begins now, and the process lives until the runs are stopped. */
    readonly isAlone?: true
  },
): () => Promise<void> {
  const { intervalMs, failed, isAlone } = options
  let running: Promise<void> | null = null
  let stopped = false
  const begin = async (): Promise<void> => {
    await run(() => stopped).catch(failed)
    running = null
  }
  const timer = setInterval(() => {
    running ??= begin()
  }, intervalMs)
  if (isAlone === true) running = begin()
  else timer.unref()
  return async () => {
    stopped = true
    clearInterval(timer)
    await running
  }
}
