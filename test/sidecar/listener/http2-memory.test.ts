import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createHttp2Server } from '../../../sidecar/listener/http2-server.ts'
import { DEFAULT_LIMITS } from '../../../sidecar/route-file/default-limits.ts'
import { until } from '../../support/until.ts'
import { frame, PREFACE, settings, TYPES } from '../support/raw-http2.ts'

test('a connection that a client breaks by an error and then ends leaves nothing behind', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const http2 = createHttp2Server({
    limits: DEFAULT_LIMITS,
    onRequest: () => undefined,
    onFlood: () => undefined,
    isProxy: () => false,
  })
  const sockets: WeakRef<Socket>[] = []
  const server = createServer((socket) => {
    sockets.push(new WeakRef(socket))
    http2.accept(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (let at = 0; at < 20; at += 1) {
    const client = connect(port, '127.0.0.1')
    client.on('error', () => undefined).resume()
    // DATA on a stream that was never opened is an error of the whole connection.
    client.end(Buffer.concat([PREFACE, settings(), frame(TYPES.data, 0, 2, Buffer.alloc(9))]))
    await new Promise((resolve) => client.on('close', resolve))
  }
  const left = (): number => sockets.filter((socket) => socket.deref() !== undefined).length
  await until(async () => {
    collect()
    // References that were looked at live until the end of the turn.
    await new Promise((resolve) => setTimeout(resolve, 50))
    return left() <= 2
  })
  expect(sockets).toHaveLength(20)
  server.close()
})
