/** Work that is done again at an interval: a run begins unless the one before it has not ended. */

type Repeated = {
  readonly intervalMs: number
  /** A run that rejects ends; the next one tries again. */
  readonly failed: (err: unknown) => void
}

/** `isStopped`: for a run with many steps. The returned function stops it, and resolves when the current run has ended. */
export function startRepeated(
  run: (isStopped: () => boolean) => Promise<void>,
  { intervalMs, failed }: Repeated,
): () => Promise<void> {
  let running: Promise<void> | null = null
  let stopped = false
  const begin = async (): Promise<void> => {
    await run(() => stopped).catch(failed)
    running = null
  }
  const timer = setInterval(() => {
    running ??= begin()
  }, intervalMs)
  timer.unref()
  return async () => {
    stopped = true
    clearInterval(timer)
    await running
  }
}
