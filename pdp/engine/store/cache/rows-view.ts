/** A view over row sets in memory. Notes each missing row set that a question asked for. */

import { ENVIRONMENT, type JournalId, TOKENS } from '../../../shared/domain/journal.ts'
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { OrganizationRole, RoleGrant } from '../../../shared/domain/role.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { isUserset, type Userset } from '../../decide/usersets.ts'
import {
  type Closure,
  type ConditionalSubject,
  FALSE,
  GROUPS_MAX,
  TRUE,
  type Truth,
  UNKNOWN,
  type View,
} from '../../decide/view.ts'
import type { RowKey } from '../contract.ts'
import type { GroupsAbove, HeldRows, JournalRows } from './journal-rows.ts'
import type { RevokedTokens } from './revoked-tokens.ts'
import { rowKeyName } from './row-keys.ts'
import type { SubjectSet } from './subject-set.ts'

const NO_GROUPS: Closure = { groups: new Set(), truncated: false }
/** How many closures of one journal are kept; when there are more, all are dropped and derived again when needed. */
const ABOVE_MAX = 10_000

export class RowsView implements View {
  /** The earliest expiry of the rows shown; null: none expires. */
  validUntilMs: number | null = null
  #needed: Map<string, RowKey> | null = null
  readonly #logs: (log: JournalId) => JournalRows
  #nowMs: number
  #lastJournal: JournalId = ''
  #lastRows: JournalRows | null = null
  #lastObject: string | null = null
  #lastRelation = ''
  #lastSet: SubjectSet | undefined

  /** `nowMs`: the clock of the vector; a row counts while its expiry is later. */
  constructor(logs: (log: JournalId) => JournalRows, nowMs: number) {
    this.#logs = logs
    this.#nowMs = nowMs
  }

  /** Starts another evaluation, and forgets what the last one noted. */
  begin(nowMs: number): void {
    this.#nowMs = nowMs
    this.#needed = null
    this.validUntilMs = null
    this.goOn()
  }

  /** Must be called when a paused evaluation resumes, because remembered look-ups may be outdated. */
  goOn(): void {
    this.#lastRows = null
    this.#lastObject = null
  }

  /** The rows that have to be loaded before the evaluation can start over. */
  get needed(): readonly RowKey[] {
    return [...(this.#needed?.values() ?? [])]
  }

  #need(key: RowKey): undefined {
    this.#needed ??= new Map()
    this.#needed.set(rowKeyName(key), key)
  }

  #live(expiresAtMs: number | null): boolean {
    if (expiresAtMs === null) return true
    if (this.#nowMs >= expiresAtMs) return false
    this.validUntilMs = Math.min(this.validUntilMs ?? expiresAtMs, expiresAtMs)
    return true
  }

  #liveSubjects(set: SubjectSet, subjects: Iterable<string>): readonly string[] {
    const live: string[] = []
    for (const subject of subjects) if (this.#live(set.expiryOf(subject))) live.push(subject)
    return live
  }

  #rows(log: JournalId): JournalRows {
    if (this.#lastRows === null || log !== this.#lastJournal) {
      this.#lastJournal = log
      this.#lastRows = this.#logs(log)
    }
    return this.#lastRows
  }

  /** Remembers the last set: nearly each set is read for the subject and directly afterwards for its usersets. */
  #set(log: JournalId, object: string, relation: string): SubjectSet | undefined {
    if (object === this.#lastObject && relation === this.#lastRelation && log === this.#lastJournal)
      return this.#lastSet
    const held = this.#rows(log).sets.get(relation)?.get(object)
    if (held !== undefined) held.hot = true
    this.#lastObject = object
    this.#lastRelation = relation
    this.#lastSet = held?.content as SubjectSet | undefined
    return this.#lastSet
  }

