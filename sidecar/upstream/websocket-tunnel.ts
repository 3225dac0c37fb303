/** Relays a permitted WebSocket connection to the upstream, until either side closes or the permission ends. */
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import type { Permit } from '../enforce/enforce.ts'
import type { Upgrade } from '../http/client-request.ts'
import { withoutOwnCookies } from '../http/cookies.ts'
import { downstreamFields, firstValue, onlyValue, pairsOf, splitList } from '../http/fields.ts'
import { BEARER_PROTOCOL } from '../request/browser-token.ts'
import type { Cancellation } from './cancellation.ts'
import { AnswerRelay, type ForwardDeps, type Forwarded, type Forwarding, requestTo, timeoutOf } from './forward.ts'
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
  const handler = new AnswerRelay(tunneling, deps, {
    resolve,
    mayEndLate: false,
    headersTimeoutMs: timeoutOf(permit, deps),
  })
  handler.onRequestUpgrade = (controller, status, _headers, upstream) => {
    const fields = rawFields(controller.rawHeaders)
    const key = firstValue(permit.request.raw, 'sec-websocket-key') ?? ''
    if (status !== SWITCHING || !switchesToWebSocket(fields, key)) {
      upstream.destroy()
      const cause = new Error('the upstream did not switch to WebSocket')
      return resolve({ kind: 'failed', code: 'upstream_unavailable', cause })
    }
    resolve({ kind: 'opened' })
    const passing = deps.keepsCookies ? withoutOwnCookies(fields) : fields
    switchProtocols(tunneling, [...passing, ...bearerProtocol(permit, tunneling.client, passing)])
    const { upgrade, cancellation, onEnd } = tunneling
    relay({ client: upgrade.socket, upstream, cancellation, onEnd })
    if (upgrade.head.length > 0) upstream.write(upgrade.head)
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

/** Adds the subprotocol `bearer` to the answer: a browser ends a connection whose answer names no protocol that it asked for. */
function bearerProtocol(
  { route }: Permit,
  { raw }: Tunneling['client'],
  answered: readonly string[],
): readonly string[] {
  if (route.tokenFrom?.subprotocol !== true || firstValue(answered, PROTOCOLS) !== null) return []
  return splitList(firstValue(raw, PROTOCOLS) ?? '').includes(BEARER_PROTOCOL) ? [PROTOCOLS, BEARER_PROTOCOL] : []
}

const PROTOCOLS = 'sec-websocket-protocol'
const SWITCHING = 101

/**
 * True if the answer has the right reply to the client's key, which only a WebSocket server makes (RFC 6455 section 4.1). Another service
 * that answered 101 would read the client's next bytes as requests.
 */
function switchesToWebSocket(fields: readonly string[], key: string): boolean {
  const expected = createHash('sha1').update(`${key}${ACCEPT_GUID}`).digest('base64')
  return (
    /^websocket$/i.test(onlyValue(fields, 'upgrade') ?? '') && onlyValue(fields, 'sec-websocket-accept') === expected
  )
}

const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

function switchProtocols({ upgrade, answerFields }: Tunneling, upstreamFields: readonly string[]): void {
  const { socket } = upgrade
  upgrade.release()
  // RFC 9110 section 8.6: a response with this status has no Content-Length.
  const fields = downstreamFields(upstreamFields, ['content-length']).concat(answerFields)
  const lines = [`HTTP/1.1 ${SWITCHING} Switching Protocols`, 'Connection: Upgrade', 'Upgrade: websocket']
  for (const [name, value] of pairsOf(fields)) if (name.toLowerCase() !== 'connection') lines.push(`${name}: ${value}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** Time for the client to answer a close frame, and for the upstream to complete its current frame. */
const CLOSING_MS = 1_000

function relay(options: {
  readonly client: Duplex
  readonly upstream: Duplex
  readonly cancellation: Cancellation
  readonly onEnd: () => void
}): void {
  const { client, upstream, cancellation, onEnd } = options
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
    // The client's bytes are dropped when the permission has ended.
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
    // The last relayed bytes can still reach the client.
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
