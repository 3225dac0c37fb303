/**
 * Converts AuthZEN mappings of operations (COAZ) to checks of routes, and back: `x-authzen-mapping` in an OpenAPI document. Of CEL, only
 * expressions are read that our templates can express: members of `request` and `token`, texts, and `+`.
 */

import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { isJsonObject } from '../../pdp/shared/domain/json.ts'
import type { Check } from '../routes/checks.ts'
import type { Source, Template } from '../routes/template.ts'
import { describeSource } from '../routes/template.ts'

export const MAPPING_KEY = 'x-authzen-mapping'
/** A check as a route file writes it. */
export type CheckText = string | { readonly all: readonly string[] }

/** A mapping that checks cannot express, or a check that mappings cannot. The message continues a sentence about the operation or route. */
export class MappingError extends Error {
  override readonly name = 'MappingError'
}

const SUBJECT = { type: 'identity', id: '$token.sub' }
const ROOTS = { path_params: '', query: 'query.', headers: 'header.', body: 'body.' } as const
const MEMBER = String.raw`(?:\.[A-Za-z_]\w*|\["[^"\\]+"\])`
const TERM = new RegExp(String.raw`^(?:(request)\.(\w+)(${MEMBER}+)|(token)(${MEMBER})|"([^"\\]*)")\s*`)

/** `nameOf`: the name that a parameter of the document's path has in the route. Throws MappingError. */
export function checkOfMapping(mapping: unknown, nameOf: (name: string) => string): CheckText {
  const [[kind, template] = [], ...others] = Object.entries(membersOf(mapping, 'the mapping'))
  if (others.length > 0 || (kind !== 'evaluation' && kind !== 'evaluations'))
    throw new MappingError('the mapping must have one member, evaluation or evaluations')
  const defaults = membersOf(template, kind)
  if (kind === 'evaluation') return checkOf(defaults, nameOf)
  const { evaluations, ...shared } = defaults
  if (!Array.isArray(evaluations) || evaluations.length === 0) throw new MappingError('evaluations has no items')
  return {
    all: evaluations.map((item: unknown) => {
      const own = membersOf(item, 'an item of evaluations')
      if ('subject' in own) throw new MappingError('an item of evaluations names a subject of its own')
      return checkOf({ ...shared, ...own }, nameOf)
    }),
  }
}

function checkOf(evaluation: JsonMembers, nameOf: (name: string) => string): string {
  const { subject, action, resource } = exactly(evaluation, 'the evaluation', ['subject', 'action', 'resource'])
  const { type: subjectType, id: subjectId } = exactly(subject, 'subject', ['type', 'id'])
  // The subject must be the token's: any other would be chosen by the client.
  if (subjectType !== SUBJECT.type || subjectId !== SUBJECT.id)
    throw new MappingError(`subject must be ${JSON.stringify(SUBJECT)}`)
  const { name } = exactly(action, 'action', ['name'])
  const { type, id } = exactly(resource, 'resource', ['type', 'id'])
  return `${literal(name, 'action.name')} ${literal(type, 'resource.type')}:${templateOf(id, nameOf)}`
}

function literal(value: unknown, place: string): string {
  if (typeof value === 'string' && /^[^\s$:{}#@]+$/.test(value)) return value
  throw new MappingError(`${place} must be a name, and no expression`)
}

function templateOf(value: unknown, nameOf: (name: string) => string): string {
  if (typeof value !== 'string') throw new MappingError('resource.id must be a text')
  if (!value.startsWith('$')) return plain(value)
  if (value.startsWith('$$')) return plain(value.slice(1))
  const parts: string[] = []
  let rest = value.slice(1).trim()
  for (;;) {
    const found = TERM.exec(rest)
    if (found === null) throw new MappingError(`resource.id has ${JSON.stringify(value)}, which a template cannot say`)
    const [whole, request, root = '', members = '', token, claim = '', text] = found
    if (request !== undefined) parts.push(`{${sourceOf(root, namesOf(members), nameOf)}}`)
    else if (token !== undefined) parts.push(`{claims.${namesOf(claim).join('.')}}`)
    else parts.push(plain(text ?? ''))
    rest = rest.slice(whole.length)
    if (rest === '') return parts.join('')
    if (!rest.startsWith('+'))
      throw new MappingError(`resource.id has ${JSON.stringify(value)}, which a template cannot say`)
    rest = rest.slice(1).trim()
  }
}

function plain(text: string): string {
  if (/[{}\s#]/.test(text)) throw new MappingError(`${JSON.stringify(text)} cannot be a part of an id`)
  return text
}

const namesOf = (members: string): readonly string[] =>
  [...members.matchAll(/\.(\w+)|\["([^"]+)"\]/g)].map(([, dotted, quoted]) => dotted ?? quoted ?? '')

function sourceOf(root: string, names: readonly string[], nameOf: (name: string) => string): string {
  const prefix = Object.entries(ROOTS).find(([known]) => known === root)?.[1]
  const [name = ''] = names
  if (prefix === undefined) throw new MappingError(`request.${root} cannot be written as a template`)
  if (prefix === '' && names.length === 1) return nameOf(name)
  if (prefix !== 'body.' && names.length !== 1) throw new MappingError(`request.${root} has no members of members`)
  return `${prefix}${names.join('.')}`
}

/** Throws MappingError for checks that COAZ cannot express: `any`, entitlements, scopes, comparisons, permission keys. */
export function mappingOfCheck(check: Check): object {
  if (check.kind === 'relation') return { evaluation: { subject: SUBJECT, ...evaluationOf(check) } }
  if (check.kind === 'all') return { evaluations: { subject: SUBJECT, evaluations: check.of.map(evaluationOf) } }
  throw new MappingError(`its check is ${check.kind}, which has no form in a mapping`)
}

function evaluationOf(check: Check): object {
  if (check.kind !== 'relation')
    throw new MappingError(`a part of its check is ${check.kind}, which has no form in a mapping`)
  return { action: { name: check.relation }, resource: { type: check.type, id: expressionOf(check.id) } }
}

function expressionOf(template: Template): string {
  const [only] = template
  if (template.length === 1 && typeof only === 'string') return only.startsWith('$') ? `$${only}` : only
  return `$${template.map((part) => (typeof part === 'string' ? JSON.stringify(part) : selection(part))).join(' + ')}`
}

function selection(source: Source): string {
  const member = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `["${name}"]`)
  switch (source.from) {
    case 'path':
      return `request.path_params${member(source.name)}`
    case 'query':
      return `request.query${member(source.name)}`
    case 'header':
      return `request.headers${member(source.name)}`
    case 'body':
      return `request.body${source.path.map(member).join('')}`
    case 'claims':
      return `token${member(source.name)}`
    default:
      throw new MappingError(`it reads ${describeSource(source)}, which a mapping cannot`)
  }
}

function exactly(value: unknown, place: string, names: readonly string[]): JsonMembers {
  const members = membersOf(value, place)
  for (const name of names) if (!(name in members)) throw new MappingError(`${place} lacks ${name}`)
  const other = Object.keys(members).find((name) => !names.includes(name))
  if (other !== undefined) throw new MappingError(`${place} has ${other}, which a check cannot say`)
  return members
}

function membersOf(value: unknown, place: string): JsonMembers {
  if (isJsonObject(value)) return { ...value }
  throw new MappingError(`${place} must be an object`)
}
