/** Makes row sets from the rows of one statement: a set for each key asked, and for each that the statement added. */

import type { JournalId } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { StoredManifest } from '../../../shared/domain/manifest.ts'
import type { Membership, MembershipStatus, Tier } from '../../../shared/domain/membership.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import { type Revocation, type RevocationCause, revocationKey } from '../../../shared/domain/revocation.ts'
import type { OrganizationRole, RoleGrant } from '../../../shared/domain/role.ts'
import { rowKeyName, withoutChain } from '../cache/row-keys.ts'
import { NAMED_BY_MAX, type RowKey, type RowSet, SET_ROWS_MAX, type SubjectRow } from '../contract.ts'

/** The branch (rows.ts), the journal, then a, b, c, d and milliseconds, which mean what the branch says. */
export type Row = readonly [string, JournalId, string, string, string, string, number | null]

/** One row set for each key asked, empty when nothing was found, and the sets that the statement added. */
export function rowSetsOf(keys: readonly RowKey[], rows: readonly Row[]): readonly RowSet[] {
  const found = new RowCollector()
  for (const key of keys) found.expect(key)
  for (const row of rows) found.add(row)
  return found.rowSets()
}

/** Gathers rows under their keys. */
class RowCollector {
  readonly #sets = new Map<string, Gathered>()

  expect(key: RowKey): void {
    this.#at(withoutChain(key))
    if (key.kind === 'grants') this.#at({ log: key.log, kind: 'groups', subject: key.subject })
  }

  #at(key: RowKey): Gathered {
    const name = rowKeyName(key)
    let set = this.#sets.get(name)
    if (set === undefined) {
      set = { key, rows: [], complete: true }
      this.#sets.set(name, set)
    }
    return set
  }

  add([branch, log, a, b, c, d, expiresAtMs]: Row): void {
    switch (branch) {
      case 'set': {
        const set = this.#at({ log, kind: 'set', object: a, relation: b })
        if (set.complete) set.rows.push(subjectRow(c, expiresAtMs, d))
        break
      }
      case 'wide': {
        // The set is too wide: its plain rows, of which only some were read, are dropped in favour of its usersets.
        const set = this.#at({ log, kind: 'set', object: a, relation: b })
        if (set.complete) {
          set.complete = false
          set.rows = []
        }
        if (c !== null) set.rows.push(subjectRow(c, expiresAtMs, d))
        break
      }
      case 'whole':
        this.#at({ log, kind: 'set', object: a, relation: b })
        break
      case 'tuple':
        this.#at({ log, kind: 'tuple', object: a, relation: b, subject: c }).rows.push(subjectRow(c, expiresAtMs, d))
        break
      case 'named': {
        const where = b === '' ? null : { type: b, relation: c }
        this.#at({ log, kind: 'named', name: a, where }).rows.push({ subject: d, expiresAtMs })
        break
      }
      case 'groups':
        this.#at({ log, kind: 'groups', subject: a }).rows.push({ subject: `${b}#member`, expiresAtMs })
        this.#at({ log, kind: 'groups', subject: `${b}#member` }) // every group was read: without rows it is in no other
        break
      case 'grants': {
        // A group's grants are read twice when they were asked for, and were added for one of its members.
        const grants = this.#at({ log, kind: 'grants', subject: a }).rows as RoleGrant[]
        if (!grants.some((grant) => grant.id === b)) grants.push({ id: b, app: c, role: d, subject: a })
        break
      }
      case 'membership':
        this.#at({ log, kind: 'membership', user: a }).rows.push({ role: b as Tier, status: c as MembershipStatus })
        break
      case 'organization':
        this.#at({ log, kind: 'organization', id: a }).rows.push({ id: a, name: b, parent: c })
        break
      case 'manifests':
        this.#at({ log, kind: 'manifests' }).rows.push({ ...JSON.parse(c), version: Number(b) })
        break
      case 'revocations':
        this.#at({ log, kind: 'revocations' }).rows.push({
          key: revocationKey(a as RevocationCause, b),
          atMs: expiresAtMs,
          ...(c !== null && { issuedUntilMs: Number(c) }),
        })
        break
      case 'roles':
        this.#at({ log, kind: 'roles' }).rows.push({ key: a, name: b, permissions: JSON.parse(c) })
        break
      default:
        throw new TypeError(`unknown branch ${branch}`)
    }
  }

  rowSets(): readonly RowSet[] {
    this.#completeGrants()
    return [...this.#sets.values()].map(rowSetOf)
  }

  /** Adds an empty set for each group above a subject whose grants were asked: if it had grants, they were read. */
  #completeGrants(): void {
    const sets = [...this.#sets.values()]
    for (const { key } of sets) {
      if (key.kind !== 'grants') continue
      const todo = [key.subject]
      const seen = new Set(todo)
      for (let subject = todo.pop(); subject !== undefined; subject = todo.pop()) {
        const above = this.#sets.get(rowKeyName({ log: key.log, kind: 'groups', subject }))?.rows as
          | SubjectRow[]
          | undefined
        for (const { subject: userset } of above ?? []) {
          if (seen.has(userset)) continue
          seen.add(userset)
          todo.push(userset)
          this.#at({ log: key.log, kind: 'grants', subject: userset.slice(0, userset.indexOf('#')) })
        }
      }
    }
  }
}

/** `condition`: its name and context as a JSON array, or null. */
function subjectRow(subject: string, expiresAtMs: number | null, condition: string | null): SubjectRow {
  if (condition === null) return { subject, expiresAtMs }
  const [name, context] = JSON.parse(condition) as [string, JsonObject]
  return { subject, expiresAtMs, condition: { name, context } }
}

type Gathered = { readonly key: RowKey; rows: unknown[]; complete: boolean }

function rowSetOf({ key, rows, complete }: Gathered): RowSet {
  switch (key.kind) {
    case 'set': {
      const usersetsComplete = complete || rows.length <= SET_ROWS_MAX
      return { key, subjects: usersetsComplete ? (rows as SubjectRow[]) : [], complete, usersetsComplete }
    }
    case 'named': {
      const whole = rows.length <= NAMED_BY_MAX
      return { key, sets: whole ? (rows as SubjectRow[]) : [], complete: whole }
    }
    case 'tuple':
      return { key, row: (rows[0] as SubjectRow | undefined) ?? null }
    case 'groups':
      return { key, groups: rows as SubjectRow[] }
    case 'membership':
      return { key, membership: (rows[0] as Membership | undefined) ?? null }
    case 'grants':
      return { key, grants: rows as RoleGrant[] }
    case 'organization':
      return { key, organization: (rows[0] as Organization | undefined) ?? null }
    case 'manifests':
      return { key, manifests: rows as StoredManifest[] }
    case 'roles':
      return { key, roles: rows as OrganizationRole[] }
    case 'revocations':
      return { key, revocations: rows as Revocation[] }
  }
}
