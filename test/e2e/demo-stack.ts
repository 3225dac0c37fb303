/** Everything that the demo runs: the PDP with its embedded PostgreSQL, the invoices API, and the sidecar between. */
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { PdpConfig } from '../../pdp/server/runtime/config.ts'
import { type RunningPdp, startPdp } from '../../pdp/server/runtime/start.ts'
import { StartError } from '../../pdp/shared/process/exit.ts'
import { formatAddress } from '../../pdp/shared/process/listen.ts'
import { createLog, type Log } from '../../pdp/shared/process/log.ts'
import { createShutdown, type Shutdown } from '../../pdp/shared/process/shutdown.ts'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { freePort, isFree } from '../support/free-port.ts'
import { type InvoicesApi, startInvoicesApi } from './invoices-api.ts'
import { pdpSettings } from './pdp-settings.ts'

/** What tokens for the invoices API name as their audience. */
export const RESOURCE = 'https://invoices.demo.example'
const LOOPBACK = '127.0.0.1'
const READY_TIMEOUT_MS = 120_000
const CLOSE_TIMEOUT_MS = 20_000

export type DemoStack = {
  readonly issuer: string
  readonly sidecarUrl: string
  readonly adminSecret: string
  readonly api: InvoicesApi
  stopPdp(): Promise<void>
  startPdp(): Promise<void>
}
export type DemoPorts = {
  readonly http: number
  readonly grpc: number
  readonly metrics: number
  readonly sidecar: number
}

export function routeFile(at: {
  readonly issuer: string
  readonly upstream: string
  readonly grpc: string
  readonly sidecar: string
}): string {
  return `portcullis: v1
resource: ${RESOURCE}
public_url: ${at.sidecar}
issuers: [{issuer: "${at.issuer}"}]
upstream: ${at.upstream}
pdp: {address: "${at.grpc}", insecure: true}
routes:
  GET /public/**: public
  GET /invoices/{id}: viewer invoice:{id}
  PUT /invoices/{id}: editor invoice:{id}
  GET /invoices/{id}/export: {all: ["viewer invoice:{id}", entitlement feature.export]}
`
}

/** Adds every part to `shutdown` as it comes up. Throws StartError for what an operator can mend. */
export async function startStack(options: {
  dataDirectory: string
  ports: DemoPorts
  shutdown: Shutdown
  /** Where everything listens. */
  host?: string
  /** Instead of an embedded PostgreSQL. */
  databaseUrl?: string
}): Promise<DemoStack> {
  const { dataDirectory, ports, shutdown, host = LOOPBACK, databaseUrl = null } = options
  const at = (port: number): string => formatAddress({ host, port })
  mkdirSync(dataDirectory, { recursive: true })
  const destination = createWriteStream(join(dataDirectory, 'demo.log'))
  const log = createLog({ service: 'demo', level: 'info', destination })
  const issuer = `http://${at(ports.http)}`
  const settings = pdpSettings({ issuer, adminSecret: null, host, ports, databaseUrl, dataDirectory })
  const shown = { console: true, decisionsKept: 10_000 }
  const config: PdpConfig = {
    ...settings,
    ...shown,
    masterKey: null,
    nextMasterKey: null,
    embedEntitlements: 'claims-mode',
  }
  const start = (): Promise<RunningPdp> =>
    startPdp(config, { log, shutdown: createShutdown({ log, timeoutMs: CLOSE_TIMEOUT_MS }) })
  let pdp: RunningPdp | null = await start()
  const stopPdp = async (): Promise<void> => {
    const running = pdp
    pdp = null
    await running?.close()
  }
  shutdown.add('pdp', stopPdp)
  const { adminSecret, grpcAddress } = pdp
  const api = await startInvoicesApi(host)
  shutdown.add('invoices API', api.close)
  const sidecarUrl = `http://${at(ports.sidecar)}`
  const path = join(dataDirectory, 'routes.yaml')
  writeFileSync(path, routeFile({ issuer: config.issuer, upstream: api.url, grpc: grpcAddress, sidecar: sidecarUrl }))
  await startDemoSidecar({ path, listen: at(ports.sidecar), adminListen: at(await freePort()), log, shutdown })
  return {
    issuer: config.issuer,
    sidecarUrl,
    adminSecret,
    api,
    stopPdp,
    async startPdp() {
      pdp = await start()
    },
  }
}

/** As an operator starts it: a route file, and where to listen. */
export async function startDemoSidecar(options: {
  path: string
  listen: string
  adminListen: string
  log: Log
  shutdown: Shutdown
}): Promise<void> {
  const { path, listen, adminListen, log, shutdown } = options
  await startSidecar(readConfig({}, { file: path, listen, adminListen }), { log, shutdown })
  const deadline = Date.now() + READY_TIMEOUT_MS
  while (!(await isReady(`http://${adminListen}/readyz`))) {
    if (Date.now() > deadline) throw new StartError('The sidecar did not become ready: see demo.log')
    await delay(10)
  }
}

async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(url)
  await answer.body?.cancel()
  return answer.ok
}

/** Ports that nobody uses: the wanted ones where they are free. */
export async function choosePorts(wanted: Partial<DemoPorts>): Promise<DemoPorts> {
  const choose = async (port: number | undefined): Promise<number> =>
    port !== undefined && (await isFree(port)) ? port : freePort()
  return {
    http: await choose(wanted.http),
    grpc: await choose(wanted.grpc),
    metrics: await choose(wanted.metrics),
    sidecar: await choose(wanted.sidecar),
  }
}
