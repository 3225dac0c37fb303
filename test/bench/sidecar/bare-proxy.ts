/** What the sidecar is compared with: a pass-through proxy of undici alone. `node bare-proxy.ts ORIGIN`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const pool = new Pool(process.argv[2] ?? '', { connections: 1_024, pipelining: 1 })
const server = createServer((req, res) => {
  const { method = 'GET', url: path = '/', rawHeaders } = req
  pool.dispatch(
    { method, path, headers: rawHeaders.filter((_, at) => !/^connection$/i.test(rawHeaders[at & ~1] ?? '')) },
    {
      onRequestStart: () => undefined,
      onResponseStart(controller, status) {
        const raw = Array.isArray(controller.rawHeaders) ? controller.rawHeaders.map(String) : []
        res.writeHead(
          status,
          raw.filter((_, at) => !/^(connection|keep-alive)$/i.test(raw[at & ~1] ?? '')),
        )
      },
      onResponseData: (_controller, chunk) => void res.write(chunk),
      onResponseEnd: () => void res.end(),
      onResponseError: () => void res.destroy(),
    },
  )
})
server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port}`))
