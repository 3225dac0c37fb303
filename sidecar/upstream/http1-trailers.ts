/** Sends a request with trailers by `node:http`, because undici cannot send trailers. */
import { type ClientRequest, type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { urlHost } from '../../pdp/shared/process/listen.ts'
import { Controller, headersTimeout, serverNameOf, type UpstreamOptions, type UpstreamRequest } from './upstream.ts'

export function createTrailerSender(
  options: Pick<UpstreamOptions, 'origin' | 'socketPath' | 'serverName' | 'headersTimeoutMs' | 'headerBytesMax'> & {
    /** The agent with connections and TLS options. */
    readonly agent: HttpAgent
  },
) {
  const { origin, socketPath, agent, headersTimeoutMs, headerBytesMax } = options
  const url = new URL(origin)
  const { port, protocol } = url
  const peer = socketPath === null ? { host: urlHost(url), port } : { socketPath }
  const servername = serverNameOf(options)
  const open = protocol === 'https:' ? httpsRequest : httpRequest

  return {
    /** Calls the handler as undici would do. */
    send(sent: UpstreamRequest & { readonly body: Readable }, handler: Dispatcher.DispatchHandler) {
      const { method, path, headers, body, announced, trailers, headersTimeoutMs: ofRoute } = sent
      const framing = ['transfer-encoding', 'chunked', 'trailer', announced.join(', ')]
      const fields = [...headers, ...framing]
      const out = open({ agent, ...peer, servername, method, path, headers: fields, maxHeaderSize: headerBytesMax })
      // The size of the header section is limited; by default Node would also drop fields beyond 1,000 silently.
      out.maxHeadersCount = 0
      const controller = new Controller((reason) => out.destroy(reason))
      const late = setTimeout(() => out.destroy(headersTimeout()), ofRoute ?? headersTimeoutMs)
      handler.onRequestStart?.(controller, null)
      const head = watchHead(out)
      let answered = false
      const fail = (err: Error): void => {
        clearTimeout(late)
        body.destroy()
        // After the response has begun, its stream reports the error instead.
        if (!answered) handler.onResponseError?.(controller, err)
        answered = true
      }
      out.on('information', ({ statusCode, rawHeaders }) => {
        controller.rawHeaders = rawHeaders
        if (!answered) handler.onResponseStart?.(controller, statusCode, {}, '')
      })
      out.on('response', (res) => {
        // Node takes a status below 100, and 101 without a protocol, for a final response.
        if ((res.statusCode ?? 0) < FINAL_MIN) {
          out.destroy(new Error('the upstream sent no final response'))
          return
        }
        if (head.hidesCoding()) {
          out.destroy(new Error('the upstream used an unknown transfer coding'))
          return
        }
        answered = true
        clearTimeout(late)
        relay(res, controller, handler)
        // If the upstream has answered and closed, the rest of the body is not needed.
        res.on('close', () => body.destroy())
      })
      // Without this listener, Node would report neither the switch of protocols nor the connection's end.
      out.on('upgrade', (_res, socket) => {
        socket.destroy()
        fail(new Error('the upstream switched protocols unasked'))
      })
      out.on('error', fail)
      sendBody(out, { body, trailers, onSent: () => late.refresh() })
    },
    close: () => agent.destroy(),
  }
}

const FINAL_MIN = 200

function sendBody(
  out: ClientRequest,
  {
    body,
    trailers,
    onSent,
  }: Pick<UpstreamRequest, 'trailers'> & { readonly body: Readable; readonly onSent: () => void },
): void {
  body.on('error', (err) => out.destroy(err))
  body.on('data', (chunk) => {
    onSent()
    if (!out.write(chunk)) body.pause()
  })
  out.on('drain', () => body.resume())
  body.on('end', () => {
    out.addTrailers([...trailers()])
    out.end()
  })
}

const END_OF_HEAD = /\r?\n\r?\n/
const INFORMATIONAL = /^HTTP\/1\.[01] 1\d\d/
/** Matches a coding followed by a tab: Node's parser overlooks the coding, and Node then drops the tab. */
const CODING_WITH_TAB = /^transfer-encoding:.*\t/im

/** Keeps the header section of the response as it arrives, to look for what Node hides. */
function watchHead(out: ClientRequest): { hidesCoding(): boolean } {
  let head = ''
  const keep = (chunk: Buffer): void => {
    head += chunk.toString('latin1')
    for (let end = END_OF_HEAD.exec(head); end !== null && INFORMATIONAL.test(head); end = END_OF_HEAD.exec(head))
      head = head.slice(end.index + end[0].length)
  }
  out.once('socket', (socket) => {
    socket.prependListener('data', keep)
    out.once('response', () => socket.off('data', keep))
  })
  return { hidesCoding: () => CODING_WITH_TAB.test(head.split(END_OF_HEAD, 1)[0] ?? '') }
}

function relay(res: IncomingMessage, controller: Controller, handler: Dispatcher.DispatchHandler): void {
  // Node also ends a response that lasts until the connection closes when the connection breaks (RFC 9112 section 8).
  let broken: Error | null = null
  res.socket.once('error', (err) => {
    broken = err
  })
  controller.source = res
  controller.rawHeaders = res.rawHeaders
  handler.onResponseStart?.(controller, res.statusCode ?? 0, {}, res.statusMessage ?? '')
  res.on('data', (chunk) => handler.onResponseData?.(controller, chunk))
  res.on('end', () => {
    controller.rawTrailers = res.rawTrailers
    if (broken === null) handler.onResponseEnd?.(controller, {})
    else handler.onResponseError?.(controller, broken)
  })
  res.on('error', (err) => handler.onResponseError?.(controller, err))
}
