/** Finds out where the address of the database leads now, while open connections still lead where it led before. */

/**
 * A server that was overtaken can be believed no longer than that by a process that has not met its successor. Each probe is a
 * new connection, which takes the server some milliseconds.
 */
const PROBE_EVERY_MS = 2_000

/** `probe` opens a connection, and passes the fence. It may fail. The returned function ends the probing. */
export function startProbing(probe: () => Promise<unknown>): () => Promise<void> {
  let probing: Promise<unknown> = Promise.resolve()
  let timer = later()
  let ended = false

  function later(): NodeJS.Timeout {
    return setTimeout(() => {
      probing = probe()
        .catch(() => undefined) // a call that needs the database fails by itself
        .then(() => {
          if (!ended) timer = later()
        })
    }, PROBE_EVERY_MS).unref()
  }

  return async () => {
    ended = true
    clearTimeout(timer)
    await probing
  }
}
