/** The stores that management calls read and write through: outside a transaction, or inside the one transaction of a write. */
import type { Comparing } from '../../../engine/decision-point/compare-shapes.ts'
import type { EntitlementSource, Store } from '../../../engine/store/contract.ts'
import type { Client, Directory, Moves, Provisioning, Transaction } from '../../../engine/store/directory.ts'
import type { Lock } from '../../../engine/store/journal-lock.ts'
import type { TrustedIssuerDocument } from '../../../identity/issuer/tokens/external-issuers.ts'
import type { BrowserSession } from '../../../identity/issuer/tokens/revocation.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { Invitations } from '../../../identity/people/invitations/invitations.ts'
import type { IdentityProviders } from '../../../identity/people/upstream-providers/providers.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { StreamState } from '../../../signals/receiver/streams.ts'
import type { StreamWrites } from '../../../signals/transmitter/stream-writes.ts'
import type { Places } from '../authentication/admission.ts'
import type { CredentialDeps } from '../authentication/credentials.ts'
import type { People } from '../authentication/people.ts'
import type { DecisionArchive } from '../decisions/decision-archive.ts'
import type { RouteReports } from '../grpc/route-reports.ts'

/** The parts of the identity service that these calls use. */
export type IdentityControl = {
  readonly sessions: {
    /** The browser sessions of a person, the newest first. */
    sessionsOf(user: string): Promise<readonly BrowserSession[]>
    revokeSession(uid: string, context: WriteContext): Promise<boolean>
    revokeUser(user: string, context: WriteContext): Promise<readonly string[]>
    /** Ends the grants that are bound to an organization of which the person is no active member any more. */
    endMember(member: { readonly organization: string; readonly user: string }, context: WriteContext): Promise<void>
    /** Ends all sessions of a person inside the caller's transaction. It must be the last step of that transaction. */
    endUser(sql: Transaction, user: string, context: WriteContext): Promise<unknown>
  }
  readonly secondFactor: {
    enroll(user: string, context: WriteContext): Promise<{ readonly secret: string; readonly uri: string }>
    /** Removes the second factor. `by` null: an administrator does it, without a code of the person. */
    remove(user: string, by: null, context: WriteContext): Promise<boolean>
    removePasskeys(user: string, context: WriteContext): Promise<boolean>
  }
  readonly hook: {
    /** Every `configure` changes `version`. */
    read(): Promise<{ readonly url: string; readonly version: string } | null>
    configure(hook: { readonly url: string; readonly secret: string } | null, context: WriteContext): Promise<void>
  }
  readonly issuers: {
    list(): Promise<readonly ({ readonly issuer: string } & TrustedIssuerDocument)[]>
    put(issuer: string, document: TrustedIssuerDocument, context: WriteContext): Promise<boolean>
    remove(issuer: string, context: WriteContext): Promise<boolean>
    /** Streams of events that other issuers send us. */
    streams(): Promise<readonly StreamState[]>
  }
  readonly invitations: Invitations
  readonly identityProviders: IdentityProviders
}
/** Everything that a call reads and writes. */
export type Reach = IdentityControl & {
  readonly introspect: (token: string) => Promise<TokenState>
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp & Comparing
  readonly moves: Moves
  readonly provisioning: Provisioning
  /** Writes streams of events that we send to receivers. */
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
  ...{ issuer, verifyProof, events, atomically, validateClient, entitlements, places },
  ...(people === undefined ? {} : { people }),
  ...(sidecars === undefined ? {} : { sidecars }),
  ...reach,
})
/** Reads events from the outbox. */
export type EventSource = {
  readonly events: {
    after(
      after: number,
      options: { readonly waitMs: number; readonly signal: AbortSignal },
    ): Promise<{ readonly rows: readonly OutboxEvent[]; readonly next: number }>
  }
}
export type OutboxEvent = {
  readonly seq: number
  readonly id: string
  readonly type: string
  readonly organization: string | null
  readonly at: string
  readonly data: JsonObject
}
export type ManagementDeps = CredentialDeps &
  Reach &
  EventSource & {
    readonly atomically: ReachAtomically
    /** Throws PdpError `request_invalid` for a registration that the identity service cannot use. */
    readonly validateClient: (client: Client & { readonly secretHash: string | null }) => Promise<void>
    readonly entitlements: EntitlementSource
    readonly places: Places
    /** Sidecars that are connected to this PDP; absent: it takes no reports. */
    readonly sidecars?: Pick<RouteReports, 'all'>
    /** The archive of decisions of all PDPs; null or absent: none is kept. */
    readonly archive?: Pick<DecisionArchive, 'denied'> | null
    /** The people who call through the console; absent: nobody does. */
    readonly people?: Pick<People, 'of'>
  }
