/** Parses one check of a route file, such as `viewer invoice:{id}`. Names and ids follow the grammar of the PDP. */

import { nearestName } from '../../pdp/shared/base/nearest.ts'
import { isEntitlementKey, isPermissionKey, isRelationOrKey, isType } from '../../pdp/shared/domain/names.ts'
import type { Check } from '../routes/checks.ts'
import { parseTemplate } from '../routes/template.ts'

// Matches a scope (RFC 6749 section 3.3).
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/

/** Checks that consist of one word. */
const WORDS = ['public', 'signed_in']
/** Words that other proxies use for ours. */
const ELSEWHERE: { readonly [word: string]: string } = {
  ...Object.fromEntries(
    ['bypass', 'allow', 'anonymous', 'noop', 'everyone', 'permitall', 'permit_all'].map((word) => [word, '"public"']),
  ),
  ...Object.fromEntries(['authenticated', 'one_factor', 'valid-user', 'required'].map((word) => [word, '"signed_in"'])),
  two_factor: '{check: signed_in, step_up: {acr_values: [mfa]}}',
  optional: '{public: with_identity}',
}

/** Returns the check, or an error message. `parameters`: the names of the parameters in the route's path. */
export function parseCheck(text: string, parameters: readonly string[]): Check | string {
  const words = text.trim().split(/\s+/)
  const [first = '', second = ''] = words
  if (text.trim() === 'signed_in') return { kind: 'signed_in' }
  if (text.trim() === 'public') return 'public must be the only check of a route'
  if (words.length === 1) {
    const word = first.toLowerCase()
    const nearest = WORDS.includes(word) ? word : nearestName(word, WORDS)
    if (Object.hasOwn(ELSEWHERE, word))
      return `${JSON.stringify(text)} is not a check; did you mean ${ELSEWHERE[word]}?`
    if (/^deny(?:_?all)?$/.test(word))
      return `${text} is not a check: leave the route out, since what has no route is refused`
    if (nearest !== null) return `${JSON.stringify(text)} is not a check; did you mean "${nearest}"?`
  }
  if (words.length > 2 && first === 'scope')
    return `write {all: [${words
      .slice(1)
      .map((name) => `scope ${name}`)
      .join(', ')}]}`
  if (words.length !== 2)
    return `${JSON.stringify(text)} is not "public", "signed_in", "<relation> <type>:<id>", "permission <key>", "entitlement <key>" or "scope <name>"`
  if (first === 'permission') return keyed('permission', second)
  if (first === 'entitlement') return keyed('entitlement', second)
  if (first === 'scope') return SCOPE.test(second) ? { kind: 'scope', name: second } : `${second} is not a valid scope`
  return parseRelation(first, second, parameters)
}

function keyed(kind: 'permission' | 'entitlement', key: string): Check | string {
  const isKey = kind === 'permission' ? isPermissionKey : isEntitlementKey
  return isKey(key) ? { kind, key } : `${key} is not a valid ${kind} key`
}

function parseRelation(relation: string, resource: string, parameters: readonly string[]): Check | string {
  const colon = resource.indexOf(':')
  // A permission key such as invoices:approve is a relation of apps and organizations, so it is valid here, too.
  if (!isRelationOrKey(relation)) return `${relation} is not a valid relation name`
  if (colon < 0 && /^(?:has)?(?:group|role|authority)$/i.test(relation))
    return `${relation} ${resource} is not a check; one that the token names is {equals: {claims.${relation === 'group' ? 'groups' : 'roles'}: ${resource}}}`
  if (colon < 0) return `${resource} must be <type>:<id>`
  const type = resource.slice(0, colon)
  if (!isType(type)) return `${JSON.stringify(type)} is not a valid resource type`
  const id = parseTemplate(resource.slice(colon + 1), parameters)
  return typeof id === 'string' ? id : { kind: 'relation', relation, type, id }
}
