/** Spans on their way to a collector. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { exportOf, type OpenTracing, openTracing } from '../../../../../pdp/shared/process/tracing/otlp.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

type Collected = { readonly fields: NodeJS.Dict<string | string[]>; readonly path: string; readonly body: string }

async function collect(answer: RequestListener = (_req, res) => res.end('{}')) {
  const requests: Collected[] = []
  const server: Server = createServer((req, res) => {
    let body = ''
    req.setEncoding('utf8').on('data', (piece: string) => {
      body += piece
    })
    req.on('end', () => {
      requests.push({ fields: req.headers, path: req.url ?? '', body })
      answer(req, res)
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const warnings: object[] = []
  const tracing: OpenTracing = openTracing(
    {
      url: `http://127.0.0.1:${port}/v1/traces`,
      headers: { authorization: 'Bearer collector' },
      timeoutMs: 500,
      sampler: { ratio: 1, parentBased: true },
      resource: { 'service.name': 'test' },
    },
    { log: { warn: (line: object) => void warnings.push(line) } as never },
  )
  closers.push(() => tracing.close())
  return { tracing, requests, warnings }
}

const namesIn = ({ body }: Collected): readonly string[] =>
  JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.map(({ name }: { name: string }) => name)

test('a span has the form of OTLP: hexadecimal ids, numbers of 64 bits as text', () => {
  const span = {
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    parentId: '',
    name: 'GET /',
    kind: 'server',
    startMs: 1_700_000_000_000.25,
    endMs: 1_700_000_000_001,
    attributes: { text: 'a', whole: 200, part: 0.5, yes: true },
    error: 'lost',
  } as const
  expect(exportOf([span, { ...span, parentId: 'b7ad6b7169203331', error: null }], { 'service.name': 'x' })).toEqual({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'x' } }] },
        scopeSpans: [
          {
            scope: { name: 'portcullis' },
            spans: [
              {
                traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
                spanId: '00f067aa0ba902b7',
                name: 'GET /',
                kind: 2,
                startTimeUnixNano: '1700000000000250000',
                endTimeUnixNano: '1700000000001000000',
                attributes: [
                  { key: 'text', value: { stringValue: 'a' } },
                  { key: 'whole', value: { intValue: '200' } },
                  { key: 'part', value: { doubleValue: 0.5 } },
                  { key: 'yes', value: { boolValue: true } },
                ],
                status: { code: 2, message: 'lost' },
              },
              expect.not.objectContaining({ status: expect.anything() }),
            ],
          },
        ],
      },
    ],
  })
})

test('spans arrive in batches, with the fields that the collector asks for, and the last ones at the end', async () => {
  const { tracing, requests } = await collect()
  for (let at = 0; at < 513; at += 1) tracing.begin(`span ${at}`, 'server', null).end()
  await tracing.close()
  expect(requests.map(({ path, fields }) => [path, fields.authorization, fields['content-type']])).toEqual([
    ['/v1/traces', 'Bearer collector', 'application/json'],
    ['/v1/traces', 'Bearer collector', 'application/json'],
  ])
  expect(requests.flatMap(namesIn)).toEqual(Array.from({ length: 513 }, (_, at) => `span ${at}`))
})

test.each<[string, RequestListener]>([
  ['refuses', (_req, res) => void res.writeHead(400).end('no')],
  ['is overloaded', (_req, res) => void res.writeHead(503).end()],
  ['redirects', (_req, res) => void res.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()],
  ['does not answer', () => undefined],
  ['hangs up', (req) => void req.socket.destroy()],
])('a collector that %s costs the spans and one line, which says how many', async (_what, answer) => {
  const { tracing, warnings } = await collect(answer)
  for (let at = 0; at < 3; at += 1) tracing.begin('lost', 'server', null).end()
  await tracing.close()
  expect(warnings).toEqual([{ event: 'spans_dropped', count: 3, reason: expect.any(String) }])
})

test('what waits for a slow collector is bounded', async () => {
  const { tracing, requests, warnings } = await collect(() => undefined)
  for (let at = 0; at < 6_000; at += 1) tracing.begin('many', 'server', null).end()
  await tracing.close()
  expect(requests.flatMap(namesIn).length).toBeLessThanOrEqual(1_024)
  const counts = warnings.map((line) => ('count' in line ? Number(line.count) : 0))
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6_000)
})
