/** A row key as text, for maps. */
import type { RowKey } from '../contract.ts'

/** Unique among the keys of one journal. */
export const namedName = ({ name, where }: RowKey & { readonly kind: 'named' }): string =>
  where === null ? name : `${name} ${where.type} ${where.relation}`

/** One text per key, unique: no part of a key can hold a space. */
export function rowKeyName(key: RowKey): string {
  switch (key.kind) {
    case 'set':
      return `set ${key.log} ${key.object} ${key.relation}`
    case 'tuple':
      return `tuple ${key.log} ${key.object} ${key.relation} ${key.subject}`
    case 'named':
      return `named ${key.log} ${namedName(key)}`
    case 'groups':
      return `groups ${key.log} ${key.subject}`
    case 'membership':
      return `membership ${key.log} ${key.user}`
    case 'grants':
      return `grants ${key.log} ${key.subject}`
    case 'organization':
      return `organization ${key.id}`
    case 'manifests':
    case 'roles':
    case 'revocations':
      return key.kind
  }
}

/** Loads of one question that bring a level each; those after them bring chains of any length. */
const NEAR_LOADS_MAX = 2

/** The keys that the load is asked for, the first of a question being 1. */
export const keysOfLoad = (load: number, needed: readonly RowKey[]): readonly RowKey[] =>
  load <= NEAR_LOADS_MAX ? needed : needed.map((key) => (key.kind === 'set' ? { ...key, chain: true } : key))

/** The set itself. */
export function withoutChain(key: RowKey): RowKey {
  if (key.kind !== 'set' || key.chain === undefined) return key
  const { chain: _, ...set } = key
  return set
}
