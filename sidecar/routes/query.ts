/** Reads single values of a query. Refuses other keys that some parser would read as the wanted key. */
import { keyParts, readsAlike } from '../http/folding.ts'
import { malformed, missing, unusable } from '../request/errors.ts'
import type { Source } from './template.ts'

/** Parsers stop after some number of pairs (qs and PHP after 1,000), so a check must not depend on a later pair. */
const PAIRS_MAX = 500

/** Throws RequestError for `;`, which separates pairs for some servers, and for more than `PAIRS_MAX` pairs. */
export function queryPairs(query: string | null): readonly {
  /** The key, percent-decoded once. */
  readonly key: string
  /** The value as it was sent; empty without `=`. */
  readonly value: string
}[] {
  if (query?.includes(';')) throw malformed('The query has a semicolon')
  const pairs = query?.split('&') ?? []
  if (pairs.length > PAIRS_MAX) throw malformed(`The query has more than ${PAIRS_MAX} keys`)
  return pairs.map((pair) => {
    const equals = pair.indexOf('=')
    return equals < 0
      ? { key: decodeQuery(pair), value: '' }
      : { key: decodeQuery(pair.slice(0, equals)), value: pair.slice(equals + 1) }
  })
}

/** The value of the one key that servers read as this name. Throws RequestError for `+`, which most servers read as a space. */
export function readQuery(query: string | null, { name, parts }: Extract<Source, { from: 'query' }>): string {
  const values: string[] = []
  for (const { key, value } of queryPairs(query)) {
    if (key !== name) {
      if (isReadAs(key, parts)) throw malformed(`The query has a key that some servers read as ${name}`)
      continue
    }
    if (value.includes('+')) throw unusable(`The value of query.${name} has a plus sign`)
    values.push(decodeQuery(value))
  }
  const [value] = values
  const message = `The query must have ${name} exactly once`
  if (value === undefined) throw missing(message)
  if (values.length > 1) throw malformed(message)
  return value
}

/** True when a server could read the key as the name with these folded parts. */
export const isReadAs = (key: string, parts: readonly string[]): boolean =>
  readsAlike(keyParts(decodeAgain(key)), parts)

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const TRIPLET = /%([0-9A-Fa-f]{2})/g

/** The key decoded two more times, as two servers in a row would do. */
export const decodeAgain = (key: string): string =>
  key.includes('%') ? decodeOnce(decodeOnce(key)).replaceAll('\0', ' ') : key
const decodeOnce = (key: string): string =>
  key.replace(TRIPLET, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** Decodes the text once. Its percent-encoding is well formed: target.ts has checked it. */
export function decodeQuery(text: string): string {
  if (!text.includes('%')) return text
  try {
    return UTF8.decode(Buffer.from(decodeOnce(text), 'latin1'))
  } catch {
    throw malformed('The query is not UTF-8')
  }
}
