/** Tells HTTP/1.1 clients to use another connection while the server shuts down (RFC 9112 section 9.6). */
import type { Server, ServerResponse } from 'node:http'

/** Returns a function that begins it. From then on each answer is the last one of its connection, also those under way. */
export function closeAfterAnswers(server: Server): () => void {
  const open = new Set<ServerResponse>()
  let isDraining = false
  // Before the framework: it answers requests of connections that it closes with an error of its own.
  server.prependListener('request', (_req, res) => {
    if (isDraining) res.shouldKeepAlive = false
    open.add(res)
    res.once('close', () => open.delete(res))
  })
  return () => {
    isDraining = true
    for (const res of open) res.shouldKeepAlive = false
  }
}
