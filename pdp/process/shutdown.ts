/** Closes what was opened, in reverse order, once, within a bounded time, on SIGINT, SIGTERM or a call. */
import type { Log } from './log.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** `reason`: as given to `run`; the name of a signal, for one. */
export type Close = (reason: string) => Promise<void> | void
export type Shutdown = {
  /** `close` runs at shutdown, before everything that was added earlier. */
  add(name: string, close: Close): void
  /** Shutdown closes nothing before `work`, such as a start that opens more, has ended. */
  hold<T>(work: Promise<T>): Promise<T>
  /** True when all closed in time without an error. Further calls get the same promise. */
  run(reason: string): Promise<boolean>
  /** From now on SIGINT and SIGTERM close everything and end the process: 0 when all closed, else 1. A second one ends it at once. */
  onSignals(exit: (status: number) => void): void
}

/** `timeoutMs`: bound of the whole shutdown, after which the rest is not waited for. */
export function createShutdown(options: { readonly log: Log; readonly timeoutMs: number }): Shutdown {
  const { log, timeoutMs } = options
  const closers: { name: string; close: Close }[] = []
  const held = new Set<Promise<unknown>>()
  let running: Promise<boolean> | undefined

  async function closeAll(reason: string): Promise<boolean> {
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

  function run(reason: string): Promise<boolean> {
    running ??= (async () => {
      log.info({ event: 'shutdown', reason })
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
    onSignals(exit) {
      let asked = false
      const stop = async (signal: string): Promise<void> => {
        if (asked) return exit(1)
        asked = true
        exit((await run(signal)) ? 0 : 1)
      }
      for (const signal of SIGNALS) process.on(signal, () => void stop(signal))
    },
  }
}
