/** Commands to a running sidecar over a unix socket, for whoever may open it: from a preStop hook or by hand. */
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { StartError } from '../../pdp/process/exit.ts'

export type Control = { close(): Promise<void> }
/** `drain` resolves when the last request has ended, `withdraw` when clients will be sent elsewhere. */
export type Commands = { drain(): Promise<void>; withdraw(): Promise<void> | void }

/** What the sidecar says when it has heard the command, and when it has done it. */
const ANSWERS = { drain: ['draining', 'drained'], withdraw: ['withdrawing', 'withdrawn'] } as const
const LINE_CHARS_MAX = 64
const WAIT_MS = 60_000

/** Throws StartError when the path cannot be had. */
export async function startControl(path: string, commands: Commands): Promise<Control> {
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
      const [heard, done] = ANSWERS[command]
      socket.write(`${heard}\n`)
      void Promise.resolve(commands[command]()).then(() => socket.end(`${done}\n`))
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

/** Returns when the sidecar has done it. Throws StartError when it cannot be told. */
export function sendCommand(path: string, command: keyof Commands): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(path, () => socket.write(`${command}\n`))
    socket.setEncoding('utf8')
    socket.setTimeout(WAIT_MS, () => socket.destroy(new Error('no answer in time')))
    socket.on('data', (text) => {
      answer += text
    })
    socket.on('error', (err) => reject(new StartError(`${path}: ${err.message}`)))
    // A process that ends at once after its last request does not get to say so.
    socket.on('close', () =>
      answer.startsWith(ANSWERS[command][0])
        ? resolve()
        : reject(new StartError(`${path}: the sidecar did not ${command}`)),
    )
  })
}
