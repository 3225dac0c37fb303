/** Messages that no two readers should read differently, as raw bytes. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, serve } from '../harness.ts'

let served: Served
let token: string
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
})
afterAll(() => served.close())

/** Everything that comes back until the other side closes. */
function send(text: string): Promise<string> {
  const { hostname, port } = new URL(served.url)
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1')
    })
    socket.on('close', () => resolve(received)).on('error', reject)
  })
}
const fields = (): string => `Authorization: Bearer ${token}\r\nConnection: close\r\n`

test.each([
  ['two Host fields', () => `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nHost: b\r\n${fields()}\r\n`],
  ['two equal Host fields', () => `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nHost: a\r\n${fields()}\r\n`],
  ['no Host field', () => `GET /v1/organizations HTTP/1.1\r\n${fields()}\r\n`],
  ['HTTP/2.0 in the request line', () => `GET /v1/organizations HTTP/2.0\r\nHost: a\r\n${fields()}\r\n`],
  ['HTTP/0.9 in the request line', () => `GET /v1/organizations HTTP/0.9\r\nHost: a\r\n${fields()}\r\n`],
  [
    'two media types',
    () =>
      `POST /v1/organizations/acme/relationships HTTP/1.1\r\nHost: a\r\n${fields()}Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  [
    'two lengths',
    () =>
      `POST /v1/organizations/acme/relationships HTTP/1.1\r\nHost: a\r\n${fields()}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `,
  ],
  [
    'a length and a transfer coding',
    () =>
      `POST /v1/organizations/acme/relationships HTTP/1.1\r\nHost: a\r\n${fields()}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
])('%s: 400', async (_, text) => {
  expect(await send(text())).toMatch(/^HTTP\/1\.1 400 /)
})

test('two Authorization fields are no credentials', async () => {
  const twice = `GET /v1/organizations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n${fields()}\r\n`
  expect(await send(twice)).toMatch(/^HTTP\/1\.1 401 /)
})

test('one Host field and HTTP/1.0 are answered', async () => {
  expect(await send(`GET /v1/organizations HTTP/1.1\r\nHost: a\r\n${fields()}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  expect(await send(`GET /v1/organizations HTTP/1.0\r\n${fields()}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
})
