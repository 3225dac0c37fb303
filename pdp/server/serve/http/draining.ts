/** Tells HTTP/1.1 clients to use another connection while the server shuts down (RFC 9112 section 9.6). */
import type { Server, ServerResponse } from 'node:http'

/** Returns a function that begins this: from then on each answer is the last one of its connection, also answers under way. */
export function closeAfterAnswers(server: Server): () => void {
  // Not a Set: V8 would keep its former tables, and so each answer with its request, until a full garbage collection.
  const open: (ServerResponse | null)[] = []
  const free: number[] = []
  let isDraining = false
  // Before the framework: it answers requests on connections that it closes with an error of its own.
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
