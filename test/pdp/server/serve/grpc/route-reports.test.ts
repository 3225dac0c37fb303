/** Reports of routes over real gRPC: bounded, of authenticated callers only, and never in the way of the server or of decisions. */
import { EventEmitter } from 'node:events'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createRouteReports,
  type ReportCall,
  type RouteReports,
} from '../../../../../pdp/server/serve/grpc/route-reports.ts'
import { startGrpcServer } from '../../../../../pdp/server/serve/grpc/server.ts'
import { RequestProblem } from '../../../../../pdp/server/serve/http/status.ts'
import { serviceDefinition } from '../../../../../pdp/shared/process/grpc/service.ts'
import {
  type ReportRequest,
  ReportRequestSchema,
  type ReportResponse,
  RouteService,
} from '../../../../../proto/gen/portcullis/v1/routes_pb.ts'
import { createRouteReports as createSidecarReports } from '../../../../../sidecar/pdp-client/route-reports.ts'
import { parseRouteFile } from '../../../../../sidecar/route-file/route-file.ts'
import { createReportedRoutes } from '../../../../../sidecar/runtime/reported-routes.ts'

const { path, requestSerialize, responseDeserialize } = serviceDefinition(RouteService).report
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(options: { readonly routes?: RouteReports | null; readonly refuse?: boolean } = {}) {
  const routes = options.routes === undefined ? createRouteReports({ clock: () => 7 }) : options.routes
  const server = await startGrpcServer(
    {
      recognize: async () => ({ active: false }),
      answer: () => Promise.reject(new Error()),
      watched: { ask: () => () => undefined, close: async () => undefined },
      authenticate: async () => {
        if (options.refuse === true) throw new RequestProblem('token_invalid', 'no')
        return { name: 'client a', group: null }
      },
      tls: null,
      log: undefined as never,
      routes,
    },
    { host: '127.0.0.1', port: 0 },
  )
  closers.push(() => server.close())
  const client = new Client(server.address, credentials.createInsecure())
  closers.push(() => client.close())
  return { server, client, routes: routes ?? createRouteReports({ clock: () => 7 }) }
}

type Call = ClientDuplexStream<ReportRequest, ReportResponse> & { readonly ended: Promise<number> }
function report(client: Client): Call & { say(message: MessageInitShape<typeof ReportRequestSchema>): void } {
  const call: ClientDuplexStream<ReportRequest, ReportResponse> = client.makeBidiStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    new Metadata(),
  )
  const { promise: ended, resolve } = Promise.withResolvers<number>()
  call.on('error', (err: ServiceError) => resolve(err.code))
  call.on('end', () => resolve(status.OK))
  call.resume()
  return Object.assign(call, {
    ended,
    say: (message: MessageInitShape<typeof ReportRequestSchema>) =>
      void call.write(create(ReportRequestSchema, message)),
  })
}
const routesOf = (count: number, text = 'viewer doc:{id}') =>
  Array.from({ length: count }, (_, i) => ({ id: `GET /${i}`, check: text, shadow: false }))
const shown = (routes: RouteReports) =>
  routes.all().map((one) => ({ name: one.name, count: one.routes.length, leftOut: one.leftOut }))

function loaded(route: string) {
  const { file, issues } = parseRouteFile(`portcullis: v1
resource: https://docs.example
issuers: [{issuer: https://id.example}]
upstream: http://127.0.0.1:1
pdp: {address: "127.0.0.1:1", insecure: true}
routes:
  ${route}
`)
  if (file === null) throw new Error(JSON.stringify(issues))
  return { file, hash: 'h' }
}

