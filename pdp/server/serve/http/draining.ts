/** Tells HTTP/1.1 clients to use another connection while the server shuts down (RFC 9112 section 9.6). */
import type { Server, ServerResponse } from 'node:http'

/** Returns a function that begins it. From then on each answer is the last one of its connection, also those under way. */
export function closeAfterAnswers(server: Server): () => void {
  // Not a Set: its former tables would keep each answer, with its request, until a full collection.
  const open: (ServerResponse | null)[] = []
  const free: number[] = []
  let isDraining = false
  // Before the framework: it answers requests of connections that it closes with an error of its own.
  server.prependListener('request', (_req, res) => {
    if (isDraining) res.shouldKeepAlive = false
    const at = free.pop() ?? open.length
    open[at] = res
    res.once('close', () => {
      open[at] = null
      free.push(at)
    })
  })
  return () => {
    isDraining = true
    for (const res of open) if (res !== null) res.shouldKeepAlive = false
  }
}
