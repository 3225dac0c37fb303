/** Row keys as text, for use in maps. */
import type { RowKey } from '../contract.ts'

/** The text of a `named` key, unique within one journal. */
export const namedName = ({ name, where }: RowKey & { readonly kind: 'named' }): string =>
  where === null ? name : `${name} ${where.type} ${where.relation}`

/** The text of a key, unique because no part of a key can hold a space. */
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

/** The first loads of a question bring one level of sets each; later loads follow chains of sets (`RowKey.chain`). */
const NEAR_LOADS_MAX = 2

/** The keys of a question's load number `load`, counted from 1. */
export const keysOfLoad = (load: number, needed: readonly RowKey[]): readonly RowKey[] =>
  load <= NEAR_LOADS_MAX ? needed : needed.map((key) => (key.kind === 'set' ? { ...key, chain: true } : key))

/** The key of the set alone, without its chain. */
export function withoutChain(key: RowKey): RowKey {
  if (key.kind !== 'set' || key.chain === undefined) return key
  const { chain: _, ...set } = key
  return set
}
