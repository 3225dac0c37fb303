/** The exports for applications that embed the PDP. */

export type {
  CompareAllRequest,
  ComparedAccess,
  CompareRequest,
  Comparison,
} from './engine/decision-point/compare-shapes.ts'
export { createPdp } from './engine/decision-point/create-pdp.ts'
export type {
  EmbeddedPdp,
  ManifestInput,
  RelationshipChanges,
  WriteBy,
  WriteOptions,
  WriteResult,
} from './engine/decision-point/embedded.ts'
export type { PdpOptions } from './engine/decision-point/options.ts'
export type { EntitlementSource, Store, TransactionClient } from './engine/store/contract.ts'
export { httpEntitlements } from './engine/store/entitlements/http-source.ts'
export { redisSharedCache } from './engine/store/entitlements/redis-cache.ts'
export type { SharedCache } from './engine/store/entitlements/shared-cache.ts'
export { memoryStore } from './engine/store/memory/memory.ts'
export { type PostgresOptions, postgresStore } from './engine/store/postgres/postgres.ts'
export type { PostFetch as SourceFetch } from './shared/base/http-json.ts'
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
} from './shared/domain/decision.ts'
export { PdpError, type PdpErrorCode } from './shared/domain/errors.ts'
export type { RelationModel } from './shared/domain/relation-types.ts'
export { service, user } from './shared/domain/subjects.ts'