  has(log: JournalId, object: string, relation: string, subject: string): Truth {
    const set = this.#set(log, object, relation)
    if (set === undefined) {
      this.#need({ log, kind: 'set', object, relation })
      this.#need({ log, kind: 'tuple', object, relation, subject }) // read too, in case the set is too wide to be loaded
      return UNKNOWN
    }
    if (set.has(subject)) return this.#live(set.expiryOf(subject)) ? TRUE : FALSE
    if (set.complete) return FALSE
    const probed = set.probed(subject)
    if (probed === undefined) {
      this.#need({ log, kind: 'tuple', object, relation, subject })
      return UNKNOWN
    }
    return probed !== null && probed.condition === undefined && this.#live(probed.expiresAtMs) ? TRUE : FALSE
  }

  conditionOf(log: JournalId, object: string, relation: string, subject: string): TupleCondition | null | undefined {
    const set = this.#set(log, object, relation)
    if (set === undefined) {
      this.has(log, object, relation, subject) // notes what is missing
      return undefined
    }
    const row = set.conditional.get(subject) ?? (set.complete ? null : set.probed(subject))
    if (row === undefined) return this.#need({ log, kind: 'tuple', object, relation, subject })
    return row?.condition !== undefined && this.#live(row.expiresAtMs) ? row.condition : null
  }

  conditional(
    log: JournalId,
    object: string,
    relation: string,
    { kind, countMax }: { readonly kind: 'usersets' | 'objects'; readonly countMax: number },
  ): readonly ConditionalSubject[] | null | undefined {
    const set = this.#set(log, object, relation)
    if (set === undefined) return this.#need({ log, kind: 'set', object, relation })
    if (kind === 'objects' ? !set.complete : !set.usersetsComplete) return null
    const found = [...set.conditional.values()].filter(
      ({ subject, expiresAtMs }) => isUserset(subject) === (kind === 'usersets') && this.#live(expiresAtMs),
    )
    return found.length > countMax ? null : found
  }

  clockMs(): number {
    return this.#nowMs
  }

  noteUntil(instantMs: number): void {
    this.validUntilMs = Math.min(this.validUntilMs ?? instantMs, instantMs)
  }

  usersets(log: JournalId, object: string, relation: string, countMax: number): readonly Userset[] | null | undefined {
    const set = this.#set(log, object, relation)
    if (set === undefined) return this.#need({ log, kind: 'set', object, relation })
    if (!set.usersetsComplete || set.usersets.length > countMax) return null
    return set.hasExpiries ? set.usersets.filter(({ text }) => this.#live(set.expiryOf(text))) : set.usersets
  }

  objects(log: JournalId, object: string, relation: string, countMax: number): readonly string[] | null | undefined {
    const set = this.#set(log, object, relation)
    if (set === undefined) return this.#need({ log, kind: 'set', object, relation })
    if (!set.complete || set.size > countMax) return null
    return this.#liveSubjects(set, set.members()).filter((subject) => !isUserset(subject))
  }

  namedBy: View['namedBy'] = (log, name, where) => {
    const key = { log, kind: 'named', name, where } as const
    const set = this.#content(this.#rows(log).find(key)) as SubjectSet | undefined
    if (set === undefined) return this.#need(key)
    return set.complete ? this.#liveSubjects(set, set.members()) : null
  }

  groups(log: JournalId, subject: string): readonly string[] | undefined {
    const rows = this.#rows(log)
    const set = this.#content(rows.groups.get(subject)) as SubjectSet | undefined
    if (set === undefined) return this.#need({ log, kind: 'groups', subject })
    return this.#liveSubjects(set, set.members())
  }

  #onlyGroup(log: JournalId, subject: string): string | null {
    const held = this.#rows(log).groups.get(subject)
    if (held === undefined) return null
    held.hot = true
    return (held.content as SubjectSet).only
  }

  inGroup(log: JournalId, subject: string, { text: group }: Userset): Truth | null {
    const only = this.#onlyGroup(log, subject)
    const own = only === null ? this.groups(log, subject) : [only]
    if (own === undefined) return UNKNOWN
    let truth: Truth = FALSE
    let truncated = false
    for (const at of own) {
      const above = this.#above(log, at)
      if (above === undefined) truth = UNKNOWN
      else if (above.groups.has(group)) return TRUE
      else truncated ||= above.truncated
    }
    return truth === FALSE && truncated ? null : truth
  }

