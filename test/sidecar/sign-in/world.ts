/** Sidecars that sign browsers in, at issuers on loopback, and browsers that are as strict or as lax as a test needs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { createNonces } from '../../../pdp/shared/token/nonces.ts'
import { processReplayMemory } from '../../../pdp/shared/token/replay.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import type { RouteFile } from '../../../sidecar/route-file/route-file.ts'
import { createKeyFetch } from '../../../sidecar/runtime/key-fetch.ts'
import { createMetrics } from '../../../sidecar/runtime/metrics.ts'
import { createSidecar } from '../../../sidecar/runtime/sidecar.ts'
import { processMemory, type SignInMemory } from '../../../sidecar/sign-in/memory.ts'
import { shareSessions } from '../../../sidecar/sign-in/refresh.ts'
import { freePort } from '../../support/free-port.ts'
import { type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import { type Script, type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { loadFile, PATIENT } from '../support/harness.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { type ScriptedIssuer, startIssuer } from './scripted-issuer.ts'

export const KEYS = ['k'.repeat(40), 'o'.repeat(40)] as const
export const SESSION = '__Host-portcullis-session'
const RESOURCE = 'https://app.test'
const ROUTES = `GET /public: public
GET /docs/{id}: viewer doc:{id}
POST /docs/{id}: viewer doc:{id}
GET /api/{id}: {check: "viewer doc:{id}", sign_in: false}
GET /strong: {check: "viewer doc:1", step_up: {acr_values: [mfa]}}
GET /paid: entitlement feature.docs
GET /socket: {check: "viewer doc:1", upgrade: [websocket]}`

export type Fields = readonly string[]
export type World = {
  readonly ports: readonly number[]
  readonly origin: string
  readonly issuers: readonly [ScriptedIssuer, ...ScriptedIssuer[]]
  readonly pdp: ScriptedPdp
  readonly upstream: Upstream
  readonly log: object[]
  /** By issuer number, step and outcome, over all replicas. */
  steps(): Promise<{ readonly [step: string]: number }>
  browser(options?: BrowserOptions): TestBrowser
  send(line: string, fields?: Fields, options?: { readonly port?: number; readonly body?: string }): Promise<RawAnswer>
  /** Puts other keys into force, on all replicas. */
  useKeys(...keys: readonly string[]): Promise<void>
  close(): Promise<void>
}
export type BrowserOptions = {
  /** False: it drops every cookie. A function: it keeps those. */
  readonly keeps?: (name: string) => boolean
}
export type TestBrowser = {
  readonly jar: Map<string, string>
  /** One request as a person's click makes it. */
  visit(path: string, fields?: Fields, port?: number): Promise<RawAnswer>
  /** Follows redirects, through the issuer and back, as a browser does. */
  open(path: string, port?: number): Promise<RawAnswer & { readonly hops: number }>
  /** A request of a page's own script. */
  fetch(line: string, fields?: Fields, options?: { readonly port?: number; readonly body?: string }): Promise<RawAnswer>
}

export const NAVIGATE = ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document', 'Accept: text/html']
const SCRIPT = [
  'Sec-Fetch-Mode: cors',
  'Sec-Fetch-Dest: empty',
  'Sec-Fetch-Site: same-origin',
  'Accept: application/json',
]
const HOPS_MAX = 12

