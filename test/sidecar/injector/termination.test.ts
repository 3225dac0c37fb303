/** The end of a Pod under load, in the order in which a kubelet ends its containers: no request may be lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request, type Server } from 'node:http'
import { connect, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listAt, objectAt } from '../../../sidecar/injector/pod/json.ts'
import { buildSidecars } from '../../../sidecar/injector/pod/sidecar-container.ts'
import { LONG } from '../../support/effort.ts'
import { PROGRAM_ENV } from '../../support/programs/environment.ts'
import { until } from '../../support/until.ts'
import { routeFile } from '../support/harness.ts'
import { CONFIG } from './pod/pods.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-end-'))
const running: ChildProcess[] = []
/** Another Pod of the same Service, which stays. */
let other: { readonly app: Server; readonly port: number }
beforeAll(async () => {
  const app = await startApp()
  other = { app: app.server, port: (await startSidecar('other', app.port)).port }
})
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  other.app.close()
  rmSync(folder, { recursive: true, force: true })
})

const CLIENTS = 12
/** Until nobody is sent to a Pod any more that has begun to end. */
const ENDPOINTS_MS = 1_500
/** The app ends so long after the sidecar's hook, whose process takes its time to begin on a busy machine. */
const APP_LATER_MS = 3_000
/** Where nobody tells the sidecar: as long as the hook would take. */
const UNTOLD_MS = 5_000
/** Longer than its slowest answer. */
const APP_DRAIN_MS = 4_000
const [SIDECAR] = buildSidecars({ ports: ['http'], secrets: null }, CONFIG)

