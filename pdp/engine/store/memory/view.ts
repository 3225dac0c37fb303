/** A view of a store in this process: no row is missing, and none is copied. */

import type { JournalId } from '../../../shared/domain/journal.ts'
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../../shared/domain/role.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import type { Userset } from '../../decide/usersets.ts'
import {
  type Closure,
  type ConditionalSubject,
  FALSE,
  GROUPS_MAX,
  TRUE,
  type Truth,
  type View,
} from '../../decide/view.ts'
import { RevokedTokens } from '../cache/revoked-tokens.ts'
import { NAMED_BY_MAX, type SubjectRow } from '../contract.ts'
import type { MemoryJournal } from './journal.ts'

const NONE: readonly never[] = []
const NO_REVOCATIONS = new RevokedTokens([])

/** The environment's content. Each list is the same array until it changes, so that what is derived from it can be kept. */
export type Environment = {
  readonly organizations: ReadonlyMap<string, Organization>
  readonly manifests: readonly StoredManifest[]
  readonly roles: readonly OrganizationRole[]
}

export class MemoryView implements View {
  /** The earliest expiry of the rows shown; null: none expires. */
  validUntilMs: number | null = null
  readonly #logs: ReadonlyMap<string, MemoryJournal>
  readonly #environment: Environment
  readonly #clock: () => number
  /** The time for all answers of this view, read from the clock at its first use; few questions use it. */
  #nowMs: number | null = null
  #lastJournal: JournalId | null = null
  #last: MemoryJournal | undefined

  /** `clock`: milliseconds since the epoch. */
  constructor(logs: ReadonlyMap<string, MemoryJournal>, environment: Environment, clock: () => number) {
    this.#logs = logs
    this.#environment = environment
    this.#clock = clock
  }

  /** The last journal is remembered, since nearly every read is of the same journal as the one before. */
  #of(log: JournalId): MemoryJournal | undefined {
    if (log !== this.#lastJournal) {
      this.#lastJournal = log
      this.#last = this.#logs.get(log)
    }
    return this.#last
  }

  #live(expiresAtMs: number | null): boolean {
    if (expiresAtMs === null) return true
    if (this.clockMs() >= expiresAtMs) return false
    this.noteUntil(expiresAtMs)
    return true
  }

  /** True if an answer may depend on the time, so that the next question needs a new view. */
  get hasReadClock(): boolean {
    return this.#nowMs !== null || this.validUntilMs !== null
  }

  clockMs(): number {
    this.#nowMs ??= this.#clock()
    return this.#nowMs
  }

  noteUntil(instantMs: number): void {
    this.validUntilMs = Math.min(this.validUntilMs ?? instantMs, instantMs)
  }

  #liveNames(rows: readonly SubjectRow[]): readonly string[] {
    return rows.length === 0 ? NONE : rows.filter((row) => this.#live(row.expiresAtMs)).map((row) => row.subject)
  }

  has(log: JournalId, object: string, relation: string, subject: string): Truth {
    const tuples = this.#of(log)?.tuples
    if (tuples === undefined || !tuples.has(object, relation, subject)) return FALSE
    if (!tuples.expires) return TRUE
    return this.#live(tuples.expiryOf({ object, relation, subject }) ?? null) ? TRUE : FALSE
  }

  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null {
    const tuples = this.#of(log)?.tuples
    if (tuples === undefined) return NONE
    const usersets = tuples.usersets(object, relation, countMax)
    if (usersets === null || !tuples.expires) return usersets
    return usersets.filter(({ text }) => this.#live(tuples.expiryOf({ object, relation, subject: text }) ?? null))
  }

  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null {
    const tuples = this.#of(log)?.tuples
    if (tuples === undefined) return NONE
    const objects = tuples.objects(object, relation, countMax)
    if (objects === null || !tuples.expires) return objects
    return objects.filter((subject) => this.#live(tuples.expiryOf({ object, relation, subject }) ?? null))
  }

  namedBy: View['namedBy'] = (log, name, where) => {
    const sets: string[] = []
    for (const { subject, expiresAtMs } of this.#of(log)?.tuples.namedBy(name, where) ?? NONE) {
      if (!this.#live(expiresAtMs)) continue
      if (sets.length === NAMED_BY_MAX) return null
      sets.push(subject)
    }
    return sets
  }

  conditionOf(log: JournalId, object: string, relation: string, subject: string): TupleCondition | null {
    const row = this.#of(log)?.tuples.conditional.get({ object, relation, subject })
    return row !== undefined && this.#live(row.expiresAtMs) ? row.condition : null
  }

  conditional(
    log: JournalId,
    object: string,
    relation: string,
    { kind, countMax }: { readonly kind: 'usersets' | 'objects'; readonly countMax: number },
  ): readonly ConditionalSubject[] | null {
    const rows = this.#of(log)?.tuples.conditional.of(object, relation)[kind]
    if (rows === undefined || rows.size === 0) return NONE
    return rows.size > countMax ? null : [...rows.values()].filter(({ expiresAtMs }) => this.#live(expiresAtMs))
  }

  groups(log: JournalId, subject: string): readonly string[] {
    return this.#liveNames(this.#of(log)?.tuples.groupsOf(subject) ?? NONE)
  }

  inGroup(log: JournalId, subject: string, group: Userset): Truth | null {
    const tuples = this.#of(log)?.tuples
    if (tuples === undefined) return FALSE
    if (!tuples.groupsExpire) {
      const found = tuples.inGroup(subject, group, GROUPS_MAX)
      return found === null ? null : found ? TRUE : FALSE
    }
    const { groups, truncated } = this.closure(log, subject)
    if (groups.has(group.text)) return TRUE
    return truncated ? null : FALSE
  }

  closure(log: JournalId, subject: string): Closure {
    const groups = new Set(this.groups(log, subject))
    // This loop also visits members that are added meanwhile, until no new one comes.
    for (const group of groups) {
      if (groups.size > GROUPS_MAX) return { groups, truncated: true }
      for (const above of this.groups(log, group)) groups.add(above)
    }
    return { groups, truncated: false }
  }

  membership(log: JournalId, subject: string): Membership | null {
    const memberships = this.#of(log)?.memberships
    if (memberships === undefined || memberships.size === 0 || !subject.startsWith('user:')) return null
    return memberships.get(subject.slice('user:'.length)) ?? null
  }

  grants(log: JournalId, subject: string): readonly RoleGrant[] {
    return this.#of(log)?.grants.to(subject) ?? NONE
  }

  organization(id: string): Organization | null {
    return this.#environment.organizations.get(id) ?? null
  }

  manifests(): readonly StoredManifest[] {
    return this.#environment.manifests
  }

  /** Always empty, because the identity service, which revokes tokens, needs a database. */
  revocations(): RevokedTokens {
    return NO_REVOCATIONS
  }

  roles(): readonly OrganizationRole[] {
    return this.#environment.roles
  }
}
