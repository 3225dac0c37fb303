/** The part of JSON Patch (RFC 6902) that the injector uses, for `inject POD.yaml` to apply as the API server does. */
import { equalJson, isObject, type Json, type JsonObject, ShapeError } from './json.ts'

export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string }

type Mutable = Json[] | { [name: string]: Json }

/** The document after all operations; the given one is not changed. Throws ShapeError when an operation cannot be applied. */
export function applyPatch(document: JsonObject, operations: readonly PatchOperation[]): JsonObject {
  const copy: JsonObject = structuredClone(document)
  for (const operation of operations) applyOne(copy, operation)
  return copy
}

function applyOne(document: JsonObject, operation: PatchOperation): void {
  const parts = operation.path.split('/').slice(1)
  const last = unescaped(parts.pop() ?? '')
  let parent = mutable(document, operation.path)
  for (const part of parts) parent = mutable(memberOf(parent, unescaped(part)), operation.path)
  const present = memberOf(parent, last) !== undefined
  if (operation.op === 'test') {
    if (!equalJson(memberOf(parent, last), operation.value)) throw new ShapeError(`${operation.path} is something else`)
    return
  }
  if (operation.op !== 'add' && !present) throw new ShapeError(`${operation.path} does not exist`)
  if (Array.isArray(parent)) changeList(parent, last, operation)
  else if (operation.op === 'remove') delete parent[last]
  else parent[last] = structuredClone(operation.value)
}

function changeList(list: Json[], last: string, operation: Exclude<PatchOperation, { op: 'test' }>): void {
  const index = last === '-' ? list.length : Number(last)
  if (!Number.isInteger(index) || index > list.length) throw new ShapeError(`${operation.path} is past the end`)
  if (operation.op === 'remove') list.splice(index, 1)
  else list.splice(index, operation.op === 'replace' ? 1 : 0, structuredClone(operation.value))
}

function memberOf(parent: Mutable, name: string): Json | undefined {
  if (Array.isArray(parent)) return /^\d+$/.test(name) ? parent[Number(name)] : undefined
  return Object.hasOwn(parent, name) ? parent[name] : undefined
}

// Only this copy of our own may change, although Json declares its members readonly.
function mutable(value: Json | undefined, path: string): Mutable {
  if (Array.isArray(value)) return value as Json[]
  if (isObject(value)) return value as { [name: string]: Json }
  throw new ShapeError(`${path} has no parent`)
}

const unescaped = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~')