/** Every fifth answer takes a second and a half. */
async function startApp(): Promise<{ server: Server; port: number }> {
  let count = 0
  const server = createServer((req, res) => {
    count += 1
    const ms = count % 5 === 0 ? 1_500 : 10
    req.resume().on('end', () => setTimeout(() => res.end('done'), ms))
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

/** As SIGTERM ends an app that ends well: what is under way is answered, and connections that go on are cut. */
async function endApp(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const cut = setTimeout(() => server.closeAllConnections(), APP_DRAIN_MS)
  await closed
  clearTimeout(cut)
}

type SidecarProcess = {
  readonly child: ChildProcess
  readonly port: number
  readonly preStop: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

/** The injected container: its arguments and environment, on a free port. */
async function startSidecar(name: string, appPort: number): Promise<SidecarProcess> {
  const path = join(folder, `${name}.yaml`)
  const routes = routeFile('GET /**: public\nPOST /**: public')
    .replace('UPSTREAM', `http://127.0.0.1:${appPort}`)
    .replace('PDP', '127.0.0.1:9')
  writeFileSync(path, routes)
  const container = SIDECAR?.container ?? {}
  const env: NodeJS.ProcessEnv = { ...PROGRAM_ENV }
  for (const item of listAt(container.env, 'env')) {
    const { name: variable, value } = objectAt(item, 'env')
    env[String(variable)] = String(value).replace('/run/portcullis', join(folder, name))
  }
  env.PORTCULLIS_SIDECAR_CONTROL = join(folder, `${name}.sock`)
  const words = ['sidecar/main.ts', 'run', `--file=${path}`, '--listen=127.0.0.1:0', '--admin-listen=127.0.0.1:0']
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  running.push(child)
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await until(() => output.includes('"listening"'))
  const line = output.split('\n').find((text) => text.includes('"listening"')) ?? '{}'
  const hook = objectAt(objectAt(objectAt(container.lifecycle, 'lifecycle').preStop, 'preStop').exec, 'exec')
  const [, , ...preStop] = listAt(hook.command, 'command').map(String)
  return { child, port: Number(JSON.parse(line).data.split(':').at(-1)), preStop, env }
}

type Load = { readonly failures: string[]; readonly counts: Map<number, number>; stop(): Promise<void> }

type Sent = { readonly failure: string | null; readonly closes: boolean }
/** A connection that is kept until an answer ends it. */
type Connection = { send(method: string): Promise<Sent>; close(): void }

/** Clients, every third over HTTP/2, that keep their connection as long as they may, and then take any endpoint that there is. */
function startLoad(endpoints: () => readonly number[]): Load {
  const failures: string[] = []
  const counts = new Map<number, number>()
  let over = false
  const client = async (at: number): Promise<void> => {
    let turn = at
    let sent = at
    const connect = at % 3 === 2 ? openHttp2 : openHttp1
    // Every other one goes back to where it was, as long as it is an endpoint.
    const stays = at % 2 === 0
    const pick = (last: number): { port: number; connection: Connection } => {
      const port = stays && endpoints().includes(last) ? last : (endpoints()[turn++ % endpoints().length] ?? 0)
      return { port, connection: connect(port) }
    }
    let { port, connection } = pick(0)
    while (!over) {
      const { failure, closes } = await connection.send(sent++ % 2 === 0 ? 'POST' : 'GET')
      counts.set(port, (counts.get(port) ?? 0) + 1)
      if (failure !== null) failures.push(failure)
      if (failure !== null || closes) {
        connection.close()
        ;({ port, connection } = pick(port))
      }
      await delay(5)
    }
    connection.close()
  }
  const clients = Array.from({ length: CLIENTS }, (_, at) => client(at))
  return {
    failures,
    counts,
    async stop() {
      over = true
      await Promise.all(clients)
    },
  }
}

function openHttp1(port: number): Connection {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    close: () => agent.destroy(),
    send(method) {
      const { promise, resolve } = Promise.withResolvers<Sent>()
      const fail = (err: Error): void => resolve({ failure: `${method}: ${err.message}`, closes: true })
      const req = request({ host: '127.0.0.1', port, agent, method, headers: { host: 'app.test' } }, (res) => {
        const closes = res.headers.connection === 'close'
        res.on('error', fail).resume()
        res.on('end', () => resolve({ failure: failureOf(method, res.statusCode), closes }))
      })
      req.on('error', fail)
      req.end(method === 'POST' ? 'body' : undefined)
      return promise
    },
  }
}

function openHttp2(port: number): Connection {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  return {
    close: () => session.close(),
    send(method) {
      const { promise, resolve } = Promise.withResolvers<Sent>()
      if (session.closed || session.destroyed) return Promise.resolve({ failure: null, closes: true })
      const stream = session.request({ ':method': method, ':path': '/x', ':authority': 'app.test' })
      let status: number | undefined
      stream.on('response', (fields) => {
        status = fields[':status']
      })
      // RFC 9113 section 8.7: a stream past GOAWAY was not looked at, and is sent again elsewhere.
      stream.on('error', (err) =>
        resolve({
          failure: stream.rstCode === NGHTTP2_REFUSED_STREAM ? null : `${method}: ${err.message}`,
          closes: true,
        }),
      )
      stream.resume().on('end', () => resolve({ failure: failureOf(method, status), closes: session.closed }))
      stream.end(method === 'POST' ? 'body' : undefined)
      return promise
    },
  }
}

const { NGHTTP2_REFUSED_STREAM } = constants
const failureOf = (method: string, status: number | undefined): string | null =>
  status === 200 ? null : `${method}: ${status}`

const exitOf = async (child: ChildProcess): Promise<number | null> => {
  if (child.exitCode === null) await once(child, 'exit')
  return child.exitCode
}

/** `told`: false leaves out what the sidecar's hook says, and waits as long. */
async function endPod(name: string, { native, told }: { native: boolean; told: boolean }) {
  const app = await startApp()
  const sidecar = await startSidecar(name, app.port)
  let endpoints = [sidecar.port, other.port]
  const load = startLoad(() => endpoints)
  await until(() => (load.counts.get(sidecar.port) ?? 0) > 50)
  const before = load.counts.get(sidecar.port) ?? 0

  setTimeout(() => {
    endpoints = [other.port]
  }, ENDPOINTS_MS)
  // Hooks of all containers run at once. SIGTERM follows, for a native sidecar when the other containers have ended.
  const hook = told ? spawn(process.execPath, ['sidecar/main.ts', ...sidecar.preStop], { env: sidecar.env }) : null
  const hooked = hook === null ? delay(UNTOLD_MS) : exitOf(hook)
  const appEnded = hooked.then(() => delay(APP_LATER_MS)).then(() => endApp(app.server))
  await (native ? Promise.all([hooked, appEnded]) : hooked)
  sidecar.child.kill('SIGTERM')
  const status = await exitOf(sidecar.child)
  await appEnded
  await load.stop()
  return { status, hook: await hooked, failures: load.failures, during: (load.counts.get(sidecar.port) ?? 0) - before }
}

describe.runIf(LONG).concurrent('a Pod that ends under load', () => {
  test.each([
    ['a native sidecar', true],
    ['an ordinary container', false],
  ])(
    'with its sidecar as %s loses no request',
    async (_what, native) => {
      const { status, hook, failures, during } = await endPod(native ? 'native' : 'ordinary', { native, told: true })
      expect(failures).toEqual([])
      expect([status, hook]).toEqual([0, 0])
      // While it ended it did serve.
      expect(during).toBeGreaterThan(5)
    },
    60_000,
  )

  test('loses some when nobody tells its sidecar: what this test would not miss', async () => {
    const { failures } = await endPod('untold', { native: true, told: false })
    expect(failures.length).toBeGreaterThan(0)
  }, 60_000)
})
