/** Refused requests whose bodies are still under way: the client gets the answer, and no more than that. */
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'

let h: Harness
let client: Socket
let text = ''
let isClosed = false
let failure: Error | null = null

beforeEach(async () => {
  h = await startHarness({ routes: '"* /guarded": signed_in\n"* /open": public', limits: { keepAliveMs: 1_000 } })
  text = ''
  isClosed = false
  failure = null
  client = connect(h.port, '127.0.0.1')
  client.on('error', (err) => {
    failure = err
  })
  client.on('close', () => {
    isClosed = true
  })
})
afterEach(async () => {
  client.destroy()
  await h.close()
})

const head = (length: number): string => `POST /guarded HTTP/1.1\r\nHost: app.test\r\nContent-Length: ${length}\r\n\r\n`
const read = (): void =>
  void client.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })

test('a client that reads only after a large body is sent gets the denial', async () => {
  const body = Buffer.alloc(20_000_000, 'a')
  client.pause()
  client.write(head(body.length))
  // A write that fails calls back, too.
  await new Promise((resolve) => client.write(body, resolve))
  read()
  client.resume()
  await until(() => isClosed)
  expect(failure).toBeNull()
  expect(text).toMatch(/^HTTP\/1\.1 401 [\s\S]*\r\nconnection: close\r\n/i)
  expect(h.upstream.reached).toEqual([])
})

test('a body that goes on drop by drop after the denial ends with its connection', async () => {
  read()
  client.write(head(1_000_000_000))
  await until(() => text.startsWith('HTTP/1.1 401'))
  const drops = setInterval(() => client.write('a'), 50)
  await until(() => isClosed)
  clearInterval(drops)
})

test('no request behind a refused body is answered or forwarded', async () => {
  read()
  client.write(head(1))
  await until(() => text.startsWith('HTTP/1.1 401'))
  client.write('aGET /open HTTP/1.1\r\nHost: app.test\r\n\r\n')
  await until(() => isClosed)
  expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  expect(h.upstream.reached).toEqual([])
})

test('a client that ends its side after the denial holds its connection no longer', async () => {
  await h.close()
  h = await startHarness({ routes: '"* /guarded": signed_in' })
  client = connect(h.port, '127.0.0.1')
  isClosed = false
  client.on('close', () => {
    isClosed = true
  })
  read()
  client.write(head(1_000))
  await until(() => text.startsWith('HTTP/1.1 401'))
  client.end()
  await until(() => isClosed)
})

test('a refused body that goes on does not hold a shutdown', async () => {
  const closing = await startHarness({ routes: '"* /guarded": signed_in', limits: { keepAliveMs: 60_000 } })
  // It goes on to send when the sidecar has ended its side.
  const sender = connect({ port: closing.port, host: '127.0.0.1', allowHalfOpen: true })
  sender.on('error', () => undefined)
  let answer = ''
  sender.on('data', (chunk) => {
    answer += chunk
  })
  sender.write(head(1_000_000_000))
  await until(() => answer.startsWith('HTTP/1.1 401'))
  const drops = setInterval(() => sender.write('a'), 50)
  const startedMs = performance.now()
  await closing.close()
  clearInterval(drops)
  // One second is promised. Without it the drain takes 25.
  expect(performance.now() - startedMs).toBeLessThan(12_000)
})
