/** Row sets of one journal in memory, updated by its changes; a view shows them. */
import type { Change } from '../../../shared/domain/change.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { affectedKeys } from '../affected-keys.ts'
import type { RowKey, RowSet } from '../contract.ts'
import type { Evictable, RowBudget } from './row-budget.ts'
import { bytesOf, type Content, contentAfter, contentOf } from './row-content.ts'
import { namedName } from './row-keys.ts'
import type { SubjectSet } from './subject-set.ts'

/** A row set in JournalRows. */
export class HeldRows implements Evictable {
  bytes = 0
  hot = false
  newer: Evictable | null = null
  older: Evictable | null = null
  readonly owner: JournalRows
  readonly key: RowKey
  content: Content

  constructor(owner: JournalRows, key: RowKey, content: Content) {
    this.owner = owner
    this.key = key
    this.content = content
  }

  evict(): void {
    this.owner.forget(this.key)
  }
}

/** The groups above one group, kept until any group of the journal changes. `untilMs`: when one of the links expires. */
export type GroupsAbove = {
  readonly groups: ReadonlySet<string>
  readonly truncated: boolean
  readonly untilMs: number | null
}

/** Row sets of one journal. A row set that is absent is not known, rather than empty. */
export class JournalRows {
  readonly log: JournalId
  /** Subjects by relation and object. */
  readonly sets = new Map<string, Map<string, HeldRows>>()
  /** Groups by a subject that they name. */
  readonly groups = new Map<string, HeldRows>()
  /** Tuples by `namedName` of the key. */
  readonly named = new Map<string, HeldRows>()
  readonly memberships = new Map<string, HeldRows>()
  readonly grants = new Map<string, HeldRows>()
  readonly organizations = new Map<string, HeldRows>()
  manifests: HeldRows | undefined
  roles: HeldRows | undefined
  /** Revocations, which only the token journal has. */
  revocations: HeldRows | undefined
  /** Raised by every change of the rows: what was derived from them elsewhere must then be derived again. */
  version = 0
  /** Closures derived from `groups`; forgotten when a row set of `groups` changes, is evicted or is cleared. */
  readonly above = new Map<string, GroupsAbove>()
  readonly #budget: RowBudget | null

  /** `budget` null: row sets are never evicted. */
  constructor(log: JournalId, budget: RowBudget | null) {
    this.log = log
    this.#budget = budget
  }

  get empty(): boolean {
    return (
      this.sets.size +
        this.groups.size +
        this.named.size +
        this.memberships.size +
        this.grants.size +
        this.organizations.size ===
        0 &&
      this.manifests === undefined &&
      this.roles === undefined &&
      this.revocations === undefined
    )
  }

  set(object: string, relation: string): SubjectSet | undefined {
    return this.sets.get(relation)?.get(object)?.content as SubjectSet | undefined
  }

  /** Keeps a row set that was read, unless an equally new one with its key is there. */
  install(rows: RowSet): void {
    const { key } = rows
    if (key.kind === 'tuple') {
      const set = this.set(key.object, key.relation)
      if (set?.complete !== false || !('row' in rows) || set.probed(key.subject) !== undefined) return
      set.notePresence(key.subject, rows.row)
      this.#resize(this.find({ ...key, kind: 'set' }))
      return
    }
    if (this.find(key) === undefined) this.#hold(key, contentOf(rows))
  }

  /** Takes a row set of another JournalRows, unless one with its key is there. */
  adopt({ key, content }: HeldRows): void {
    if (this.find(key) === undefined) this.#hold(key, content)
  }

  find(key: RowKey): HeldRows | undefined {
    switch (key.kind) {
      case 'set':
        return this.sets.get(key.relation)?.get(key.object)
      case 'groups':
        return this.groups.get(key.subject)
      case 'named':
        return this.named.get(namedName(key))
      case 'membership':
        return this.memberships.get(key.user)
      case 'grants':
        return this.grants.get(key.subject)
      case 'organization':
        return this.organizations.get(key.id)
      case 'manifests':
        return this.manifests
      case 'roles':
        return this.roles
      case 'revocations':
        return this.revocations
      case 'tuple':
        return undefined // part of its set
    }
  }

  #hold(key: RowKey, content: Content): HeldRows {
    this.version++
    const held = new HeldRows(this, key, content)
    switch (key.kind) {
      case 'set': {
        const sets = this.sets.get(key.relation) ?? new Map<string, HeldRows>()
        this.sets.set(key.relation, sets.set(key.object, held))
        break
      }
      case 'groups':
        this.groups.set(key.subject, held)
        break
      case 'named':
        this.named.set(namedName(key), held)
        break
      case 'membership':
        this.memberships.set(key.user, held)
        break
      case 'grants':
        this.grants.set(key.subject, held)
        break
      case 'organization':
        this.organizations.set(key.id, held)
        break
      case 'manifests':
        this.manifests = held
        break
      case 'roles':
        this.roles = held
        break
      case 'revocations':
        this.revocations = held
        break
      case 'tuple':
        break
    }
    this.#budget?.add(held, bytesOf(held))
    return held
  }

  /** Drops a row set and everything derived from it. */
  forget(key: RowKey): void {
    this.version++
    switch (key.kind) {
      case 'set': {
        const sets = this.sets.get(key.relation)
        sets?.delete(key.object)
        if (sets?.size === 0) this.sets.delete(key.relation)
        break
      }
      case 'groups':
        this.groups.delete(key.subject)
        this.above.clear()
        break
      case 'named':
        this.named.delete(namedName(key))
        break
      case 'membership':
        this.memberships.delete(key.user)
        break
      case 'grants':
        this.grants.delete(key.subject)
        break
      case 'organization':
        this.organizations.delete(key.id)
        break
      case 'manifests':
        this.manifests = undefined
        break
      case 'roles':
        this.roles = undefined
        break
      case 'revocations':
        this.revocations = undefined
        break
      case 'tuple':
        break
    }
  }

  clear(): void {
    this.version++
    for (const held of this.all()) this.#budget?.remove(held)
    const { sets, groups, named, memberships, grants, organizations, above } = this
    for (const map of [sets, groups, named, memberships, grants, organizations, above]) map.clear()
    this.manifests = undefined
    this.roles = undefined
    this.revocations = undefined
  }

  *all(): Iterable<HeldRows> {
    for (const sets of this.sets.values()) yield* sets.values()
    for (const map of [this.groups, this.named, this.memberships, this.grants, this.organizations]) yield* map.values()
    if (this.manifests !== undefined) yield this.manifests
    if (this.roles !== undefined) yield this.roles
    if (this.revocations !== undefined) yield this.revocations
  }

  /** Applies a change to the row sets in memory. */
  apply(change: Change, atMs: number): void {
    for (const key of affectedKeys(this.log, change) ?? []) {
      if (key.kind === 'tuple') continue
      const held = this.find(key)
      // A closure may have been derived before the row set was evicted, so it is dropped in any case.
      if (key.kind === 'groups') this.above.clear()
      if (held === undefined) continue
      this.version++
      held.content = contentAfter(held, { change, atMs })
      this.#resize(held)
    }
  }

  #resize(held: HeldRows | undefined): void {
    if (held !== undefined) this.#budget?.resize(held, bytesOf(held))
  }
}
