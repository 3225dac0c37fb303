/**
 * Folds names that some parser treats as equal: header names, path segments, query keys and JSON keys. The differential
 * tests compare it with real parsers. It folds a little more than any of them: names that fold to one are denied, not merged.
 */

const PLAIN_NAME = /^[a-z0-9-]+$/
/** Bounds the cache: most requests use the same few names. */
export const REMEMBERED_MAX = 1_000
export const REMEMBERED_CHARS_MAX = 64
const foldedNames = new Map<string, string>()

/** Folds the names of fields that servers confuse: CGI and WSGI map `-` and `_` to one character, old servers any punctuation. */
export function foldName(name: string): string {
  const known = foldedNames.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  const folded = PLAIN_NAME.test(lower) ? lower : lower.replace(/[^a-z0-9]/g, '-')
  if (foldedNames.size < REMEMBERED_MAX && name.length <= REMEMBERED_CHARS_MAX) foldedNames.set(name, folded)
  return folded
}

/** True for names of letters, digits and `-`; `name` is in lower case. */
export const isPlainName = (name: string): boolean => PLAIN_NAME.test(name)

const ASCII = /^[\x20-\x7e]*$/

/**
 * Folds what some parser ignores: case, compatibility forms such as full-width letters, accents and invisible
 * characters. Go's encoding/json reads U+017F as s and U+212A as k.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKD')
    .replace(/[\p{M}\p{Cf}]/gu, '')
    .toUpperCase()
    .toLowerCase()
}

const MARKS = /[^\p{L}\p{N}]/gu

/**
 * Splits a key as the most lenient parser does: `org`, `ORG`, `_org`, `[org]`, `org[]`, `org]`, ` org` and `$org` are all
 * [org], and Zope takes `org:int` for `org`. Punctuation within a part is ignored: PHP reads `my.org` and `my[org` as `my_org`, protobuf parsers read `myOrg`
 * as `my_org`, and Go's json/v2 ignores `-` and `_`.
 */
export function keyParts(key: string): readonly string[] {
  const parts: string[] = []
  for (const text of key.split(/[.:[\]]+/)) {
    if (text === '') continue
    const part = foldText(text).replace(MARKS, '')
    // A part that consists of punctuation is not folded: nothing would be left of it.
    parts.push(part === '' ? text : part)
  }
  return parts
}

/** True when a JSON parser could read the key as the member at `path`, its parent or its child. */
export function nestsAlike(key: readonly string[], path: readonly string[]): boolean {
  const shared = Math.min(key.length, path.length)
  for (let at = 0; at < shared; at += 1) if (key[at] !== path[at]) return false
  return shared > 0
}

/** Like `nestsAlike`, for query keys, where PHP joins several parts into one name. */
export const readsAlike = (key: readonly string[], name: readonly string[]): boolean =>
  nestsAlike(key, name) || (key.length > 0 && key.join('') === name.join(''))
