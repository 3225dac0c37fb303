/** Opens new connections now and then, to notice that the address of the database leads to a newer primary. */

/**
 * The longest that a process may believe a server that was overtaken before it meets the successor. Each probe is a new connection,
 * which costs the server some milliseconds.
 */
const PROBE_EVERY_MS = 2_000

/** `probe` opens a connection and reports its server to the fence; it may reject. The returned function ends the probing. */
export function startProbing(probe: () => Promise<unknown>): () => Promise<void> {
  let probing: Promise<unknown> = Promise.resolve()
  let timer = later()
  let ended = false

  function later(): NodeJS.Timeout {
    return setTimeout(() => {
      probing = probe()
        .catch(() => undefined) // a call that needs the database reports its own error
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
