/** Reads row sets from journals in memory, with the same additional sets that the statement on PostgreSQL returns. */

import { isWildcard, typeOf } from '../../../shared/domain/names.ts'
import { isUserset } from '../../decide/usersets.ts'
import { rowKeyName, withoutChain } from '../cache/row-keys.ts'
import { CHAIN_SETS_MAX, NAMED_BY_MAX, type RowKey, type RowSet, SET_ROWS_MAX } from '../contract.ts'
import { emptyJournal, type MemoryJournal } from './journal.ts'

/** A row set for each key, with those that RowKey promises in addition. */
export function readRowSets(logs: ReadonlyMap<string, MemoryJournal>, keys: readonly RowKey[]): readonly RowSet[] {
  const found = new Map<string, RowSet>()
  for (const key of keys) addRowSets(logs.get(key.log) ?? emptyJournal(), withoutChain(key), found)
  const chained = keys.filter((key) => key.kind === 'set').filter(({ chain }) => chain === true)
  if (chained.length > 0)
    addChains(
      logs,
      keys.filter((key) => key.kind === 'set'),
      found,
    )
  return [...found.values()]
}

type SetKey = RowKey & { readonly kind: 'set' }

/** Adds the sets of the same relation that these sets name, and those that they name, the nearest first. */
function addChains(
  logs: ReadonlyMap<string, MemoryJournal>,
  asked: readonly SetKey[],
  found: Map<string, RowSet>,
): void {
  const chain = new Map(asked.map((key) => [rowKeyName(key), key]))
  const setsMax = chain.size + CHAIN_SETS_MAX
  // This loop also visits entries that are added meanwhile, until no new one comes.
  for (const key of chain.values()) {
    const log = logs.get(key.log) ?? emptyJournal()
    addRowSets(log, withoutChain(key), found)
    for (const object of nextInChain(log, key)) {
      const next: SetKey = { log: key.log, kind: 'set', object, relation: key.relation }
      if (chain.size < setsMax) chain.set(rowKeyName(next), next)
    }
  }
}

function nextInChain(log: MemoryJournal, { object, relation }: SetKey): readonly string[] {
  const rows = [...log.tuples.subjects(object, relation), ...log.tuples.conditional.rowsOf(object, relation)]
  return rows.flatMap(({ subject }) => {
    const [next = '', of = relation] = subject.split('#')
    return typeOf(next) === typeOf(object) && of === relation && !isWildcard(next) ? next : []
  })
}

function addRowSets(log: MemoryJournal, key: RowKey, found: Map<string, RowSet>): void {
  const name = rowKeyName(key)
  if (found.has(name)) return
  switch (key.kind) {
    case 'set': {
      const { object, relation } = key
      const conditional = log.tuples.conditional.rowsOf(object, relation)
      const subjects = [...log.tuples.subjects(object, relation), ...conditional]
      const complete = subjects.length <= SET_ROWS_MAX
      const usersets = [...log.tuples.usersetRows(object, relation), ...conditional.filter((r) => isUserset(r.subject))]
      const usersetsComplete = complete || usersets.length <= SET_ROWS_MAX
      const held = complete ? subjects : usersetsComplete ? usersets : []
      found.set(name, { key, subjects: held, complete, usersetsComplete })
      break
    }
    case 'named': {
      const sets = [...log.tuples.namedBy(key.name, key.where)]
      const complete = sets.length <= NAMED_BY_MAX
      found.set(name, { key, sets: complete ? sets : [], complete })
      break
    }
    case 'tuple': {
      found.set(name, { key, row: log.tuples.find(key) ?? null })
      break
    }
    case 'groups': {
      const groups = log.tuples.groupsOf(key.subject)
      found.set(name, { key, groups })
      for (const { subject } of groups) addRowSets(log, { ...key, subject }, found)
      break
    }
    case 'grants':
      found.set(name, { key, grants: log.grants.to(key.subject) })
      addRowSets(log, { log: key.log, kind: 'groups', subject: key.subject }, found)
      for (const group of groupsAbove(log, key.subject)) {
        const above = { log: key.log, kind: 'grants', subject: group } as const
        found.set(rowKeyName(above), { key: above, grants: log.grants.to(group) })
      }
      break
    case 'membership':
      found.set(name, { key, membership: log.memberships.get(key.user) ?? null })
      break
    case 'organization': {
      const organization = log.organizations.get(key.id) ?? null
      found.set(name, { key, organization })
      if (organization?.parent != null) addRowSets(log, { ...key, id: organization.parent }, found)
      break
    }
    case 'manifests':
      found.set(name, { key, manifests: [...log.manifests.values()] })
      break
    case 'revocations':
      found.set(name, { key, revocations: [] })
      break
    case 'roles':
      found.set(name, { key, roles: [...log.roles.values()] })
      break
  }
}

/** Every group above the subject, as `group:x`. */
function groupsAbove(log: MemoryJournal, subject: string): ReadonlySet<string> {
  const groups = new Set<string>()
  const todo = [subject]
  for (let below = todo.pop(); below !== undefined; below = todo.pop()) {
    for (const { subject: userset } of log.tuples.groupsOf(below)) {
      const group = userset.slice(0, userset.indexOf('#'))
      if (groups.has(group)) continue
      groups.add(group)
      todo.push(userset)
    }
  }
  return groups
}
