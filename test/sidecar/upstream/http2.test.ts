import { once } from 'node:events'
import { constants } from 'node:http2'
import { describe, expect, test } from 'vitest'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { field, sendRaw } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { routeFile, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { startHttp2Upstream } from '../support/http2-upstream.ts'
import { openHttp2World, ROUTES } from './http2-world.ts'

const world = openHttp2World()

describe('an upstream that speaks HTTP/2', () => {
  test('gets what an HTTP/1.1 client sends, with our own framing and fields', async () => {
    const fields = ['Cookie: a=1', 'X-Auth-Subject: root', 'Connection: keep-alive, x-hop', 'X-Hop: 1', 'TE: trailers']
    const answer = await world.h.send('GET /invoices/1?a=b', { fields })
    expect([answer.status, answer.body]).toEqual([200, 'got '])
    const [reached] = world.up.reached
    expect(reached?.headers).toMatchObject({
      ':method': 'GET',
      ':scheme': 'http',
      ':authority': 'app.test',
      ':path': '/invoices/1?a=b',
      cookie: 'a=1',
      te: 'trailers',
      'x-auth-subject': 'alice',
      via: '1.1 portcullis',
    })
    for (const name of ['host', 'connection', 'x-hop', 'authorization', 'transfer-encoding'])
      expect(reached?.headers).not.toHaveProperty(name)
  })

  test('gets no second message out of the first one’s body', async () => {
    const smuggled = 'GET /invoices/2 HTTP/1.1\r\nHost: app.test\r\n\r\n'
    await world.h.send('POST /public/x', { body: smuggled, token: null })
    const chunked = `POST /public/y HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`
    expect((await sendRaw(world.h.port, chunked)).body).toBe('got hello')
    expect(world.up.reached.map(({ headers, body }) => [headers[':path'], body])).toEqual([
      ['/public/x', smuggled],
      ['/public/y', 'hello'],
    ])
  })

  test('gets the body and the announced trailers of either client, and answers with trailers', async () => {
    world.up.handle = (stream, reached) => {
      stream.on('data', (chunk) => {
        reached.body += chunk.toString()
      })
      stream.on('end', () => {
        stream.respond({ ':status': 201 }, { waitForTrailers: true })
        stream.on('wantTrailers', () =>
          stream.sendTrailers({ 'x-sum': '5', 'x-seen': String(reached.trailers?.['x-digest']) }),
        )
        stream.end(reached.body)
      })
    }
    const over2 = await ask(world.session, 'POST /public/x', {
      body: 'hello',
      headers: { trailer: 'x-digest' },
      trailers: { 'x-digest': 'abc', 'x-auth-subject': 'root' },
    })
    expect(over2).toMatchObject({ status: 201, body: 'hello', trailers: { 'x-sum': '5', 'x-seen': 'abc' } })
    const over1 = await sendRaw(
      world.h.port,
      'POST /public/x HTTP/1.1\r\nHost: app.test\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Digest\r\n\r\n5\r\nhello\r\n0\r\nX-Digest: def\r\nX-Auth-Subject: root\r\n\r\n',
    )
    expect(over1.text).toMatch(/\r\n0\r\nx-sum: 5\r\nx-seen: def\r\n\r\n$/)
    expect(world.up.reached.map(({ trailers }) => Object.keys(trailers ?? {}))).toEqual([['x-digest'], ['x-digest']])
  })

  test('answers to either client field for field', async () => {
    world.up.handle = (stream) => {
      stream.respond([':status', '200', 'set-cookie', 'a=1', 'set-cookie', 'b=2', 'content-length', '2'])
      stream.end('ok')
    }
    expect(field(await world.h.send('GET /public/x'), 'set-cookie')).toBe('a=1 | b=2')
    expect((await ask(world.session, 'GET /public/x')).headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(await ask(world.session, 'HEAD /public/x')).toMatchObject({ status: 200, body: '', reset: 0 })
  })

  test('gets fields that came twice, and the bytes of values that are not ASCII', async () => {
    const text = 'GET /public/x HTTP/1.1\r\nHost: app.test\r\nReferer: a\r\nReferer: b\r\nX-Name: é\r\n\r\n'
    for (const encoding of ['utf8', 'latin1'] as const) {
      expect((await sendRaw(world.h.port, Buffer.from(text, encoding))).status).toBe(200)
      const bytes = Buffer.from('é', encoding).toString('latin1')
      expect(world.up.reached.at(-1)?.raw.slice(8, 14)).toEqual(['referer', 'a', 'referer', 'b', 'x-name', bytes])
    }
  })

  test('serves many requests at once over one connection, and bodies of any size', async () => {
    const body = Buffer.alloc(100_000, 'x')
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) =>
        ask(world.session, at % 2 ? 'GET /public/x' : 'POST /public/x', at % 2 ? {} : { body }),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200))
    expect(answers.filter((answer) => answer.body.length > 100_000).length).toBe(30)
    expect(world.up.sessions.size).toBe(1)
  })

  test('may answer before the request has ended, and the rest of that is neither taken nor kept', async () => {
    await world.h.close()
    world.h = await startHarness({ routes: ROUTES, limits: { connectionsMax: 3 } })
    world.use(`http://127.0.0.1:${world.up.port}`)
    world.session.destroy()
    world.session = openSession(world.h.port)
    world.up.handle = (stream) => {
      stream.respond({ ':status': 200 })
      stream.end('early')
    }
    for (let at = 0; at < 10; at += 1) {
      const stream = world.session.request({ ':method': 'POST', ':path': '/public/x', ':authority': 'app.test' })
      stream.write(Buffer.alloc(300_000))
      let body = ''
      stream.on('data', (chunk) => {
        body += chunk
      })
      await once(stream, 'close')
      expect([body, stream.rstCode]).toEqual(['early', 0])
    }
  })

  test('is told when the client gives up', async () => {
    let code = 0
    world.up.handle = (stream) => {
      stream.respond({ ':status': 200 })
      stream.write('first')
      stream.on('close', () => {
        code = stream.rstCode ?? 0
      })
    }
    const stream = world.session.request({ ':path': '/public/x', ':authority': 'app.test' })
    await once(stream, 'data')
    stream.close(constants.NGHTTP2_CANCEL)
    await until(() => code === constants.NGHTTP2_CANCEL)
    expect(world.up.sessions.size).toBe(1)
  })

  test('is not told that a request is whole which the client broke off', async () => {
    const seen: string[] = []
    world.up.handle = (stream) => {
      for (const event of ['aborted', 'end']) stream.on(event, () => void seen.push(event))
      stream.resume()
    }
    const stream = world.session.request({ ':method': 'POST', ':path': '/public/x', ':authority': 'app.test' })
    stream.on('error', () => undefined)
    stream.write('{"part":')
    await until(() => world.up.reached.length === 1)
    stream.destroy(new Error('gone'))
    await until(() => seen.length > 0)
    // The end of the stream itself comes after.
    expect(seen[0]).toBe('aborted')
    const text = 'POST /public/x HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel'
    seen.length = 0
    await sendRaw(world.h.port, text, { timeoutMs: 100 })
    await until(() => seen.length > 0)
    expect(seen[0]).toBe('aborted')
  })

  test('that resets its answer in the middle does not have it taken for whole', async () => {
    world.up.handle = (stream) => {
      stream.respond({ ':status': 200 })
      stream.write('half')
      setTimeout(() => stream.destroy(new Error('broken')), 30)
    }
    expect(await ask(world.session, 'GET /public/x')).toMatchObject({ status: 200, body: 'half', reset: 2 })
    expect((await world.h.send('GET /public/x')).text).not.toMatch(/\r\n0\r\n/)
  })

  test.each([0, 1, 4])(
    'that resets without an error after %d of 5 bytes does not have them taken for whole',
    async (sent) => {
      world.up.handle = (stream) => {
        stream.respond({ ':status': 200, 'content-length': '5' })
        if (sent > 0) stream.write('whole'.slice(0, sent))
        setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), 30)
      }
      expect((await ask(world.session, 'GET /public/x')).reset).not.toBe(0)
      const { body, text, status } = await world.h.send('GET /public/x')
      if (sent === 0) expect(status).toBe(502)
      else expect([body.length < 5, text.includes('content-length: 5')]).toEqual([true, true])
    },
  )

  test.each([
    ['GET', 200, 'whole'],
    ['HEAD', 200, ''],
    ['GET', 304, ''],
  ])('that says a length has its answer to %s with %d taken for whole', async (method, status, body) => {
    world.up.handle = (stream) => {
      stream.respond({ ':status': status, 'content-length': '5' })
      stream.end(body)
    }
    expect(await ask(world.session, `${method} /public/x`)).toMatchObject({ status, body, reset: 0 })
    expect(await world.h.send(`${method} /public/x`, { token: null })).toMatchObject({ status, body })
  })

  test.each([
    [
      'resets a request',
      (stream: { close(code: number): void }) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
      502,
    ],
    ['does not answer', () => undefined, 504],
  ] as const)('that %s costs only that request: %#', async (_name, handle, status) => {
    world.up.handle = handle
    expect((await world.h.send('GET /public/x')).status).toBe(status)
    world.up.handle = null
    expect((await world.h.send('GET /public/x')).status).toBe(200)
    expect(world.up.sessions.size).toBe(1)
  })

  test('that refuses a stream is asked again, whatever the method', async () => {
    let first = true
    world.up.handle = (stream) => {
      if (first) stream.close(constants.NGHTTP2_REFUSED_STREAM)
      else {
        stream.respond({ ':status': 200 })
        stream.end('second')
      }
      first = false
    }
    expect((await world.h.send('POST /public/x')).body).toBe('second')
    first = true
    // Part of its body may be gone.
    expect((await world.h.send('POST /public/x', { body: 'hello' })).status).toBe(502)
  })

  test('that says GOAWAY finishes what it has, and gets the rest over another connection', async () => {
    const finishing: (() => void)[] = []
    world.up.handle = (stream) => {
      stream.respond({ ':status': 200 })
      finishing.push(() => stream.end('finished'))
    }
    const asked = world.h.send('GET /public/x')
    await until(() => finishing.length === 1)
    const [old] = world.up.sessions
    old?.close()
    await new Promise((resolve) => setTimeout(resolve, 30))
    world.up.handle = null
    expect((await world.h.send('POST /public/x', { body: 'new' })).body).toBe('got new')
    finishing[0]?.()
    expect((await asked).body).toBe('finished')
  })

  test('that is replaced keeps its connection until the last of several requests on it has ended', async () => {
    const finishing: (() => void)[] = []
    world.up.handle = (stream) => {
      stream.respond({ ':status': 200 })
      finishing.push(() => stream.end('finished'))
    }
    const asked = [world.h.send('GET /public/x'), ask(world.session, 'GET /public/y'), world.h.send('GET /public/z')]
    let ended = 0
    for (const answer of asked) void Promise.resolve(answer).then(() => (ended += 1))
    await until(() => finishing.length === 3)
    const next = await startHttp2Upstream()
    world.closers.push(() => next.close())
    for (let reload = 0; reload < 3; reload += 1) world.use(`http://127.0.0.1:${next.port}`)
    expect((await world.h.send('GET /public/x')).body).toBe('got ')
    expect([next.reached.length, world.up.sessions.size]).toEqual([1, 1])
    for (const [at, finish] of finishing.entries()) {
      expect(world.up.sessions.size).toBe(1)
      finish()
      await until(() => ended === at + 1)
    }
    expect((await Promise.all(asked)).map(({ body }) => body)).toEqual(Array(3).fill('finished'))
    await until(() => world.up.sessions.size === 0)
  })

  test('that was restarted is connected to again', async () => {
    expect((await world.h.send('GET /public/x')).status).toBe(200)
    for (const one of world.up.sessions) one.destroy()
    expect((await world.h.send('GET /public/x')).status).toBe(200)
  })
})

test('a route file whose upstream speaks HTTP/2 cannot have a WebSocket route', () => {
  const source = routeFile('GET /ws: {check: public, upgrade: [websocket]}').replace('PDP', '127.0.0.1:1')
  const { issues } = parseRouteFile(source.replace('UPSTREAM', '{url: http://127.0.0.1:1, http2: true}'))
  expect(issues.map(({ message }) => message)).toEqual([
    'http2 does not support WebSocket, but the route GET /ws accepts it',
  ])
  expect(parseRouteFile(source.replace('UPSTREAM', 'http://127.0.0.1:1')).issues).toEqual([])
})
