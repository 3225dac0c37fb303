/** What applications that embed the PDP import. */
export { createPdp } from './create-pdp.ts'
export { PdpError, type PdpErrorCode } from './errors.ts'
export type {
  DecideRequest,
  Decision,
  EntitlementResult,
  HeldRoles,
  ListPage,
  ListResourcesRequest,
  ListSubjectsRequest,
  Pdp,
  PdpOptions,
  PermissionCheck,
  PermissionResult,
  Subject,
} from './pdp.ts'
export type { Change, EntitlementSource, Precondition, Store, Tuple, WriteContext } from './store/contracts.ts'
export { httpEntitlements, type SourceFetch } from './store/entitlement-http.ts'
export { memoryStore } from './store/memory.ts'
export { type PostgresOptions, postgresStore } from './store/postgres.ts'
export type { SharedCache, Slot, StatedValue } from './store/shared-cache.ts'
export { redisSharedCache } from './store/shared-cache-redis.ts'
export { service, user } from './subjects.ts'
