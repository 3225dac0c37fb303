/** A sidecar with everything around it: an issuer, a scripted PDP, an upstream, and real sockets between them. */

import { Registry } from 'prom-client'
import { createNonces } from '../../../pdp/shared/token/nonces.ts'
import { processReplayMemory, type ReplayMemory } from '../../../pdp/shared/token/replay.ts'
import { type Certificates, NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import type { SidecarLimits } from '../../../sidecar/route-file/default-limits.ts'
import { parseRouteFile, type RouteFile } from '../../../sidecar/route-file/route-file.ts'
import { createMetrics, type Metrics } from '../../../sidecar/runtime/metrics.ts'
import { createSidecar, type Sidecar } from '../../../sidecar/runtime/sidecar.ts'
import { processMemory, type SignInMemory } from '../../../sidecar/sign-in/memory.ts'
import { shareSessions } from '../../../sidecar/sign-in/refresh.ts'
import { createIssuer, type Issuer, issuerFetch } from '../../support/peers/issuer.ts'
import { type RawAnswer, sendRaw } from '../../support/peers/raw-http.ts'
import { type Script, type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export type Harness = {
  readonly port: number
  readonly sidecar: Sidecar
  readonly issuer: Issuer
  readonly pdp: ScriptedPdp
  readonly upstream: Upstream
  readonly log: object[]
  readonly registry: Registry
  readonly metrics: Metrics
  /** As it was started with, for wherever upstream and PDP are now. */
  file(): RouteFile
  /** Puts another route file into force. */
  apply(routes: string, extra?: string): void
  /** Sends `METHOD target` with Host, the given lines and a body. */
  send(line: string, options?: SendOptions): Promise<RawAnswer>
  close(): Promise<void>
}
export type SendOptions = {
  readonly token?: string | null
  readonly fields?: readonly string[]
  readonly body?: string
  readonly host?: string
}

export const RESOURCE = 'https://app.test'
const ISSUER = 'https://as.test'

export function routeFile(routes: string, options: { readonly extra?: string } = {}): string {
  return `portcullis: v1
resource: ${RESOURCE}
issuers: [{issuer: ${ISSUER}}]
upstream: UPSTREAM
pdp: {address: PDP, insecure: true}
${options.extra ?? ''}
routes:
${routes.replace(/^/gm, '  ')}
`
}

/** Throws with every mistake when the file has one. */
export function loadFile(source: string): RouteFile {
  const { file, issues } = parseRouteFile(source)
  if (file === null)
    throw new Error(issues.map(({ line, column, message }) => `${line}:${column} ${message}`).join('\n'))
  return file
}

/** `routes`: the lines of the file below `routes:`. Waits until the sidecar is ready and can ask. */
export async function startHarness(options: {
  readonly routes: string
  readonly extra?: string
  readonly script?: Script
  readonly limits?: Partial<SidecarLimits>
  readonly clock?: () => number
  readonly replay?: ReplayMemory
  /** Of sessions of browsers, which several sidecars may share. */
  readonly memory?: SignInMemory
  readonly readToken?: (path: string) => string
  readonly certificates?: Certificates
  /** Reads those that the route file names. */
  readonly certificatesOf?: (file: RouteFile) => Certificates
}): Promise<Harness> {
  const clock = options.clock ?? Date.now
  const issuer = await createIssuer({ issuer: ISSUER, audience: RESOURCE, clock })
  const pdp = await startScriptedPdp(options.script ?? tuples([]))
  const upstream = await startUpstream()
  const source = routeFile(options.routes, { ...(options.extra !== undefined && { extra: options.extra }) })
  const fill = (text: string): string => text.replace('UPSTREAM', upstream.origin).replace('PDP', pdp.address)
  const certificatesFor = (file: RouteFile): Certificates =>
    options.certificates ?? options.certificatesOf?.(file) ?? NO_CERTIFICATES
  const first = loadFile(fill(source))
  const log: object[] = []
  const write = (entry: object): void => void log.push(entry)
  const registry = new Registry()
  const metrics = createMetrics(registry)
  const sidecar = createSidecar({
    config: { file: first, certificates: certificatesFor(first), hash: 'first' },
    log: { info: write, warn: write, error: write },
    metrics,
    fetch: issuerFetch([issuer]),
    clock,
    random: () => 0.5,
    replay: options.replay ?? processReplayMemory({ clock, entriesMax: 1_000 }),
    nonces: createNonces({ secret: Buffer.alloc(32, 'n'), clock }),
    sessions: shareSessions(options.memory ?? processMemory({ clock }), { clock, log: { warn: write } }),
    readToken: options.readToken ?? (() => 'service-token'),
    limits: { ...PATIENT, ...options.limits },
  })
  const { port } = await sidecar.listen({ host: '127.0.0.1', port: 0 })
  await until(() => sidecar.notReady() === null)
  await until(() => log.some((entry) => 'event' in entry && entry.event === 'pdp_connected'))

  async function send(
    line: string,
    { token, fields = [], body, host = 'app.test' }: SendOptions = {},
  ): Promise<RawAnswer> {
    const bearer = token === undefined ? await issuer.token() : token
    const lines = [`${line} HTTP/1.1`, `Host: ${host}`, ...fields]
    if (bearer !== null) lines.push(`Authorization: Bearer ${bearer}`)
    if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
    return sendRaw(port, `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`, { head: line.startsWith('HEAD ') })
  }

  return {
    port,
    sidecar,
    issuer,
    pdp,
    upstream,
    log,
    registry,
    metrics,
    send,
    file: () => loadFile(fill(source)),
    apply(routes, extra = options.extra) {
      const file = loadFile(fill(routeFile(routes, { ...(extra !== undefined && { extra }) })))
      sidecar.apply({ file, certificates: certificatesFor(file), hash: 'next' })
    },
    async close() {
      await sidecar.close()
      await pdp.stop()
      await upstream.close()
    },
  }
}

/** All parties share one thread here, so where the wait for the PDP is not what is tested, a busy machine may take its time. */
export const PATIENT = { pdpTimeoutMs: 3_000 }

/** What is promised within a second, on a machine that has more to do. What is not noticed at all takes longer, or for ever. */
export const PROMPT_MS = 4_000
