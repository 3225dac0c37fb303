/** Renames another system's types and relations that mean something else here. */
import { PdpError } from '../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { MEMBERSHIP_RELATIONS } from '../../shared/domain/membership.ts'

/** New names for types with a meaning here. */
const STAND_INS: { readonly [type: string]: string } = { organization: 'org', app: 'application' }

/** New names by type of the store; other types keep their names. */
export type TypeNames = ReadonlyMap<string, string>

/** `types`: the types of the model. `reserved`: those that cannot keep their name here. */
export function typeNames(types: ReadonlySet<string>, reserved: ReadonlySet<string>): TypeNames {
  const names = new Map<string, string>()
  for (const type of reserved) {
    const wanted = STAND_INS[type] ?? `${type}_`
    let name = wanted
    for (let count = 2; types.has(name); count++) name = `${wanted}${count}`
    names.set(type, name)
  }
  return names
}

export const isTier = (type: string, relation: string): boolean =>
  type === 'organization' && MEMBERSHIP_RELATIONS.has(relation)

export function renamed(name: string, names: TypeNames): string {
  const colon = name.indexOf(':')
  const type = name.slice(0, colon)
  return `${names.get(type) ?? type}${name.slice(colon)}`
}

type Node = string | number | boolean | null | readonly Node[] | { readonly [member: string]: Node }

/** The model document with all types renamed. */
export function renameTypes<T>(document: T, names: TypeNames): T {
  const visit = (node: Node, member: string): Node => {
    if (typeof node === 'string') return member === 'type' ? (names.get(node) ?? node) : node
    if (Array.isArray(node)) return node.map((item) => visit(item, member))
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, visit(value, name)]))
  }
  return visit(document as Node, '') as T
}

/** The object in the text; null: the text has none. */
export function parsedObject(json: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(json)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

export function refused(message: string): PdpError {
  return new PdpError('request_invalid', message)
}
