/** Changes the members of a group by the operations of one PATCH. An operation costs what it names, not the size of the group. */
import { isJsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import type { Filter } from './filter.ts'
import { isInstant, memberOf } from './match.ts'
import { keyOf } from './values.ts'

export type MemberValues = {
  readonly size: number
  /** Adds values that are not there yet. */
  add(values: readonly JsonValue[]): void
  remove(values: readonly JsonValue[]): void
  /** Removes members with this `value`, compared without case as in filters. */
  removeEqual(text: string): void
  list(): readonly JsonValue[]
}

export function createMemberValues(before: readonly JsonValue[]): MemberValues {
  const byKey = new Map<string, JsonValue>()
  const keysByText = new Map<string, Set<string>>()

  function add(value: JsonValue): void {
    const key = keyOf(value)
    const known = byKey.get(key)
    byKey.set(key, isJsonObject(known) && isJsonObject(value) ? { ...known, ...value } : value)
    const text = textOf(value)
    const keys = keysByText.get(text)
    if (keys === undefined) keysByText.set(text, new Set([key]))
    else keys.add(key)
  }
  function remove(key: string): void {
    const value = byKey.get(key)
    if (value === undefined) return
    byKey.delete(key)
    const text = textOf(value)
    const keys = keysByText.get(text)
    keys?.delete(key)
    if (keys?.size === 0) keysByText.delete(text)
  }
  before.forEach(add)
  return {
    get size() {
      return byKey.size
    },
    add: (values) => values.forEach(add),
    remove: (values) => values.map(keyOf).forEach(remove),
    removeEqual: (text) => [...(keysByText.get(text.toLowerCase()) ?? [])].forEach(remove),
    list: () => [...byKey.values()],
  }
}

/** The text of a lone `value eq "text"`; null for every other filter. */
export function soleValueIn(filter: Filter | null): string | null {
  if (filter?.kind !== 'compare' || filter.op !== 'eq' || typeof filter.value !== 'string') return null
  const { schema, attribute, sub } = filter.path
  // An instant is excluded: two different texts can mean the same instant.
  return schema === null && attribute === 'value' && sub === null && !isInstant(filter.value) ? filter.value : null
}

const textOf = (value: JsonValue): string =>
  String(isJsonObject(value) ? (memberOf(value, 'value') ?? '') : value).toLowerCase()