  closure(log: JournalId, subject: string): Closure | undefined {
    const own = this.groups(log, subject)
    if (own === undefined) return undefined
    if (own.length === 0) return NO_GROUPS
    const [only] = own
    if (own.length === 1 && only !== undefined) return this.#above(log, only)
    const groups = new Set<string>()
    let truncated = false
    let missing = false
    for (const group of own) {
      const above = this.#above(log, group)
      if (above === undefined) missing = true
      else {
        for (const g of above.groups) groups.add(g)
        truncated ||= above.truncated
      }
    }
    return missing ? undefined : { groups, truncated }
  }

  /** The group and all groups above it, kept because all members of the group share it. */
  #above(log: JournalId, group: string): GroupsAbove | undefined {
    const rows = this.#rows(log)
    const kept = rows.above.get(group)
    if (kept !== undefined && this.#live(kept.untilMs)) return kept
    const outer = this.validUntilMs
    this.validUntilMs = null
    const found = this.#climb(log, group)
    const untilMs = this.validUntilMs
    this.validUntilMs = untilMs === null ? outer : Math.min(outer ?? untilMs, untilMs)
    if (found === undefined) return undefined
    if (rows.above.size >= ABOVE_MAX) rows.above.clear()
    const above = { ...found, untilMs }
    rows.above.set(group, above)
    return above
  }

  #climb(log: JournalId, group: string): Closure | undefined {
    const groups = new Set([group])
    let missing = false
    // This loop also visits members that are added meanwhile, until no new one comes.
    for (const at of groups) {
      if (groups.size > GROUPS_MAX) return missing ? undefined : { groups, truncated: true }
      const above = this.groups(log, at)
      if (above === undefined) missing = true
      else for (const one of above) groups.add(one)
    }
    return missing ? undefined : { groups, truncated: false }
  }

  #content(held: HeldRows | undefined): HeldRows['content'] | undefined {
    if (held === undefined) return undefined
    held.hot = true
    return held.content
  }

  membership(log: JournalId, subject: string): Membership | null | undefined {
    if (!subject.startsWith('user:')) return null
    const user = subject.slice('user:'.length)
    const rows = this.#rows(log)
    const membership = this.#content(rows.memberships.get(user))
    if (membership !== undefined) return membership as Membership | null
    return this.#need({ log, kind: 'membership', user })
  }

  grants(log: JournalId, subject: string): readonly RoleGrant[] | undefined {
    const rows = this.#rows(log)
    const grants = this.#content(rows.grants.get(subject))
    if (grants !== undefined) return grants as readonly RoleGrant[]
    return this.#need({ log, kind: 'grants', subject })
  }

  organization(id: string): Organization | null | undefined {
    const rows = this.#rows(ENVIRONMENT)
    const organization = this.#content(rows.organizations.get(id))
    if (organization !== undefined) return organization as Organization | null
    return this.#need({ log: ENVIRONMENT, kind: 'organization', id })
  }

  manifests(): readonly StoredManifest[] | undefined {
    const manifests = this.#content(this.#rows(ENVIRONMENT).manifests)
    return (manifests as readonly StoredManifest[] | undefined) ?? this.#need({ log: ENVIRONMENT, kind: 'manifests' })
  }

  revocations(): RevokedTokens | undefined {
    const held = this.#rows(TOKENS).revocations
    if (held === undefined) return this.#need({ log: TOKENS, kind: 'revocations' })
    held.hot = true
    return held.content as RevokedTokens
  }

  roles(): readonly OrganizationRole[] | undefined {
    const roles = this.#content(this.#rows(ENVIRONMENT).roles)
    return (roles as readonly OrganizationRole[] | undefined) ?? this.#need({ log: ENVIRONMENT, kind: 'roles' })
  }
}
