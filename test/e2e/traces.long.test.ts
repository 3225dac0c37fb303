/** One trace from the client through a real sidecar and a real PDP to SQL, as a collector gets it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { readTracing } from '../../pdp/shared/process/tracing/settings.ts'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { openTestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { choosePorts } from './demo-stack.ts'
import { pdpSettings } from './pdp-settings.ts'

const HOST = '127.0.0.1'
const RESOURCE = 'https://orders.test'
const ADMIN = { clientId: 'admin', clientSecret: 'the-secret-of-the-administrator' }
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

type Span = {
  readonly service: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly attributes: readonly { readonly key: string; readonly value: object }[]
}
const spans: Span[] = []
const reached: IncomingHttpHeaders[] = []
const lines: string[] = []
const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
const shutdown = createShutdown({ log, timeoutMs: 20_000 })
const closing: (() => unknown)[] = []
let issuer = ''
let sidecar = ''

const collector = createServer((req, res) => {
  let body = ''
  req.setEncoding('utf8').on('data', (piece: string) => {
    body += piece
  })
  req.on('end', () => {
    for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
      const service = resource.attributes[0].value.stringValue
      for (const span of scopeSpans[0].spans) spans.push({ parentSpanId: '', ...span, service })
    }
    res.end('{}')
  })
})
const upstream = createServer((req, res) => {
  reached.push(req.headers)
  res.end('an order')
})

beforeAll(async () => {
  for (const server of [collector, upstream]) {
    await new Promise<void>((done) => server.listen(0, HOST, done))
    closing.push(() => server.close())
  }
  const portOf = (server: typeof collector): number => (server.address() as AddressInfo).port
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${HOST}:${portOf(collector)}` }
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-traces-'))
  closing.push(() => rm(dataDirectory, { recursive: true }), database.drop)
  issuer = `http://${HOST}:${ports.http}`
  sidecar = `http://${HOST}:${ports.sidecar}`
  const databaseUrl = database.connectionString
  const tracing = readTracing(environment, { service: 'portcullis-pdp', report: expect.unreachable })
  const settings = { issuer, adminSecret: ADMIN.clientSecret, host: HOST, ports, databaseUrl, dataDirectory }
  await startPdp({ ...pdpSettings(settings), tracing }, { log, shutdown })
  const { access_token: token } = await clientToken({ issuer, ...ADMIN, scope: 'manifest:write' })
  await fetch(`${issuer}/v1/apps/orders/manifest`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ audiences: [RESOURCE] }),
  })
  const file = join(dataDirectory, 'routes.yaml')
  await writeFile(
    file,
    `portcullis: v1
resource: ${RESOURCE}
public_url: ${sidecar}
issuers: [{issuer: "${issuer}"}]
upstream: http://${HOST}:${portOf(upstream)}
pdp: {address: "${HOST}:${ports.grpc}", insecure: true}
limits: {pdp_ms: 5000}
routes:
  GET /orders/{id}: signed_in
  GET /refunds/{id}: viewer refund:{id}
`,
  )
  const admin = `${HOST}:${await freePort()}`
  const flags = { file, listen: `${HOST}:${ports.sidecar}`, adminListen: admin }
  await startSidecar(readConfig(environment, flags), { log, shutdown })
  await until(async () => (await fetch(`http://${admin}/readyz`)).ok)
})
afterAll(async () => {
  await shutdown.run('test')
  for (const close of closing.reverse()) await close()
})

const ask = async (path: string, fields: { [name: string]: string } = {}): Promise<number> => {
  const { access_token: token } = await clientToken({ issuer, ...ADMIN, resource: RESOURCE, scope: '' })
  return (await fetch(`${sidecar}${path}`, { headers: { authorization: `Bearer ${token}`, ...fields } })).status
}
const of = (name: string | RegExp, traceId: string): Span | undefined =>
  spans.find(
    (span) => span.traceId === traceId && (typeof name === 'string' ? span.name === name : name.test(span.name)),
  )

test('the trace of a client goes on through the sidecar to the PDP and its statements, and to the service', async () => {
  expect(await ask('/orders/1', { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'a=b' })).toBe(200)
  await until(async () => of('decide', TRACE) !== undefined && of('GET /orders/{id}', TRACE) !== undefined)
  const request = of('GET /orders/{id}', TRACE)
  expect(request).toMatchObject({ service: 'portcullis-sidecar', parentSpanId: PARENT })
  const asking = of('portcullis.v1.DecisionService/DecideStream', TRACE)
  expect(asking).toMatchObject({ service: 'portcullis-sidecar', parentSpanId: request?.spanId })
  const decide = of('decide', TRACE)
  expect(decide).toMatchObject({ service: 'portcullis-pdp', parentSpanId: asking?.spanId })
  await until(async () => of(/^postgresql /, TRACE) !== undefined)
  expect(of(/^postgresql /, TRACE)).toMatchObject({ service: 'portcullis-pdp', parentSpanId: decide?.spanId })
  const forwarding = of('GET', TRACE)
  expect(forwarding).toMatchObject({ parentSpanId: request?.spanId })
  expect(reached.at(-1)).toMatchObject({ traceparent: `00-${TRACE}-${forwarding?.spanId}-01`, tracestate: 'a=b' })
})

test('a request without a trace gets one, which its line in the log names', async () => {
  expect(await ask('/refunds/1', { 'x-request-id': 'refund-1' })).toBe(403)
  const line = lines.find((text) => text.includes('"refund-1"') && text.includes('"trace_id"'))
  const { trace_id: traceId } = JSON.parse(line ?? '{}')
  await until(async () => of('GET /refunds/{id}', traceId) !== undefined)
  const span = of('GET /refunds/{id}', traceId)
  expect(span?.parentSpanId).toBe('')
  expect(span?.attributes).toContainEqual({ key: 'portcullis.decision', value: { stringValue: 'deny' } })
  expect(JSON.stringify(spans)).not.toMatch(/eyJ|refunds\/1/)
})

test('a client that does not record is followed: its trace is passed on, and no span is sent', async () => {
  const traceId = TRACE.replace('4b', '5c')
  expect(await ask('/orders/2', { traceparent: `00-${traceId}-${PARENT}-00` })).toBe(200)
  expect(reached.at(-1)?.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
  await ask('/orders/3', { traceparent: `00-${TRACE.replace('4b', '6d')}-${PARENT}-01` })
  await until(async () => of('GET /orders/{id}', TRACE.replace('4b', '6d')) !== undefined)
  expect(spans.filter((span) => span.traceId === traceId)).toEqual([])
})

test('a request to the PDP itself has its span, and its statements are below', async () => {
  const traceId = TRACE.replace('4b', '7e')
  await fetch(`${issuer}/v1/organizations/acme`, { headers: { traceparent: `00-${traceId}-${PARENT}-01` } })
  await until(async () => of(/^GET \/v1\/organizations/, traceId) !== undefined)
  const { access_token: token } = await clientToken({ issuer, ...ADMIN, scope: 'directory:read' })
  const other = TRACE.replace('4b', '8f')
  const headers = { authorization: `Bearer ${token}`, traceparent: `00-${other}-${PARENT}-01` }
  await fetch(`${issuer}/v1/organizations/acme`, { headers })
  await until(async () => of(/^postgresql /, other) !== undefined)
  const request = of(/^GET \/v1\/organizations/, other)
  expect(request).toMatchObject({ service: 'portcullis-pdp', parentSpanId: PARENT })
  expect(of(/^postgresql /, other)?.parentSpanId).toBe(request?.spanId)
})
