/** Parts that settings switch on: traces, Redis, an external source of entitlements, and service accounts that call over gRPC. */

import type { Store } from '../../engine/store/contract.ts'
import { httpEntitlements } from '../../engine/store/entitlements/http-source.ts'
import { redisSharedCache } from '../../engine/store/entitlements/redis-cache.ts'
import { noSharedCache } from '../../engine/store/entitlements/shared-cache.ts'
import { storeEntitlements } from '../../engine/store/entitlements/store-source.ts'
import type { TokenState } from '../../identity/issuer/tokens/token-state.ts'
import type { Log } from '../../shared/process/log.ts'
import { redisLines } from '../../shared/process/redis-lines.ts'
import type { Shutdown } from '../../shared/process/shutdown.ts'
import { openTracing } from '../../shared/process/tracing/otlp.ts'
import { createSpans, type Spans } from '../../shared/process/tracing/spans.ts'
import { type RedisReplayMemory, redisReplayMemory } from '../../shared/token/replay-redis.ts'
import { createCallers } from '../serve/authentication/grpc-callers.ts'
import { createServiceAccounts } from '../serve/authentication/service-account.ts'
import type { GrpcDeps } from '../serve/grpc/server.ts'
import { loadTls } from '../serve/grpc/tls.ts'
import type { PdpConfig } from './config.ts'

/** The tracer; null: no collector is set. */
export function openSpans(
  { tracing }: PdpConfig,
  { log, shutdown }: { readonly log: Log; readonly shutdown: Shutdown },
): Spans | null {
  if (tracing === null) return null
  const opened = openTracing(tracing, { log })
  shutdown.add('spans', () => opened.close())
  return createSpans(opened)
}

export async function entitlementParts(config: PdpConfig, deps: { store: Store; masterKey: Buffer; log: Log }) {
  const { store, masterKey, log } = deps
  const { entitlementSource: external, redisUrl: url } = config
  return {
    entitlements:
      external === null ? storeEntitlements(store) : httpEntitlements({ ...external, store, fetch: globalThis.fetch }),
    sharedCache:
      url === null
        ? noSharedCache()
        : await redisSharedCache({ url, masterKey, ...redisLines(log, 'entitlements', url) }),
  }
}

/** The memory of used proofs. In a Redis, all nodes share it and refuse a proof that one has accepted. */
export async function proofMemory(
  { redisUrl: url }: PdpConfig,
  { log, shutdown }: { log: Log; shutdown: Shutdown },
): Promise<{ replay?: RedisReplayMemory }> {
  if (url === null) return {}
  const replay = await redisReplayMemory({ url, clock: Date.now, ...redisLines(log, 'proofs', url) })
  shutdown.add('proof memory', async () => replay.close())
  return { replay }
}

export async function grpcGuards(
  config: PdpConfig,
  { introspect, log }: { readonly introspect: (token: string) => Promise<TokenState>; readonly log: Log },
): Promise<Pick<GrpcDeps, 'tls' | 'authenticate'>> {
  const serviceAccounts =
    config.serviceAccounts &&
    createServiceAccounts(config.serviceAccounts, { fetch: globalThis.fetch, clock: Date.now })
  return {
    tls: config.grpcTls && (await loadTls(config.grpcTls, { log })),
    authenticate: createCallers({ introspect, issuer: config.issuer, serviceAccounts }),
  }
}