describe('a report', () => {
  test('says which of its routes and tests are left to the check of the route file', async () => {
    const routes = Array.from({ length: 201 }, (_, i) => `GET /r${i}: public`).join('\n  ')
    const tests = Array.from({ length: 501 }, () => '  - {request: GET /r1, expect: {route: GET /r1}}').join('\n')
    const { tests: run, warnings } = await createReportedRoutes(loaded(`${routes}\ntests:\n${tests}`)).table()
    expect(run).toBe(0)
    expect(warnings.slice(0, 2)).toEqual([
      'its 201 routes are more than the 200 that are compared here: portcullis-sidecar check compares them',
      'its 501 tests are more than the 500 that are run here: portcullis-sidecar check runs them',
    ])
  })

  test('is shown while its stream is open, and no longer', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    expect(routes.all()).toEqual([])
    call.say({ table: { name: 'pod-1', resource: 'r', fileHash: 'h', routes: routesOf(2), warnings: ['w'] } })
    call.say({ counts: [{ route: 1, requests: 3, denied: 2, shadowed: 1 }] })
    await expect.poll(() => routes.all()[0]?.routes[1]).toMatchObject({ requests: 3, denied: 2, shadowed: 1 })
    expect(routes.all()[0]).toMatchObject({ name: 'pod-1', caller: 'this machine', connectedMs: 7, warnings: ['w'] })
    call.cancel()
    await expect.poll(() => routes.all()).toEqual([])
  })

  test.each([
    ['service account shop/api', 'shop/pod-1/7'],
    ['client a', 'pod-1/7'],
    ['certificate 00:11', 'pod-1/7'],
  ])('of %s is shown as %s', (caller, name) => {
    const routes = createRouteReports({ clock: () => 7 })
    const call = Object.assign(new EventEmitter(), { write: () => true, end: () => call, writableNeedDrain: false })
    routes.serve(call as unknown as ReportCall, { name: caller, group: null })
    call.emit('data', create(ReportRequestSchema, { table: { name: 'pod-1/7', routes: [] } }))
    expect(routes.all()[0]?.name).toBe(name)
  })

  test('ends with its stream when the sidecar has said everything', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say({ table: { name: 'done', routes: [] } })
    await expect.poll(() => routes.all().length).toBe(1)
    call.end()
    expect(await call.ended).toBe(status.OK)
    expect(routes.all()).toEqual([])
  })

  test('of a second table takes the place of the first, with its counts', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say({ table: { name: 'a', routes: routesOf(3) }, counts: [{ route: 0, requests: 9 }] })
    call.say({ table: { name: 'b', routes: routesOf(1) } })
    await expect.poll(() => shown(routes)).toEqual([{ name: 'b', count: 1, leftOut: 0 }])
    expect(routes.all()[0]?.routes[0]?.requests).toBe(0)
  })

  test('keeps 2,000 routes and the beginning of each text, and says what is missing', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say({ table: { name: 'n'.repeat(5_000), routes: routesOf(2_001), leftOut: 5 } })
    await expect.poll(() => routes.all()[0]?.leftOut).toBe(6)
    expect(routes.all()[0]?.routes.length).toBe(2_000)
    expect(routes.all()[0]?.name.length).toBe(2_048)
  })

  test('of a caller that already holds much is shown without its routes', async () => {
    const { client, routes } = await serve()
    const large = { name: 'large', routes: routesOf(400, 'x'.repeat(2_048)) }
    for (let i = 0; i < 12; i++) report(client).say({ table: large })
    await expect.poll(() => routes.all().length).toBe(12)
    expect(shown(routes).filter(({ count }) => count === 400).length).toBeLessThan(11)
    expect(shown(routes).filter(({ count, leftOut }) => count === 0 && leftOut === 400).length).toBeGreaterThan(0)
  })

  test.each([
    ['counts before a table', { counts: [{ route: 0, requests: 1 }] }],
    ['a count of a route that there is not', { table: { name: 'a', routes: [] }, counts: [{ route: 7, requests: 1 }] }],
    ['the result of a trial that nobody asked for', { tried: { trial: 1, route: 'GET /' } }],
  ])('with %s changes nothing', async (_, message) => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say(message)
    call.say({ table: { name: 'then', routes: routesOf(1) } })
    await expect.poll(() => shown(routes)).toEqual([{ name: 'then', count: 1, leftOut: 0 }])
  })

  test('larger than a message may be ends its stream', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say({ table: { name: 'a', routes: routesOf(1_000, 'x'.repeat(2_000)) } })
    expect(await call.ended).toBe(status.RESOURCE_EXHAUSTED)
    expect(routes.all()).toEqual([])
  })

  test('is not taken where nobody would look at it', async () => {
    const { client } = await serve({ routes: null })
    expect(await report(client).ended).toBe(status.UNIMPLEMENTED)
  })

  test('does not keep the server from closing', async () => {
    const { client, server } = await serve()
    const call = report(client)
    call.say({ table: { name: 'a', routes: [] } })
    await server.close()
    expect(await call.ended).toBeTypeOf('number')
  })
})

describe('a trial', () => {
  const TRIAL = { method: 'GET', target: '/1', claims: '' }

  test('that the sidecar does not answer comes to nothing, and so does one too many', async () => {
    const { client, routes } = await serve()
    report(client).say({ table: { name: 'silent', routes: [] } })
    await expect.poll(() => routes.all().length).toBe(1)
    const tried = Array.from({ length: 17 }, () => routes.all()[0]?.try(TRIAL))
    expect(await tried.at(-1)).toBeNull()
    expect(await Promise.all(tried)).toEqual(tried.map(() => null))
  })

  test('ends with its sidecar', async () => {
    const { client, routes } = await serve()
    const call = report(client)
    call.say({ table: { name: 'leaving', routes: [] } })
    await expect.poll(() => routes.all().length).toBe(1)
    const trying = routes.all()[0]?.try(TRIAL)
    call.cancel()
    expect(await trying).toBeNull()
  })
})

test('a sidecar reports what it enforces, tries requests by its own code, and reports again after a reload', async () => {
  const { client, routes } = await serve()
  const source = createReportedRoutes(loaded('GET /docs/{id}: viewer doc:{id}'))
  const reports = createSidecarReports(source)
  closers.push(reports.close)
  closers.push(reports.open(client, new Metadata()))
  await expect.poll(() => routes.all()[0]?.routes[0]?.check).toBe('viewer doc:{id}')
  const [sidecar] = routes.all()
  const claims = '{"sub":"alice"}'
  expect(await sidecar?.try({ method: 'GET', target: '/docs/7', claims })).toEqual({
    route: 'GET /docs/{id}',
    parameters: ['id=7'],
    asks: ['viewer doc:7'],
    denial: '',
  })
  for (const [target, given, denial] of [
    ['/docs/7', '', /^401 token_missing/],
    ['/docs/7', '[]', /not a JSON object/],
    ['/docs/7', '{', /not a JSON object/],
    ['/docs/../7', claims, /^400 /],
    ['/docs/7 HTTP/1.1\r\nX: y', claims, /^400 /],
    ['/else', claims, /^404 /],
  ] as const)
    expect((await sidecar?.try({ method: 'GET', target, claims: given }))?.denial).toMatch(denial)
  source.show(loaded('GET /docs/{id}: {any: ["editor doc:{id}", scope docs, entitlement feature.x]}'))
  reports.changed()
  await expect
    .poll(() => routes.all()[0]?.routes[0]?.check)
    .toBe('any: editor doc:{id}, scope docs, entitlement feature.x')
})
