/** A whole PDP on real sockets over the small world of the identity tests, whose signing key the tests know. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type { Directory, Sql } from '../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import { storeKey } from '../../../../pdp/identity/issuer/keys/signing-keys.ts'
import type { PdpConfig } from '../../../../pdp/server/runtime/config.ts'
import { startPdp } from '../../../../pdp/server/runtime/start.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { createShutdown } from '../../../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../../../e2e/demo-stack.ts'
import { ADMIN_SECRET, HOST, pdpSettings } from '../../../e2e/pdp-settings.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { MASTER_KEY } from '../../../support/master-key.ts'
import { seed } from '../../identity/harness.ts'

export type RunningWorld = {
  readonly issuer: string
  /** `host:port`, over TLS by a certificate of the tests' authority. */
  readonly grpc: string
  readonly sql: Sql
  readonly store: Store
  readonly directory: Directory
  close(): Promise<void>
}

/** `over`: settings in place of those of this world. `onLine`: gets each line of the log. */
export async function openRunningWorld(
  over: Partial<PdpConfig> = {},
  onLine: ((line: string) => void) | null = null,
): Promise<RunningWorld> {
  const destination = { write: onLine ?? (() => undefined) }
  const log = createLog({ service: 'test', level: onLine === null ? 'silent' : 'info', destination })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const ports = await choosePorts({})
  const database = await openTestDatabase()
  const { sql, store, close } = await openPostgres({ connectionString: database.connectionString })
  const directory = postgresDirectory(sql)
  for (const key of inject('signingKeys')) await storeKey(sql, key)
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-running-'))
  const issuer = `http://${HOST}:${ports.http}`
  const databaseUrl = database.connectionString
  const settings = pdpSettings({ issuer, adminSecret: ADMIN_SECRET, host: HOST, ports, databaseUrl, dataDirectory })
  const tls = (name: string): string => join(import.meta.dirname, '../../../support/certificates', name)
  const grpcTls = { certFile: tls('server-1.pem'), keyFile: tls('server-1.key'), clientCaFile: null }
  // Callers on loopback alone need not say who they are.
  const grpc = { host: '0.0.0.0', port: ports.grpc }
  const { grpcAddress } = await startPdp(
    { ...settings, masterKey: MASTER_KEY, grpc, grpcTls, ...over },
    { log, shutdown },
  )
  await seed(store, directory)
  return {
    issuer,
    grpc: over.grpc === undefined ? `localhost:${ports.grpc}` : grpcAddress,
    sql,
    store,
    directory,
    async close() {
      await shutdown.run('test')
      await close()
      await database.drop()
      await rm(dataDirectory, { recursive: true })
    },
  }
}
