/** A TCP link between two parts, which a test can spoil in both directions. */
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** `half-open`: nothing passes and nobody is told; `cut`: connections are reset, again and again. */
export type LinkFault = 'half-open' | 'slow' | 'trickle' | 'cut'
export type Link = {
  readonly port: number
  /** Null: as it should be. Connections that were spoilt stay so, as they do behind a firewall that forgot them. */
  spoil(fault: LinkFault | null): void
  close(): void
}

const SLOW_MS = 150
const TRICKLE_BYTES = 16
const TRICKLE_MS = 20
const CUT_MS = 500

export async function openLink(targetPort: number): Promise<Link> {
  let fault: LinkFault | null = null
  const pairs = new Map<Socket, Socket>()
  const silenced = new WeakSet<Socket>()
  const cutAll = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy()
      far.resetAndDestroy()
    }
  }
  const cutting = setInterval(() => fault === 'cut' && cutAll(), CUT_MS)

  async function carry(from: Socket, to: Socket): Promise<void> {
    for await (const chunk of from) {
      const bytes: Buffer = chunk
      if (fault === 'half-open' || silenced.has(from)) {
        silenced.add(from)
        silenced.add(to)
        continue
      }
      if (fault === 'slow') await delay(SLOW_MS)
      if (fault === 'trickle') await trickle(bytes, to)
      else if (!to.destroyed) to.write(bytes)
    }
    // The end of a connection is lost on a link that carries nothing.
    if (fault !== 'half-open' && !silenced.has(from)) to.end()
  }

  async function trickle(bytes: Buffer, to: Socket): Promise<void> {
    for (let at = 0; at < bytes.length; at += TRICKLE_BYTES) {
      if (to.destroyed) return
      to.write(fault === 'trickle' ? bytes.subarray(at, at + TRICKLE_BYTES) : bytes.subarray(at))
      if (fault !== 'trickle') return
      await delay(TRICKLE_MS)
    }
  }

  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (fault === 'cut') return near.resetAndDestroy()
    const far = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true })
    pairs.set(near, far)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.setNoDelay(true)
      one.on('error', () => undefined)
      one.on('close', () => {
        pairs.delete(near)
        if (fault !== 'half-open' && !silenced.has(one)) other.destroy()
      })
      carry(one, other).catch(() => undefined)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('a link has a port')
  return {
    port: address.port,
    spoil(next) {
      fault = next
      if (fault === 'cut') cutAll()
    },
    close() {
      clearInterval(cutting)
      server.close()
      cutAll()
    },
  }
}
