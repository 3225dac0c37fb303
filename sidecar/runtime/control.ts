/** Commands to a running sidecar over a Unix socket, for a preStop hook or an operator. File permissions control access. */
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { StartError } from '../../pdp/shared/process/exit.ts'

/** The sidecar's replies: on receipt of the command, and on completion. */
const ANSWERS = { drain: ['draining', 'drained'], withdraw: ['withdrawing', 'withdrawn'] } as const
const LINE_CHARS_MAX = 64
const WAIT_MS = 60_000

/**
 * Serves commands on a unix socket. `drain` resolves after the last request, `withdraw` after the sidecar reports that it is not ready.
 * Throws StartError when it cannot listen on the path.
 */
export async function startControl(
  path: string,
  commands: { drain(): Promise<void>; withdraw(): Promise<void> | void },
): Promise<{ close(): Promise<void> }> {
  const server = createServer((socket) => {
    let line = ''
    socket.setEncoding('utf8')
    socket.on('error', () => undefined)
    socket.on('data', (text) => {
      line += text
      if (line.length > LINE_CHARS_MAX) return void socket.destroy()
      if (!line.includes('\n')) return
      const command = (['drain', 'withdraw'] as const).find((known) => line === `${known}\n`)
      if (command === undefined) return void socket.end('unknown command\n')
      const [received, done] = ANSWERS[command]
      socket.write(`${received}\n`)
      void Promise.resolve(commands[command]()).then(() => socket.end(`${done}\n`))
    })
  })
  // A killed process leaves its socket file behind.
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (err) =>
      reject(new StartError(`The sidecar cannot listen on the control socket ${path}: ${err.message}`)),
    )
    server.listen(path, resolve)
  })
  server.unref()
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        // The connection of `drain` stays open, since its reply is still to be sent, so the close does not wait for it.
        resolve()
      }),
  }
}

/** Returns when the sidecar has completed the command. Throws StartError when the sidecar does not accept it. */
export function sendCommand(path: string, command: 'drain' | 'withdraw'): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(path, () => socket.write(`${command}\n`))
    socket.setEncoding('utf8')
    socket.setTimeout(WAIT_MS, () => socket.destroy(new Error('the sidecar did not reply in time')))
    socket.on('data', (text) => {
      answer += text
    })
    socket.on('error', (err) => reject(new StartError(noReply(path, err))))
    // A process that exits directly after its last request may not send the second reply.
    socket.on('close', () =>
      answer.startsWith(ANSWERS[command][0])
        ? resolve()
        : reject(new StartError(`${path}: the sidecar did not ${command}`)),
    )
  })
}

const noReply = (path: string, err: Error): string =>
  'code' in err && (err.code === 'ENOENT' || err.code === 'ECONNREFUSED')
    ? `no sidecar listens at ${path}; is it running, with the same PORTCULLIS_SIDECAR_CONTROL?`
    : `${path}: ${err.message}`
