/** What applications that embed the PDP import. */

export type { CompareAllRequest, ComparedAccess, CompareRequest, Comparison } from './decision-point/compare-shapes.ts'
export { createPdp } from './decision-point/create-pdp.ts'
export type {
  EmbeddedPdp,
  ManifestInput,
  RelationshipChanges,
  WriteBy,
  WriteOptions,
  WriteResult,
} from './decision-point/embedded.ts'
export type { PdpOptions } from './decision-point/options.ts'
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
export type { RelationModel } from './domain/relation-types.ts'
export { service, user } from './domain/subjects.ts'
export type { PostFetch as SourceFetch } from './process/http-json.ts'
export type { EntitlementSource, Store, TransactionClient } from './store/contract.ts'
export { httpEntitlements } from './store/entitlements/http-source.ts'
export { redisSharedCache } from './store/entitlements/redis-cache.ts'
export type { SharedCache } from './store/entitlements/shared-cache.ts'
export { memoryStore } from './store/memory/memory.ts'
export { type PostgresOptions, postgresStore } from './store/postgres/postgres.ts'
