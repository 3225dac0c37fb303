/** Reads a directory's resource and returns what is stored: the known attributes, under our names and each of its type. */
import { lowerAscii } from '../../../shared/base/blanks.ts'
import { isJsonObject, type JsonObject, type JsonValue, textIssue } from '../../../shared/domain/json.ts'
import { type Attribute, named, type ResourceType, valuesMax } from './attributes.ts'
import { ScimError } from './errors.ts'

const TEXT_CHARACTERS_MAX = 1_024
const DOCUMENT_CHARACTERS_MAX = 16_384
/** Control characters that are refused. RFC 7643 section 4.1.2 has line breaks in addresses, and texts are pasted from other places. */
const CONTROL = /[^\P{Cc}\t\r\n]/u

/**
 * Ignores unknown and read-only attributes (RFC 7644 section 3.3). Throws ScimError `invalidValue` for a value of another type, a
 * text that is too long, and a required attribute that is missing. Members of a group are returned, but do not count for its size.
 */
export function readDocument(sent: JsonValue | undefined, type: ResourceType): JsonObject {
  if (!isJsonObject(sent)) throw new ScimError('invalidSyntax', 'the body is not a JSON object')
  const { extension } = type
  const core = readAttributes(sent, type.attributes, '')
  const extended = extension === null ? {} : readExtension(sent, extension)
  const document = { ...core, ...extended }
  for (const { name, required } of type.attributes)
    if (required && (document[name] === undefined || document[name] === ''))
      throw new ScimError('invalidValue', `${name} is missing`)
  if (JSON.stringify({ ...document, members: null }).length > DOCUMENT_CHARACTERS_MAX)
    throw new ScimError('invalidValue', `the resource has more than ${DOCUMENT_CHARACTERS_MAX} characters`)
  return document
}

function readExtension(sent: JsonObject, { schema, attributes }: NonNullable<ResourceType['extension']>): JsonObject {
  const key = Object.keys(sent).find((name) => lowerAscii(name) === lowerAscii(schema))
  const found = key === undefined ? undefined : sent[key]
  if (found === undefined || found === null) return {}
  if (!isJsonObject(found)) throw new ScimError('invalidValue', `${schema} is not an object`)
  const read = readAttributes(found, attributes, `${schema}:`)
  return Object.keys(read).length === 0 ? {} : { [schema]: read }
}

function readAttributes(sent: JsonObject, attributes: readonly Attribute[], place: string): JsonObject {
  const read: { [name: string]: JsonValue } = {}
  for (const [key, value] of Object.entries(sent)) {
    const attribute = named(attributes, key)
    if (attribute === null || attribute.mutability === 'readOnly') continue
    const found = readValue(value, attribute, place + attribute.name)
    if (found !== null) read[attribute.name] = found
  }
  return read
}

/** Reads the value of an attribute. Null: no value (RFC 7643 section 2.5). */
export function readValue(value: JsonValue, attribute: Attribute, place: string): JsonValue {
  if (value === null) return null
  if (!attribute.multiValued) return readOne(value, attribute, place)
  const max = valuesMax(attribute)
  const values = Array.isArray(value) ? value : [value]
  if (values.length > max) throw new ScimError('invalidValue', `${place} has more than ${max} values`)
  const read = values.map((one) => readOne(one, attribute, place)).filter((one) => one !== null)
  return read.length === 0 ? null : read
}

function readOne(value: JsonValue, attribute: Attribute, place: string): JsonValue {
  const { type, subAttributes = [] } = attribute
  if (type === 'complex') {
    // Some clients send only the value: `"manager": "42"`, `"roles": ["admin"]`.
    const whole = typeof value === 'string' && named(subAttributes, 'value') !== null ? { value } : value
    if (!isJsonObject(whole)) throw new ScimError('invalidValue', `${place} is not an object`)
    const read = readAttributes(whole, subAttributes, `${place}.`)
    return Object.keys(read).length === 0 ? null : read
  }
  if (type === 'boolean') return readBoolean(value, place)
  if (typeof value !== 'string') throw new ScimError('invalidValue', `${place} is not a text`)
  if (value.length > TEXT_CHARACTERS_MAX)
    throw new ScimError('invalidValue', `${place} has more than ${TEXT_CHARACTERS_MAX} characters`)
  const isName = attribute.uniqueness === 'server' || attribute.caseExact
  if ((isName ? /\p{Cc}/u : CONTROL).test(value) || textIssue(value) !== null)
    throw new ScimError('invalidValue', `${place} has a control character`)
  return value
}

/** Entra ID sends booleans as texts: `"active": "False"`. */
function readBoolean(value: JsonValue, place: string): boolean {
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? lowerAscii(value) : ''
  if (text === 'true' || text === 'false') return text === 'true'
  throw new ScimError('invalidValue', `${place} is neither true nor false`)
}