export async function openWorld(
  options: {
    readonly routes?: string
    readonly extra?: string
    readonly providers?: number
    readonly replicas?: number
    readonly memory?: () => SignInMemory | Promise<SignInMemory>
    readonly clock?: () => number
    readonly script?: Script
    readonly settings?: string
    /** Further members of each of `issuers`. */
    readonly issuer?: (url: string) => string
    readonly keys?: readonly string[]
    readonly resource?: string
    /** Another one takes the place of `issuers`. */
    readonly issuerUrl?: string
    /** Starts the gateway that browsers meet at this port; the data port is then another one. */
    readonly front?: (file: RouteFile, port: number) => Promise<{ stop(): Promise<void> }>
  } = {},
): Promise<World> {
  const { providers = 1, replicas = 1, clock = Date.now, resource = RESOURCE } = options
  const issuers = await Promise.all(Array.from({ length: providers }, () => startIssuer({ audience: resource, clock })))
  const [first, ...others] = issuers
  if (first === undefined) throw new Error('a world needs an issuer')
  const pdp = await startScriptedPdp(options.script ?? tuples(['alice viewer doc:1']))
  const upstream = await startUpstream()
  const directory = await mkdtemp(join(tmpdir(), 'portcullis-sign-in-'))
  const keysFile = join(directory, 'keys')
  await writeFile(keysFile, (options.keys ?? KEYS).join('\n'))
  const publicPort = await freePort()
  const origin = `http://127.0.0.1:${publicPort}`
  const named = providers > 1
  const urls = options.issuerUrl === undefined ? issuers.map(({ url }) => url) : [options.issuerUrl]
  const list = urls.map(
    (url, at) => `{issuer: "${url}", client_id: web${named ? `, name: idp${at}, label: Provider ${at}` : ''}}`,
  )
  const source = `portcullis: v1
resource: ${resource}
public_url: ${origin}
hosts: [127.0.0.1, other.test]
issuers: [${urls.map((url) => `{issuer: "${url}"${options.issuer?.(url) ?? ''}}`).join(', ')}]
upstream: ${upstream.origin}
pdp: {address: "${pdp.address}", insecure: true}
sign_in: {keys_file: "${keysFile}", providers: [${list.join(', ')}]${options.settings ?? ''}}
${options.extra ?? ''}
routes:
${(options.routes ?? ROUTES).replace(/^/gm, '  ')}
`
  const log: object[] = []
  const write = (entry: object): void => void log.push(entry)
  const memories: SignInMemory[] = []
  const registry = new Registry()
  const metrics = createMetrics(registry)

  async function start(): Promise<ReturnType<typeof createSidecar>> {
    const file = loadFile(source)
    const memory = await (options.memory?.() ?? processMemory({ clock }))
    memories.push(memory)
    return createSidecar({
      config: { file, certificates: readCertificates(file), hash: 'first' },
      log: { info: write, warn: write, error: write },
      metrics,
      fetch: createKeyFetch({}),
      clock,
      random: () => 0.5,
      replay: processReplayMemory({ clock, entriesMax: 1_000 }),
      nonces: createNonces({ secret: Buffer.alloc(32, 'n'), clock }),
      sessions: shareSessions(memory, { clock, log: { warn: write } }),
      readToken: () => 'service-token',
      limits: PATIENT,
    })
  }
  const sidecars = await Promise.all(Array.from({ length: replicas }, start))
  const ports: number[] = []
  for (const sidecar of sidecars) await sidecar.openDoors()
  for (const [at, sidecar] of sidecars.entries())
    ports.push((await sidecar.listen({ host: '127.0.0.1', port: at === 0 && !options.front ? publicPort : 0 })).port)
  await until(() => sidecars.every((sidecar) => sidecar.notReady() === null))
  const front = await options.front?.(loadFile(source), publicPort)

  const send: World['send'] = (line, fields = [], { port = publicPort, body } = {}) => {
    const host = fields.some((text) => /^host:/i.test(text)) ? [] : [`Host: 127.0.0.1:${publicPort}`]
    const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
    const head = [`${line} HTTP/1.1`, ...host, ...fields, ...length].join('\r\n')
    const bytes = Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), Buffer.from(body ?? '')])
    return sendRaw(port, bytes, { head: line.startsWith('HEAD ') })
  }

  return {
    ports,
    origin,
    issuers: [first, ...others],
    pdp,
    upstream,
    log,
    async steps() {
      const found = await registry.getSingleMetric('portcullis_sidecar_sign_in_steps_total')?.get()
      return Object.fromEntries(
        (found?.values ?? []).map(({ labels: { issuer, step, outcome }, value }) => [
          `${issuers.findIndex(({ url }) => url === issuer)} ${step} ${outcome}`,
          value,
        ]),
      )
    },
    send,
    browser: (how) => createTestBrowser({ origin, send }, how),
    async useKeys(...keys) {
      await writeFile(keysFile, keys.join('\n'))
      const file = loadFile(source)
      for (const sidecar of sidecars) sidecar.apply({ file, certificates: readCertificates(file), hash: 'next' })
    },
    async close() {
      await front?.stop()
      for (const sidecar of sidecars) await sidecar.close()
      for (const memory of memories) memory.close()
      await Promise.all([pdp.stop(), upstream.close(), ...issuers.map((issuer) => issuer.close())])
      await rm(directory, { recursive: true })
    },
  }
}

export const locationOf = ({ fields }: RawAnswer): string =>
  fields.find(([name]) => name.toLowerCase() === 'location')?.[1] ?? ''
export const cookieLines = ({ fields }: RawAnswer): readonly string[] =>
  fields.filter(([name]) => name.toLowerCase() === 'set-cookie').map(([, value]) => value)

function createTestBrowser(
  { origin, send }: Pick<World, 'origin' | 'send'>,
  { keeps = () => true }: BrowserOptions = {},
): TestBrowser {
  const jar = new Map<string, string>()

  function keep(answer: RawAnswer): RawAnswer {
    for (const line of cookieLines(answer)) {
      const [pair = ''] = line.split(';', 1)
      const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
      if (/Max-Age=0/i.test(line)) jar.delete(name)
      else if (keeps(name)) jar.set(name, value)
    }
    return answer
  }
  const cookies = (): Fields =>
    jar.size === 0 ? [] : [`Cookie: ${[...jar].map(([name, value]) => `${name}=${value}`).join('; ')}`]
  const visit: TestBrowser['visit'] = async (path, fields = NAVIGATE, port = undefined) =>
    keep(await send(`GET ${path}`, [...fields, ...cookies()], port === undefined ? {} : { port }))

  return {
    jar,
    visit,
    async open(path, port) {
      let answer = await visit(path, NAVIGATE, port)
      for (let hops = 1; hops <= HOPS_MAX; hops += 1) {
        if (answer.status !== 302 && answer.status !== 303) return { ...answer, hops }
        let location = locationOf(answer)
        while (!location.startsWith(`${origin}/`)) {
          const away = await fetch(location, { redirect: 'manual' })
          location = away.headers.get('location') ?? ''
          if (location === '') return { ...answer, status: away.status, hops }
        }
        answer = await visit(location.slice(origin.length), NAVIGATE, port)
      }
      throw new Error('the redirects do not end')
    },
    fetch: async (line, fields = [], how = {}) => keep(await send(line, [...SCRIPT, ...fields, ...cookies()], how)),
  }
}
