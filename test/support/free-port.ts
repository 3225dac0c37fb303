/** Ports for servers that must come back, or be named before they start. */
import { connect, createServer } from 'node:net'

/** Below those that systems give away themselves, so that no other server or client is given one in the meantime. */
const [FIRST, COUNT] = [20_000, 12_000]
/** Each process of a run begins elsewhere, and none takes the same port twice. */
let next = (process.pid * 97) % COUNT

/** On loopback. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries += 1) {
    next = (next + 1) % COUNT
    // Others may ask for one meanwhile.
    const port = FIRST + next
    if (await isFree(port)) return port
  }
  throw new Error('no port is free')
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

/** Whether somebody listens on the port of this machine. */
export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
