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
export type { Change, Precondition, Store, Tuple, WriteContext } from './store/contracts.ts'
export { memoryStore } from './store/memory.ts'
export { type PostgresOptions, postgresStore } from './store/postgres.ts'
export { service, user } from './subjects.ts'
