/** Closes resources in reverse order, once and within a time limit, on SIGINT, SIGTERM or a call. */
import type { Log } from './log.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Closes a resource. `reason`: the argument of `run`, such as a signal's name. */
export type Close = (reason: string | null) => Promise<void> | void
export type Shutdown = {
  /** Registers `close`, which runs at shutdown before all that were added earlier. */
  add(name: string, close: Close): void
  /** Delays the shutdown until `work` ends, for example a start that still opens resources. */
  hold<T>(work: Promise<T>): Promise<T>
  /**
   * Closes all; true if this succeeded in time. Later calls return the same promise. `reason`: null after a failed start, whose own error
   * is the only one logged.
   */
  run(reason: string | null): Promise<boolean>
  /** True after the call of `run`: what a start still opens must be closed as soon as it is open. */
  begun(): boolean
  /** Makes SIGINT and SIGTERM shut down and exit, with 0 if all closed, else 1. A second signal exits at once. */
  onSignals(exit: (status: number) => void): void
}

/** `timeoutMs`: the limit for the whole shutdown. */
export function createShutdown(options: { readonly log: Log; readonly timeoutMs: number }): Shutdown {
  const { log, timeoutMs } = options
  const closers: { name: string; close: Close }[] = []
  const held = new Set<Promise<unknown>>()
  let running: Promise<boolean> | undefined

  async function closeAll(reason: string | null): Promise<boolean> {
    let clean = true
    await Promise.allSettled(held)
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) {
      try {
        await closer.close(reason)
      } catch (err) {
        clean = false
        log.error({ event: 'shutdown_failed', part: closer.name, err })
      }
    }
    return clean
  }

  function run(reason: string | null): Promise<boolean> {
    running ??= (async () => {
      if (reason !== null) log.info({ event: 'shutdown', reason })
      const { promise: late, resolve } = Promise.withResolvers<boolean>()
      const timer = setTimeout(() => {
        log.error({ event: 'shutdown_late', timeout_ms: timeoutMs, parts: closers.map(({ name }) => name) })
        resolve(false)
      }, timeoutMs)
      const clean = await Promise.race([closeAll(reason), late])
      clearTimeout(timer)
      return clean
    })()
    return running
  }

  return {
    add: (name, close) => void closers.push({ name, close }),
    async hold(work) {
      held.add(work)
      try {
        return await work
      } finally {
        held.delete(work)
      }
    },
    run,
    begun: () => running !== undefined,
    onSignals(exit) {
      let signalled = false
      const stop = async (signal: string): Promise<void> => {
        if (signalled) return exit(1)
        signalled = true
        exit((await run(signal)) ? 0 : 1)
      }
      for (const signal of SIGNALS) process.on(signal, () => void stop(signal))
    },
  }
}
