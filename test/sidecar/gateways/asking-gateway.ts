/** A gateway of a few lines that asks a door over its socket as Caddy does, and can be given a mistake. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type GatewayMistake = {
  /** True: the request is forwarded without a question. */
  readonly skips?: (req: IncomingMessage) => boolean
  /** Fields of the question beside those of the request. */
  readonly says?: (req: IncomingMessage) => { readonly [name: string]: string }
  /** True: it has answered what the door refused. */
  readonly refuses?: (refusal: IncomingMessage, res: ServerResponse, forward: () => void) => boolean
  /** True: it forwards when the door cannot be asked. */
  readonly failsOpen?: boolean
}

export async function startAskingGateway(
  { door, service }: { readonly door: string; readonly service: string },
  mistake: GatewayMistake = {},
): Promise<{ readonly url: string; close(): void }> {
  const { skips, says, refuses, failsOpen = false } = mistake
  const server = createServer((req, res) => {
    const forward = (): void => {
      const { method, url: path, headers } = req
      pipe(request(service, { method: method ?? '', path: path ?? '', headers }), res)
    }
    if (skips?.(req) === true) return forward()
    const { connection: _, 'content-length': _length, ...others } = req.headers
    const asked = {
      ...others,
      'x-forwarded-method': req.method ?? '',
      'x-forwarded-uri': req.url ?? '',
      'x-forwarded-host': req.headers.host ?? '',
      'x-forwarded-proto': 'http',
      'x-forwarded-for': '127.0.0.1',
      ...says?.(req),
    }
    const question = request({ socketPath: door, path: '/authorize', headers: asked, agent: false }, (answer) => {
      if (answer.statusCode === 200) return forward()
      if (refuses?.(answer, res, forward) === true) return void answer.resume()
      res.writeHead(answer.statusCode ?? 500, answer.rawHeaders)
      answer.pipe(res)
    })
    question.once('error', () => (failsOpen ? forward() : res.writeHead(502).end()))
    question.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function pipe(forwarded: ReturnType<typeof request>, res: ServerResponse): void {
  forwarded.once('error', () => res.writeHead(502).end())
  forwarded.once('response', (answer) => {
    res.writeHead(answer.statusCode ?? 500, answer.rawHeaders)
    answer.pipe(res)
  })
  forwarded.end()
}
