/** The memory store's content for one organization or the environment. */
import type { Change, WriteContext } from '../../../shared/domain/change.ts'
import type { Entitlement } from '../../../shared/domain/entitlement.ts'
import type { JournalId, JournalPosition } from '../../../shared/domain/journal.ts'
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { OrganizationRole } from '../../../shared/domain/role.ts'
import type { JournalEntry } from '../contract.ts'
import { GrantIndex } from './grant-index.ts'
import { TupleIndex } from './tuple-index.ts'

/** One journal's content; the environment uses the last three and `grants`. */
export type MemoryJournal = {
  readonly tuples: TupleIndex
  readonly memberships: Map<string, Membership>
  readonly grants: GrantIndex
  readonly entitlements: Map<string, Entitlement>
  readonly organizations: Map<string, Organization>
  readonly manifests: Map<string, StoredManifest>
  readonly roles: Map<string, OrganizationRole>
}

export const emptyJournal = (): MemoryJournal => ({
  tuples: new TupleIndex(),
  memberships: new Map(),
  grants: new GrantIndex(),
  entitlements: new Map(),
  organizations: new Map(),
  manifests: new Map(),
  roles: new Map(),
})

/** Where a new journal stands. */
export const START: JournalPosition = { revision: 0, writeId: '0', entitlementVersion: 0, entitlementWriteId: '0' }

/** One write as the journal keeps it, which is smaller than its entries. */
export type JournalWrite = WriteContext & {
  readonly revision: number
  readonly writeId: string
  readonly changes: readonly Change[]
  /** Changes of the journal before this write. */
  readonly changesBefore: number
  readonly atMs: number
}

export const entriesOf = (log: JournalId, write: JournalWrite): readonly JournalEntry[] => {
  const { changes, changesBefore: _, ...common } = write
  return changes.map((change) => ({ log, ...common, change }))
}

export type MemoryState = {
  readonly positions: Map<string, JournalPosition>
  readonly logs: Map<string, MemoryJournal>
  readonly writes: Map<string, JournalWrite[]>
  /** `audience <uri>` or `type <name>` -> the app that first declared it */
  readonly claims: Map<string, string>
}
