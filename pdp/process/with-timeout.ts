/** Bounds a wait by time, without blaming others for what this process was too busy to notice. */

/**
 * What `work` comes to, or what `late` says when it takes longer. Once the time is over, what has arrived meanwhile is read
 * first: a process that had no time for its sockets has no answer either, and that is not the fault of whom it asked.
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

/** Two turns of the event loop: sockets are read in the first, and what came of that is settled by the second. */
function afterReading(run: () => void): void {
  setImmediate(() => setImmediate(run))
}
