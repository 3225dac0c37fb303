/**
 * A key of the query, a form or a JSON body that is named like a parameter of the path is called its twin. Some services prefer the
 * twin: PHP behind a rewriting rule, Laravel's `$request->x`, Spring's data binding, ASP.NET's model binding. So the twin of a
 * parameter that a check reads must have the same value as the parameter; else the request is refused.
 */
import { RequestError } from '../request/errors.ts'
import { decodeAgain, decodeQuery, isReadAs } from './query.ts'
import { describeSource, type Source } from './template.ts'

/** Throws RequestError if a key of the query is named like the path's parameter and has another value (a twin, see above). */
export function refuseQueryTwin(
  query: string | null,
  parameter: Extract<Source, { from: 'path' }>,
  value: string,
): void {
  if (query === null) return
  // For some servers a semicolon separates pairs; for others it is part of a value. Both readings are checked.
  for (const mark of query.includes(';') ? [/&/, /[&;]/] : [/&/])
    for (const pair of query.split(mark)) {
      const equals = pair.indexOf('=')
      const key = equals < 0 ? pair : pair.slice(0, equals)
      const plain = plainKey(key)
      if (!isReadAs(plain, parameter.parts)) continue
      if (isNameAlone(plain) && isValue(equals < 0 ? '' : pair.slice(equals + 1), value)) continue
      throw twin(`The query has a key that some services prefer to ${describeSource(parameter)}`, 'query')
    }
}

/** Throws RequestError for a twin (see above) in a body with another value. `written`: JSON text. `text`: its value if it is a string. */
export function refuseJsonTwin(
  { key, written, text }: { readonly key: string; readonly written: string; readonly text: string },
  parameter: Extract<Source, { from: 'path' }>,
  value: string,
): void {
  if (!isReadAs(key, parameter.parts) || (isNameAlone(key) && (written === value || text === value))) return
  throw twin(`The body has a key that some services prefer to ${describeSource(parameter)}`, 'body')
}

/** True for a name without operator. With one, even an equal value is dangerous: `org[$ne]=mine` means every other organization. */
const isNameAlone = (key: string): boolean => /^[\p{L}\p{N}_-]+(?:\[\])?$/u.test(key)

const twin = (message: string, option: 'query' | 'body'): RequestError =>
  new RequestError(
    'request_invalid',
    message,
    `${message}, with another value; if this one does not, set ${option}: keep`,
  )

/** The key as some parsers read it that drop bytes which are not UTF-8. */
function plainKey(key: string): string {
  try {
    return decodeQuery(key)
  } catch {
    return decodeAgain(key).replace(/[\x80-\xff]/g, '')
  }
}

function isValue(written: string, value: string): boolean {
  try {
    return !written.includes('+') && decodeQuery(written) === value
  } catch {
    return false
  }
}
