/** A PDP that tests start in this process: plain text on one host, everything optional left out. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PdpConfig } from '../../pdp/server/runtime/config.ts'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog, type Log } from '../../pdp/shared/process/log.ts'
import { createShutdown, type Shutdown } from '../../pdp/shared/process/shutdown.ts'
import { openTestDatabase } from '../support/database.ts'

export const HOST = '127.0.0.1'
export const ADMIN_SECRET = 'the-secret-of-the-administrator'

type Ports = { readonly http: number; readonly grpc: number; readonly metrics: number }
export type OwnPdp = {
  readonly issuer: string
  readonly dataDirectory: string
  readonly log: Log
  /** What is added to it ends with the PDP. */
  readonly shutdown: Shutdown
  close(): Promise<void>
}

/** Starts a PDP that says nothing, with a database and a data directory of its own. */
export async function startOwnPdp(ports: Ports): Promise<OwnPdp> {
  const log = createLog({ service: 'test', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const database = await openTestDatabase()
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-own-'))
  const issuer = `http://${HOST}:${ports.http}`
  const databaseUrl = database.connectionString
  const settings = pdpSettings({ issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl, dataDirectory })
  await startPdp(settings, { log, shutdown })
  return {
    issuer,
    dataDirectory,
    log,
    shutdown,
    async close() {
      await shutdown.run('test')
      await database.drop()
      await rm(dataDirectory, { recursive: true })
    },
  }
}

export function pdpSettings({
  host,
  ports,
  ...given
}: Pick<PdpConfig, 'issuer' | 'adminSecret' | 'databaseUrl' | 'dataDirectory'> & {
  readonly host: string
  readonly ports: Ports
}): PdpConfig {
  return {
    ...given,
    masterKey: Buffer.alloc(32, 3),
    nextMasterKey: null,
    http: { host, port: ports.http },
    grpc: { host, port: ports.grpc },
    grpcTls: null,
    serviceAccounts: null,
    metrics: { host, port: ports.metrics },
    trustedProxies: [],
    mail: null,
    knownPasswordsFile: null,
    redisUrl: null,
    entitlementSource: null,
    secondFactor: 'offered',
    embedEntitlements: 'off',
    clientDocuments: null,
    internalHosts: [],
    proxy: null,
    changesKeptDays: null,
    console: false,
    decisionsKeptDays: 0,
    decisionsKept: 0,
    branding: {},
    checkTuplesMax: 100_000,
    databaseSchema: null,
    databaseConnections: 20,
    replication: null,
    lease: null,
    logLevel: 'info',
    logAllowedOneIn: 1,
    tracing: null,
  }
}
