/** Sends bytes over one connection, and waits for its end. What is measured beside it shares the thread, so it keeps nothing. */
import { connect } from 'node:net'

/** Rejects where nothing was answered: the work would be none. */
export function exchange(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let count = 0
    const socket = connect(port, '127.0.0.1', () => void socket.write(bytes))
    socket.on('data', (chunk) => {
      count += chunk.length
    })
    socket.on('error', () => undefined)
    socket.on('close', () => (count > 0 ? resolve() : reject(new Error('the connection ended without an answer'))))
  })
}
