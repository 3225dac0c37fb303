/** During a shutdown, tells HTTP/1.1 clients to use another connection (RFC 9112 section 9.6). */
import type { Server, ServerResponse } from 'node:http'

/** The returned function makes each answer the last one of its connection, also an answer under way. */
export function closeAfterAnswers(server: Server): () => void {
  // An array: a Set's old tables would keep answers and requests in memory until a full garbage collection.
  const open: (ServerResponse | null)[] = []
  const free: number[] = []
  let isDraining = false
  // Listens before the framework, which itself answers requests on closing connections, with an error.
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
