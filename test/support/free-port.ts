/** Ports for servers that must come back, or be named before they start. */
import { connect, createServer } from 'node:net'

/** Below those that systems give away themselves, so that no other server or client is given one in the meantime. */
const [FIRST, BLOCKS, BLOCK] = [20_000, 240, 50]

type Block = { next: number; readonly end: number }
let claimed: Promise<Block> | null = null

/** On loopback. No process of a run is given a port that another one has been given, and none the same port twice. */
export async function freePort(): Promise<number> {
  for (;;) {
    claimed ??= claimBlock()
    const block = await claimed
    if (block.next >= block.end) {
      claimed = null
      continue
    }
    const port = block.next
    block.next += 1
    if (await isFree(port)) return port
  }
}

/** Listens on the first port of the block until the process ends, so that others take another block. */
async function claimBlock(): Promise<Block> {
  for (let tries = 0; tries < BLOCKS; tries += 1) {
    const first = FIRST + ((process.pid + tries) % BLOCKS) * BLOCK
    if (await claims(first)) return { next: first + 1, end: first + BLOCK }
  }
  throw new Error('no port is free')
}

function claims(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const claim = createServer((socket) => socket.destroy())
    claim.once('error', () => resolve(false))
    claim.listen(port, '127.0.0.1', () => resolve(true)).unref()
  })
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
