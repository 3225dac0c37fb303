/** Parses one check as it is written in a route file, such as `viewer invoice:{id}`. */
import type { Check } from '../routes/checks.ts'
import { parseTemplate } from '../routes/template.ts'

const NAME = /^[a-z][a-z0-9_-]{0,63}$/
const KEY = /^[a-z][a-z0-9_.:-]{0,127}$/
// RFC 6749 section 3.3.
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/

/** The check, or what is wrong with it. `parameters`: those of the route's path. */
export function parseCheck(text: string, parameters: readonly string[]): Check | string {
  const words = text.trim().split(/\s+/)
  const [first = '', second = ''] = words
  if (text.trim() === 'public') return 'public is only a whole route, not a check among others'
  if (words.length !== 2)
    return `${JSON.stringify(text)} is not "<relation> <type>:<id>", "permission <key>", "entitlement <key>" or "scope <name>"`
  if (first === 'permission') return keyed('permission', second)
  if (first === 'entitlement') return keyed('entitlement', second)
  if (first === 'scope') return SCOPE.test(second) ? { kind: 'scope', name: second } : `${second} is not a scope`
  return parseRelation(first, second, parameters)
}

function keyed(kind: 'permission' | 'entitlement', key: string): Check | string {
  return KEY.test(key)
    ? { kind, key }
    : `${key} is not ${kind === 'permission' ? 'a permission' : 'an entitlement'} key`
}

function parseRelation(relation: string, resource: string, parameters: readonly string[]): Check | string {
  const colon = resource.indexOf(':')
  // Permission keys, such as invoices:approve, are relations of apps and organizations.
  if (!NAME.test(relation) && !KEY.test(relation)) return `${relation} is not a relation`
  if (colon < 0) return `${resource} is not <type>:<id>`
  const type = resource.slice(0, colon)
  if (!NAME.test(type)) return `${JSON.stringify(type)} is not a resource type`
  const id = parseTemplate(resource.slice(colon + 1), parameters)
  return typeof id === 'string' ? id : { kind: 'relation', relation, type, id }
}
