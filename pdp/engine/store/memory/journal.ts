/** The memory store's content: the current state of each journal, and the writes that led to it. */
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

/** The current state of one journal. `#environment` uses only `grants`, `organizations`, `manifests` and `roles`. */
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

export const START: JournalPosition = { revision: 0, writeId: '0', entitlementVersion: 0, entitlementWriteId: '0' }

/** A write of the memory store, with the parts that its entries share. */
export type JournalWrite = WriteContext & {
  readonly revision: number
  readonly writeId: string
  readonly changes: readonly Change[]
  /** How many changes the journal had before this write. */
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
  /** The app that first declared a name, by `audience <uri>` or `type <name>`. */
  readonly claims: Map<string, string>
}
