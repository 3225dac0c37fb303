/** Serves an issuer's metadata and key set over HTTP, as guards ask for them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Issuer } from '../../../support/peers/issuer.ts'

/** `current`: the issuer whose URL is the returned one; it is made after this. */
export async function serveKeys(current: () => Issuer): Promise<{ url: string; close(): Promise<unknown> }> {
  const server = createServer((req, res) => {
    const { issuer, jwks } = current()
    const found = req.url === '/jwks' ? jwks : { issuer, jwks_uri: `${issuer}/jwks` }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => new Promise((resolve) => server.close(resolve)) }
}
