/** What applications that embed the PDP import. */

export type { PdpOptions } from './decision-point/create-pdp.ts'
export { createPdp } from './decision-point/create-pdp.ts'
export type { Change, Precondition, WriteContext } from './domain/change.ts'
export type {
  AskedSubject,
  ContextualTuple,
  DecideRequest,
  Decision,
  EntitlementResult,
  HeldRoles,
  ListPage,
  ListResourcesRequest,
  ListSubjectsRequest,
  Pdp,
  PermissionCheck,
  PermissionResult,
  Subject,
} from './domain/decision.ts'
export { PdpError, type PdpErrorCode } from './domain/errors.ts'
export { service, user } from './domain/subjects.ts'
export type { Tuple } from './domain/tuple.ts'
export type { PostFetch as SourceFetch } from './process/http-json.ts'
export type { EntitlementSource, Store } from './store/contract.ts'
export { httpEntitlements } from './store/entitlements/http-source.ts'
export { redisSharedCache } from './store/entitlements/redis-cache.ts'
export type { SharedCache, Slot, StatedValue } from './store/entitlements/shared-cache.ts'
export { memoryStore } from './store/memory/memory.ts'
export { type PostgresOptions, postgresStore } from './store/postgres/postgres.ts'
