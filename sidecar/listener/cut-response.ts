/** Shows a client of HTTP/1.0 that its response was cut off. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** The end of the connection is the end of such a response, so only a reset says that it is not complete. */
export function resetWhenCut(res: ServerResponse, connection: Socket): void {
  const destroy = res.destroy.bind(res)
  res.destroy = (err) => {
    // With TLS the missing `close_notify` says it.
    if (res.headersSent && !(connection instanceof TLSSocket)) connection.resetAndDestroy()
    return destroy(err)
  }
}
