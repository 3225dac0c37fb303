/** A small HTTP service that reports what reached it, byte for byte. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

export type Reached = {
  readonly method: string
  readonly target: string
  readonly rawHeaders: readonly string[]
  readonly body: string
}
export type Upstream = {
  /** Where the sidecar sends requests; tests may name another. */
  origin: string
  /** Requests whose header section arrived, in order. */
  readonly reached: Reached[]
  /** Replaces the answer. */
  handle: ((req: IncomingMessage, res: ServerResponse, body: Buffer) => void) | null
  /** Takes upgrades; null: they are ordinary requests. */
  onUpgrade: ((req: IncomingMessage, socket: Duplex, head: Buffer) => void) | null
  close(): Promise<void>
}

/** Of a larger body only the start is kept. */
const KEPT_BYTES_MAX = 1024 * 1024

/** `identity`: the certificate and key that it shows; without them it speaks plain HTTP. */
export async function startUpstream(identity?: { readonly cert: Buffer; readonly key: Buffer }): Promise<Upstream> {
  const reached: Reached[] = []
  const upgraded = new Set<Duplex>()
  const shouldUpgradeCallback = (): boolean => upstream.onUpgrade !== null
  const listener: RequestListener = (req, res) => {
    const chunks: Buffer[] = []
    const seen = { method: req.method ?? '', target: req.url ?? '', rawHeaders: req.rawHeaders, body: '' }
    reached.push(seen)
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= KEPT_BYTES_MAX) chunks.push(chunk)
    })
    req.on('error', () => undefined)
    req.on('end', () => {
      const body = Buffer.concat(chunks)
      seen.body = body.toString('latin1')
      if (upstream.handle !== null) return upstream.handle(req, res, body)
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(seen))
    })
  }
  const server =
    identity === undefined
      ? createServer({ shouldUpgradeCallback }, listener)
      : createSecureServer({ shouldUpgradeCallback, ...identity }, listener)
  server.keepAliveTimeout = 30_000
  server.on('upgrade', (req, socket, head) => {
    reached.push({ method: req.method ?? '', target: req.url ?? '', rawHeaders: req.rawHeaders, body: '' })
    upgraded.add(socket)
    upstream.onUpgrade?.(req, socket, head)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const upstream: Upstream = {
    origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    reached,
    handle: null,
    onUpgrade: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
        for (const socket of upgraded) socket.destroy()
      }),
  }
  return upstream
}

/** The value of a field as it reached the upstream, by exact name in any case; null when absent, joined when repeated. */
export function fieldOf(reached: Reached | undefined, name: string): string | null {
  const values: string[] = []
  const raw = reached?.rawHeaders ?? []
  for (let at = 0; at + 1 < raw.length; at += 2) if (raw[at]?.toLowerCase() === name) values.push(raw[at + 1] ?? '')
  return values.length === 0 ? null : values.join(' | ')
}
