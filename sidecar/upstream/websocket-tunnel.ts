/** Relays a permitted WebSocket connection to the upstream, until either side closes or the permission ends. */
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { ProblemCode } from '../../pdp/process/problems.ts'
import type { Permit } from '../enforce/enforce.ts'
import type { Upgrade } from '../http/client.ts'
import { withoutOwnCookies } from '../http/cookies.ts'
import { downstreamFields } from '../http/fields.ts'
import type { Cancellation } from './cancellation.ts'
import { createHandler, type ForwardDeps, type Forwarded, type Forwarding, requestTo } from './forward.ts'
import { rawFields } from './response-fields.ts'
import { closeFrame, createFrameFollower } from './websocket-frames.ts'

export type Tunneling = Forwarding & {
  readonly upgrade: Upgrade
  /** Called when the connection has ended. */
  readonly onEnd: () => void
}
export type Tunneled = Forwarded | { readonly kind: 'opened' }

/** Never throws. If the upstream does not switch protocols, its response is forwarded like any other. */
export function openTunnel(permit: Permit, tunneling: Tunneling, deps: ForwardDeps): Promise<Tunneled> {
  const { promise, resolve } = Promise.withResolvers<Tunneled>()
  const handler: Dispatcher.DispatchHandler = {
    ...createHandler(tunneling, { ...deps, resolve, mayEndLate: false }),
    onRequestUpgrade(controller, status, _headers, upstream) {
      const fields = rawFields(controller.rawHeaders)
      if (status !== SWITCHING || !switchesToWebSocket(fields)) {
        upstream.destroy()
        const cause = new Error('the upstream did not switch to WebSocket')
        return resolve({ kind: 'failed', code: 'upstream_unavailable', cause })
      }
      resolve({ kind: 'opened' })
      switchProtocols(tunneling, deps.keepsCookies ? withoutOwnCookies(fields) : fields)
      const { upgrade, cancellation, onEnd } = tunneling
      relay({ client: upgrade.socket, upstream, cancellation, onEnd })
      if (upgrade.head.length > 0) upstream.write(upgrade.head)
    },
  }
  const { upstream } = deps
  try {
    if (upstream.upgrade === null)
      throw new Error('the upstream connection uses HTTP/2, which does not support WebSocket here')
    upstream.upgrade(requestTo(permit, tunneling, deps), handler)
  } catch (err) {
    const cause = err instanceof Error ? err : new Error(String(err))
    resolve({ kind: 'failed', code: 'upstream_unavailable', cause })
  }
  return promise
}

const SWITCHING = 101

const switchesToWebSocket = (fields: readonly string[]): boolean =>
  fields.some(
    (name, at) => at % 2 === 0 && name.toLowerCase() === 'upgrade' && /^websocket$/i.test(fields[at + 1] ?? ''),
  )

function switchProtocols({ upgrade, answerFields }: Tunneling, upstreamFields: readonly string[]): void {
  const { socket } = upgrade
  upgrade.release()
  const fields = downstreamFields(upstreamFields).concat(answerFields)
  const lines = [`HTTP/1.1 ${SWITCHING} Switching Protocols`, 'Connection: Upgrade', 'Upgrade: websocket']
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() !== 'connection') lines.push(`${fields[at]}: ${fields[at + 1]}`)
  }
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** Time for the client to answer a close frame, and for the upstream to complete its current frame. */
const CLOSING_MS = 1_000

type Relay = {
  readonly client: Duplex
  readonly upstream: Duplex
  readonly cancellation: Cancellation
  readonly onEnd: () => void
}

function relay({ client, upstream, cancellation, onEnd }: Relay): void {
  const follower = createFrameFollower()
  let cancelledWith: ProblemCode | null = null
  let over = false

  function end(): void {
    if (over) return
    over = true
    client.destroy()
    upstream.destroy()
    onEnd()
  }

  function sendClose(code: ProblemCode): void {
    upstream.destroy()
    client.end(closeFrame(code))
  }

  client.on('data', (chunk) => {
    // After the permission has ended, nothing from the client reaches the upstream.
    if (cancelledWith !== null || upstream.destroyed) return
    if (!upstream.write(chunk)) client.pause()
  })
  upstream.on('drain', () => client.resume())
  upstream.on('data', (chunk) => {
    if (upstream.destroyed) return
    const ofFrame = follower.push(chunk)
    if (cancelledWith !== null) {
      client.write(chunk.subarray(0, ofFrame))
      if (ofFrame < chunk.length || follower.atEnd()) sendClose(cancelledWith)
    } else if (!client.write(chunk)) upstream.pause()
  })
  client.on('drain', () => upstream.resume())
  client.on('end', () => (cancelledWith === null ? upstream.end() : end()))
  upstream.on('end', () => void (cancelledWith === null && client.end()))
  for (const socket of [client, upstream]) socket.on('error', () => (cancelledWith === null ? end() : undefined))
  client.on('close', end)
  upstream.on('close', () => {
    // Let the last relayed bytes reach the client.
    if (cancelledWith === null) client.end()
    setTimeout(end, CLOSING_MS).unref()
  })
  cancellation.listen((code) => {
    cancelledWith = code
    if (follower.atEnd()) sendClose(code)
    else upstream.resume()
    setTimeout(end, CLOSING_MS).unref()
  })
  client.resume()
  upstream.resume()
}
