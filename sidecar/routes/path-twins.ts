/**
 * Some services prefer a key of the query, a field of a form or a member of a JSON body to the parameter of the path that has its
 * name: PHP behind a rewriting rule, Laravel's `$request->x`, Spring's data binding, ASP.NET's model binding. So such a twin of
 * a parameter that a check takes must have its value.
 */
import { RequestError } from '../request/errors.ts'
import { decodeAgain, decodeQuery, isReadAs } from './query.ts'
import { describeSource, type Source } from './template.ts'

type Parameter = Extract<Source, { from: 'path' }>

/** Throws RequestError. */
export function refuseQueryTwin(query: string | null, parameter: Parameter, value: string): void {
  if (query === null) return
  // A semicolon separates pairs for some servers, and is part of a value for others.
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

/** `written`: the value of the member as it is in the text. Throws RequestError. */
export function refuseJsonTwin(
  { key, written, text }: { readonly key: string; readonly written: string; readonly text: string },
  parameter: Parameter,
  value: string,
): void {
  if (!isReadAs(key, parameter.parts) || (isNameAlone(key) && (written === value || text === value))) return
  throw twin(`The body has a key that some services prefer to ${describeSource(parameter)}`, 'body')
}

/** The equal value says nothing beside an operator: `org[$ne]=mine` is everybody else. */
const isNameAlone = (key: string): boolean => /^[\p{L}\p{N}_-]+(?:\[\])?$/u.test(key)

const twin = (message: string, option: 'query' | 'body'): RequestError =>
  new RequestError(
    'request_invalid',
    message,
    `${message}, with another value; if this one does not, set ${option}: keep`,
  )

/** Some readers drop bytes that are not UTF-8. */
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
