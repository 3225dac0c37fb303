/** `identity_headers` of a route file: which fields name the bearer to the service, and by which claims. */
import { isMap, isScalar, type Node } from 'yaml'
import { DOOR_FIELDS, DOOR_PROFILES, isHttpProfile } from '../../http/door-fields.ts'
import { NEVER_PASSED } from '../../http/fields.ts'
import { foldName } from '../../http/folding.ts'
import type { IdentityField } from '../../http/identity-fields.ts'
import { UNLISTABLE, UNLISTABLE_PREFIXES } from '../../request/inbound.ts'
import type { Form } from './schema.ts'
import type { Entry, YamlReader } from './yaml-reader.ts'

const FIELDS_MAX = 32
export const NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/
const CLAIM = /^claims\.([\x21-\x7a\x7c\x7e]{1,128})$/
const PART = /\{([^{}]*)\}|([^{}]+)|[{}]/g
const LITERAL = /^[\x20-\x7e]*$/

/** The form of a value: a claim such as `{claims.email}`, which YAML reads as a map, or a text that contains claims. */
export const IDENTITY_HEADERS: Form = {
  type: 'object',
  minProperties: 1,
  maxProperties: FIELDS_MAX,
  propertyNames: { pattern: NAME.source },
  additionalProperties: {
    oneOf: [
      { type: 'string' },
      { type: 'object', minProperties: 1, maxProperties: 1, additionalProperties: { type: 'null' } },
    ],
  },
}

/** Reports errors to the reader. `passed`: the names of pass_headers. */
export function readIdentityHeaders(
  reader: YamlReader,
  node: Node | null,
  passed: readonly string[],
): readonly IdentityField[] {
  const entries = node === null ? [] : (reader.entries(node, 'identity_headers') ?? [])
  if (node !== null && entries.length === 0) reader.report(node, 'identity_headers must have at least one entry')
  if (entries.length > FIELDS_MAX) reader.report(node, `identity_headers has more than ${FIELDS_MAX} entries`)
  const fields: IdentityField[] = []
  for (const entry of entries.slice(0, FIELDS_MAX)) {
    const name = entry.key.toLowerCase()
    const issue = fieldIssue(entry.key, passed)
    if (issue !== null) reader.report(entry.keyNode, `${JSON.stringify(entry.key)} ${issue}`)
    else if (fields.some((field) => field.name === name)) reader.report(entry.keyNode, `${entry.key} is there twice`)
    const parts = readParts(reader, entry)
    if (parts !== null && issue === null) fields.push({ name, parts })
  }
  return fields
}

/** Fields that gateways send to a door: the description of the request, and the gateway's secret. */
const OF_GATEWAYS = new Set(DOOR_PROFILES.filter(isHttpProfile).flatMap((profile) => DOOR_FIELDS[profile].ofGateway))
const OF_GATE = /^(x-)?portcullis-/

/** The reason for which this field cannot name the bearer, as the rest of a sentence that begins with the field's name; null: it can. */
export function fieldIssue(name: string, passed: readonly string[]): string | null {
  const folded = foldName(name)
  if (!NAME.test(name)) return 'is not a name of letters, digits and dashes, which every server reads alike'
  if (NEVER_PASSED.has(folded) || OF_GATEWAYS.has(folded) || OF_GATE.test(folded))
    return 'is set by the sidecar or by a gateway, or belongs to one connection'
  if (UNLISTABLE.has(folded) || UNLISTABLE_PREFIXES.some((prefix) => folded.startsWith(prefix)))
    return 'has a meaning in HTTP'
  return passed.some((one) => foldName(one) === folded) ? 'is also in pass_headers' : null
}

function readParts(reader: YamlReader, { key, value }: Entry): IdentityField['parts'] | null {
  const text = templateOf(reader, value)
  if (text === null) {
    reader.report(value, `${key} must be a claim, such as {claims.email}, or a text with claims`)
    return null
  }
  const parts: (string | { readonly claim: string })[] = []
  for (const [all, inner, literal] of text.matchAll(PART)) {
    const claim = inner === undefined ? undefined : CLAIM.exec(inner)?.[1]
    const isText = literal !== undefined && LITERAL.test(literal)
    if (claim === undefined && !isText) {
      reader.report(value, `${JSON.stringify(all)} of ${key} is not a claim, such as {claims.email}, and no ASCII text`)
      return null
    }
    parts.push(claim === undefined ? (literal ?? '') : { claim })
  }
  if (parts.some((part) => typeof part !== 'string')) return parts
  reader.report(value, `${key} names no claim, such as {claims.email}, so it would say nothing about the bearer`)
  return null
}

function templateOf(reader: YamlReader, given: Node | null): string | null {
  const node = reader.resolve(given)
  if (isScalar(node)) return typeof node.value === 'string' ? node.value : null
  if (!isMap(node) || node.items.length !== 1) return null
  const [item] = node.items
  const isName = isScalar(item?.key) && typeof item.key.value === 'string'
  const isBare = item?.value == null || (isScalar(item.value) && item.value.value === null)
  return isName && isBare && isScalar(item?.key) ? `{${item.key.value}}` : null
}
