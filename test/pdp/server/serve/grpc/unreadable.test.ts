/** Messages that are not what their method takes are the caller's mistake, and no fault of ours. */
import { Client, credentials, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, serve } from '../harness.ts'

let served: Served
let client: Client
beforeAll(async () => {
  served = await serve()
  client = new Client(served.grpc.address, credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await served.close()
})

const same = (bytes: Buffer): Buffer => bytes
const ask = (path: string, bytes: Buffer): Promise<number | undefined> =>
  new Promise((done) => client.makeUnaryRequest(path, same, same, bytes, (err) => done(err?.code)))

test.each([
  ['a field without an end', Buffer.from([0x0a, 0x7f, 0x61])],
  ['a group that never ends', Buffer.from([0x0b])],
  ['a number of eleven bytes', Buffer.alloc(11, 0xff)],
  ['a text that is no UTF-8', Buffer.from([0x0a, 0x01, 0xff])],
  ['a text of a page', Buffer.from('<html>')],
])('%s is INVALID_ARGUMENT', async (_name, bytes) => {
  expect(await ask('/portcullis.v1.DecisionService/Decide', bytes)).toBe(status.INVALID_ARGUMENT)
})

test('a stream that carries one ends with INVALID_ARGUMENT', async () => {
  const call = client.makeBidiStreamRequest('/portcullis.v1.DecisionService/DecideStream', same, same)
  const ended = new Promise((done) => call.once('error', (err) => done('code' in err ? err.code : null)))
  call.on('data', () => undefined)
  call.write(Buffer.from([0x0a, 0x7f, 0x61]))
  expect(await ended).toBe(status.INVALID_ARGUMENT)
})
