/** A list whose parameters are in the body (RFC 7644 section 3.4.3): a filter may name a person, and addresses are logged. */
import { isJsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import { ScimError } from './errors.ts'
import { list, type Searched } from './listing.ts'
import type { ScimCall, ScimOutcome } from './route.ts'

const PARAMETERS: ReadonlySet<string> = new Set(['attributes', 'excludedattributes', 'filter', 'startindex', 'count'])

export async function search(call: ScimCall, listed: Searched): Promise<ScimOutcome> {
  return list({ ...call, query: queryIn(call.body) }, listed)
}

/** As the query of a list has them. */
function queryIn(body: JsonValue | undefined): ScimCall['query'] {
  if (!isJsonObject(body)) throw new ScimError('invalidSyntax', 'the body is not a JSON object')
  const query: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(body)) {
    const known = name.toLowerCase()
    if (!PARAMETERS.has(known) || value === null) continue
    if (query[known] !== undefined) throw new ScimError('invalidValue', `${name} is given more than once`)
    query[known] = textOf(name, value)
  }
  return query
}

function textOf(name: string, value: JsonValue): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  const texts = Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
  if (Array.isArray(value) && texts.length === value.length) return texts.join(',')
  throw new ScimError('invalidValue', `${name} is neither a text, nor a number, nor a list of texts`)
}
