/** The settings of a PDP that tests start in this process: plain text on one host, everything optional left out. */
import type { PdpConfig } from '../../pdp/runtime/config.ts'

export function pdpSettings({
  host,
  ports,
  ...given
}: Pick<PdpConfig, 'issuer' | 'adminSecret' | 'databaseUrl' | 'dataDirectory'> & {
  readonly host: string
  readonly ports: { readonly http: number; readonly grpc: number; readonly metrics: number }
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
    embedEntitlements: 'off',
    internalHosts: [],
    changesKeptDays: null,
    console: false,
    decisionsKept: 0,
    branding: {},
    checkTuplesMax: 100_000,
    databaseSchema: null,
    logLevel: 'info',
    logAllowedOneIn: 1,
    tracing: null,
  }
}
