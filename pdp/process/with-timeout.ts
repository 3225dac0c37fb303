/** Limits a wait by time, without a false timeout when this process was too busy to read the result. */

/**
 * Settles as `work` does, or rejects with `late()` after `timeoutMs`. Before it rejects, sockets are read once more: a busy
 * process may not have read an answer that arrived in time.
 */
export function withTimeout<T>(work: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => afterReading(() => reject(late())), Math.max(0, timeoutMs))
    work.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

/** Waits two turns of the event loop: the first reads sockets, the second settles the resulting promises. */
function afterReading(run: () => void): void {
  setImmediate(() => setImmediate(run))
}
