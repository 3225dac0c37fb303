/** Commands to a running sidecar over a unix socket, for whoever may open it: `drain`, from a preStop hook or by hand. */
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { StartError } from '../pdp/process/exit.ts'

export type Control = { close(): Promise<void> }

const LINE_CHARS_MAX = 64
const WAIT_MS = 60_000

/** `drain` resolves when the last request has ended. Throws StartError when the path cannot be had. */
export async function startControl(path: string, drain: () => Promise<void>): Promise<Control> {
  const server = createServer((socket) => {
    let line = ''
    socket.setEncoding('utf8')
    socket.on('error', () => undefined)
    socket.on('data', (text) => {
      line += text
      if (line.length > LINE_CHARS_MAX) return void socket.destroy()
      if (!line.includes('\n')) return
      if (line !== 'drain\n') return void socket.end('unknown command\n')
      socket.write('draining\n')
      void drain().then(() => socket.end('drained\n'))
    })
  })
  // What a killed process has left behind.
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (err) => reject(new StartError(`The control socket ${path} cannot be had: ${err.message}`)))
    server.listen(path, resolve)
  })
  server.unref()
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        // The answer to `drain` is still to be sent, and does not keep the process.
        resolve()
      }),
  }
}

/** Returns when the sidecar has drained. Throws StartError when it cannot be told. */
export function sendDrain(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(path, () => socket.write('drain\n'))
    socket.setEncoding('utf8')
    socket.setTimeout(WAIT_MS, () => socket.destroy(new Error('no answer in time')))
    socket.on('data', (text) => {
      answer += text
    })
    socket.on('error', (err) => reject(new StartError(`${path}: ${err.message}`)))
    // A process that ends at once after its last request does not get to say so.
    socket.on('close', () =>
      answer.startsWith('draining') ? resolve() : reject(new StartError(`${path}: not drained`)),
    )
  })
}
