/** A server that shuts down tells its HTTP clients to go, and answers those that are still connected. */
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Served, seedAcme, serve } from '../harness.ts'

let served: Served
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await served.close()
})

function open() {
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
  sockets.push(socket)
  let text = ''
  let ended = false
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('close', () => {
    ended = true
  })
  const answers = (): string[] =>
    text
      .split(/(?=HTTP\/1\.1 )/)
      .map((one) => `${one.slice(9, 12)} ${/\r\nconnection: (\S+)/i.exec(one)?.[1]}`)
      .filter((one) => one.startsWith('2') || one.startsWith('5'))
  return { socket, answers, ended: () => ended }
}
const GET = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'
const ask = (token: string): string => {
  const body = '{"permissions":[{"relation":"viewer","resource":"invoice:1"}]}'
  const head = `POST /oauth/decisions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

test('each answer after it began to drain is the last of its connection', async () => {
  served = await serve()
  const [before, after] = [open(), open()]
  before.socket.write(GET)
  await expect.poll(before.answers).toEqual(['200 keep-alive'])
  served.http.drain()
  before.socket.write(GET)
  after.socket.write(GET)
  await expect.poll(() => [before.ended(), after.ended()]).toEqual([true, true])
  expect([before.answers(), after.answers()]).toEqual([['200 keep-alive', '200 close'], ['200 close']])
})

test('so is the answer to a question that was under way, and what comes while it closes is answered too', async () => {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  let asked = 0
  served = await serve({
    admission: {
      waitingCount: 0,
      async run(_asker, work) {
        asked += 1
        await gate
        return work()
      },
    },
  })
  await seedAcme(served)
  const token = served.token({})
  const [one, other] = [open(), open()]
  one.socket.write(ask(token))
  other.socket.write(ask(token))
  await expect.poll(() => asked).toBe(2)
  const closed = served.http.close()
  // Behind an answer that says so there is none: the client sends it again elsewhere.
  other.socket.write(GET)
  release()
  await expect.poll(() => [one.ended(), other.ended()]).toEqual([true, true])
  expect([one.answers(), other.answers()]).toEqual([['200 close'], ['200 close']])
  await closed
})
