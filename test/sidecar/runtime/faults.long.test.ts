import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { field, sendRaw } from '../../support/peers/raw-http.ts'
import { until } from '../../support/until.ts'
import { PROMPT_MS } from '../support/harness.ts'
import { openRuntimeWorld } from './runtime-world.ts'

const ROUTES =
  'GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}\nPOST /invoices/{id}: viewer invoice:{id}'

const world = openRuntimeWorld()
const start = (options: Parameters<typeof world.start>[0] = {}) => world.start({ routes: ROUTES, ...options })

describe('when the PDP', () => {
  test('is stopped, requests are 503 with Retry-After; when it is back, they are 200', async () => {
    const { send, pdp, upstream } = await start()
    await pdp.stop()
    const refused = await send('GET /invoices/1')
    expect([refused.status, field(refused, 'retry-after'), upstream.reached.length]).toEqual([503, '1', 0])
    expect((await send('GET /public/x', { token: null })).status).toBe(200)
    await pdp.start()
    await until(async () => (await send('GET /invoices/1')).status === 200)
  })

  test('hangs, 200 requests at once are each 503 within the deadline', async () => {
    const { send, pdp, upstream, issuer } = await start({ limits: { pdpTimeoutMs: 500 } })
    pdp.script = () => null
    const token = await issuer.token()
    const startedMs = performance.now()
    const answers = await Promise.all(Array.from({ length: 200 }, () => send('GET /invoices/1', { token })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
    expect(upstream.reached).toEqual([])
  })
})

describe('when metrics fail', () => {
  test('requests are answered, denied and cut as without them', async () => {
    const { send, registry, upstream } = await start()
    for (const { name } of await registry.getMetricsAsJSON()) {
      const metric = registry.getSingleMetric(name)
      const fail = (): never => {
        throw new Error(`${name} fails`)
      }
      Object.assign(metric ?? {}, { inc: fail, set: fail, observe: fail, reset: fail })
    }
    expect((await send('GET /invoices/1')).status).toBe(200)
    expect((await send('GET /invoices/2')).status).toBe(403)
    expect((await send('GET /public/x', { token: null })).status).toBe(200)
    expect((await send('GET /nowhere')).status).toBe(404)
    await upstream.close()
    expect((await send('GET /invoices/1')).status).toBe(502)
  })
})

describe('when the upstream', () => {
  test('is gone, requests are 502', async () => {
    const { send, upstream } = await start()
    await upstream.close()
    expect((await send('GET /invoices/1')).status).toBe(502)
    const posted = await send('POST /invoices/1', { body: 'x'.repeat(1_000_000) })
    expect(posted.status).toBe(502)
  })

  test('does not answer in time, requests are 504', async () => {
    const { send, upstream } = await start({ limits: { upstreamHeadersMs: 100 } })
    upstream.handle = () => undefined
    expect((await send('GET /invoices/1')).status).toBe(504)
  })

  test('answers what is no HTTP, requests are 502', async () => {
    const { send, upstream } = await start()
    upstream.handle = (req) => void req.socket.end('rubbish\r\n\r\n')
    expect((await send('GET /invoices/1')).status).toBe(502)
  })

  test('closes the connection as it is used, a GET is repeated once, and a POST never', async () => {
    const { send, upstream } = await start()
    upstream.handle = (req, res) => void (upstream.reached.length === 1 ? req.socket.destroy() : res.end('ok'))
    expect((await send('GET /invoices/1')).status).toBe(200)
    expect(upstream.reached.length).toBe(2)
    upstream.reached.length = 0
    expect((await send('POST /invoices/1', { body: 'x' })).status).toBe(502)
    expect(upstream.reached.length).toBe(1)
  })

  test('sends more than it announced, nobody gets the rest', async () => {
    const { send, upstream } = await start()
    upstream.handle = (_req, res) =>
      void res.socket?.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n')
    expect((await send('GET /invoices/1')).body).toBe('ok')
    upstream.handle = null
    const next = await send('GET /invoices/1')
    expect([next.status, field(next, 'x-evil')]).toEqual([200, null])
  })
})

describe('when the client', () => {
  test('stops in the middle of its body, it is 408', async () => {
    const { port, issuer } = await start({ limits: { bodyIdleMs: 100 } })
    const head = `POST /invoices/1 HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer ${await issuer.token()}\r\n`
    expect((await sendRaw(port, `${head}Content-Length: 10\r\n\r\nhalf`)).status).toBe(408)
  })

  test('is slow with its header section, it is 408', async () => {
    const { port } = await start({ limits: { headersTimeoutMs: 200 } })
    expect((await sendRaw(port, 'GET /public/x HTTP/1.1\r\nHost: app')).status).toBe(408)
  })

  test('does not read, the upstream is not read either', async () => {
    const { port, upstream } = await start()
    let written = 0
    upstream.handle = (_req, res) => {
      const chunk = Buffer.alloc(1024 * 1024)
      const fill = (): void => {
        while (written < 200 && res.write(chunk)) written += 1
        if (written < 200) res.once('drain', fill)
      }
      fill()
    }
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n'))
    socket.pause()
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(written).toBeLessThan(50)
    socket.destroy()
  })

  test('goes away, the upstream is let go', async () => {
    const { port, upstream } = await start()
    let closed = false
    upstream.handle = (_req, res) => void res.on('close', () => (closed = true))
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n'))
    await until(() => upstream.reached.length === 1)
    socket.destroy()
    await until(() => closed)
  })
})

test('keys that cannot be had are 503, and the sidecar says that it is not ready', async () => {
  const { send, sidecar, issuer } = await start({ limits: { keyAgeMaxMs: 1, keyCooldownMs: 0 } })
  expect(sidecar.notReady()).toBeNull()
  issuer.jwks = { keys: Array.from({ length: 100 }, () => ({})) }
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect((await send('GET /invoices/1')).status).toBe(503)
})

test('a bound token needs its proof, and a proof works once', async () => {
  const { send, issuer, upstream } = await start()
  const keys = ecKeys()
  const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
  const dpop = async (): Promise<string[]> => {
    const text = await proof({ keys, method: 'GET', url: 'https://app.test/invoices/1', token, clock: Date.now })
    return [`Authorization: DPoP ${token}`, `DPoP: ${text}`]
  }
  const fields = await dpop()
  expect((await send('GET /invoices/1', { token: null, fields })).status).toBe(200)
  expect(upstream.reached[0]?.rawHeaders.map((name) => name.toLowerCase())).not.toContain('dpop')
  const again = await send('GET /invoices/1', { token: null, fields })
  expect([again.status, field(again, 'www-authenticate')?.slice(0, 33)]).toEqual([
    401,
    'DPoP error="invalid_dpop_proof", ',
  ])
  const asBearer = await send('GET /invoices/1', { token })
  expect([asBearer.status, field(asBearer, 'www-authenticate')?.slice(0, 28)]).toEqual([
    401,
    'DPoP error="invalid_token", ',
  ])
  expect((await send('GET /invoices/1', { token: null, fields: [`Authorization: DPoP ${token}`] })).status).toBe(401)
  expect((await send('GET /invoices/1', { token: null, fields: [...fields, ...(await dpop()).slice(1)] })).status).toBe(
    401,
  )
})

test('a sidecar that is told to stop finishes what is under way', async () => {
  const { send, sidecar, upstream } = await start()
  upstream.handle = (_req, res) => void setTimeout(() => res.end('late'), 200)
  const answer = send('GET /invoices/1')
  await until(() => upstream.reached.length === 1)
  const closed = sidecar.close()
  expect(sidecar.notReady()).toBe('draining')
  expect((await answer).body).toBe('late')
  await closed
})
