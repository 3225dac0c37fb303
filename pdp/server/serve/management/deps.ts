/** The stores that management calls read and write through: outside a transaction, or inside the one transaction of a write. */
import type { Comparing } from '../../../engine/decision-point/compare-shapes.ts'
import type { EntitlementSource, Store } from '../../../engine/store/contract.ts'
import type { Client, Directory, Moves, Provisioning } from '../../../engine/store/directory.ts'
import type { Lock } from '../../../engine/store/journal-lock.ts'
import type { Controls } from '../../../identity/controls.ts'
import type { Events } from '../../../identity/issuer/outbox-reader.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import type { StreamWrites } from '../../../signals/transmitter/stream-writes.ts'
import type { Places } from '../authentication/admission.ts'
import type { CredentialDeps } from '../authentication/credentials.ts'
import type { People } from '../authentication/people.ts'
import type { DecisionArchive } from '../decisions/decision-archive.ts'
import type { RouteReports } from '../grpc/route-reports.ts'

/** The stores and operations of a call. Inside a transaction, `within` replaces them with ones of that transaction. */
export type Reach = Controls & {
  readonly introspect: (token: string) => Promise<TokenState>
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp & Comparing
  readonly moves: Moves
  readonly provisioning: Provisioning
  /** Writes event streams to receivers. */
  readonly streams: StreamWrites
}
/** Takes the locks, then runs `work` in one transaction, which is rolled back if `work` throws. */
export type ReachAtomically = <T>(
  locks: { readonly logs: readonly Lock[]; readonly lengthy?: boolean },
  work: (at: Reach) => Promise<T>,
) => Promise<T>
/** The dependencies of a call inside a transaction: all reads and writes belong to the transaction. */
export const within = (
  { issuer, verifyProof, events, atomically, validateClient, entitlements, places, people, sidecars }: ManagementDeps,
  reach: Reach,
): ManagementDeps => ({
  issuer,
  verifyProof,
  events,
  atomically,
  validateClient,
  entitlements,
  places,
  ...(people === undefined ? {} : { people }),
  ...(sidecars === undefined ? {} : { sidecars }),
  ...reach,
})
export type ManagementDeps = CredentialDeps &
  Reach & {
    readonly events: Pick<Events, 'after'>
    readonly atomically: ReachAtomically
    /** Throws PdpError `request_invalid` for a registration that the identity service cannot use. */
    readonly validateClient: (client: Client & { readonly secretHash: string | null }) => Promise<void>
    readonly entitlements: EntitlementSource
    readonly places: Places
    /** Sidecars that are connected to this PDP; absent: it takes no reports. */
    readonly sidecars?: Pick<RouteReports, 'all'>
    /** The archive of all PDPs' decisions; null or absent: none. */
    readonly archive?: Pick<DecisionArchive, 'denied'> | null
    /** The people who call through the console; absent: there is no console. */
    readonly people?: Pick<People, 'of'>
  }
