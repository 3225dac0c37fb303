/**
 * Which spellings are one name to some reader: header names, segments of a path, keys of a query and of JSON. Made from
 * what parsers do (the differential tests ask them), and a little wider than any of them: two names that are taken for
 * one here are refused, never confused.
 */

const PLAIN_NAME = /^[a-z0-9-]+$/
/** Most requests have the same few names. What else somebody sends does not fill the memory. */
export const REMEMBERED_MAX = 1_000
export const REMEMBERED_CHARS_MAX = 64
const foldedNames = new Map<string, string>()

/** CGI and WSGI turn `-` and `_`, old ones any mark, into the same letter: names that they confuse are one name here. */
export function foldName(name: string): string {
  const known = foldedNames.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  const folded = PLAIN_NAME.test(lower) ? lower : lower.replace(/[^a-z0-9]/g, '-')
  if (foldedNames.size < REMEMBERED_MAX && name.length <= REMEMBERED_CHARS_MAX) foldedNames.set(name, folded)
  return folded
}

/** Of letters, digits and `-` only; `name` is in lower case. */
export const isPlainName = (name: string): boolean => PLAIN_NAME.test(name)

const ASCII = /^[\x20-\x7e]*$/

/**
 * One text for all that some reader compares as equal: case, compatibility forms such as full-width letters, accents and
 * signs that nobody sees. Go's encoding/json takes U+017F for s and U+212A for k.
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
 * The parts of a key as the most generous reader takes it apart: `org`, `ORG`, `_org`, `[org]`, `org[]`, `org]`, ` org`
 * and `$org` are all [org]. Marks within a part count for nothing: PHP writes `my.org` and `my[org` as `my_org`, readers
 * of protocol buffers take `myOrg` for `my_org`, and Go's json/v2 leaves out `-` and `_`.
 */
export function keyParts(key: string): readonly string[] {
  const parts: string[] = []
  for (const text of key.split(/[.[\]]+/)) {
    if (text === '') continue
    const part = foldText(text).replace(MARKS, '')
    // What is nothing but marks is a name as it is.
    parts.push(part === '' ? text : part)
  }
  return parts
}

/** True when some reader of JSON could take a key for a member at `path` or for what is around or within it. */
export function nestsAlike(key: readonly string[], path: readonly string[]): boolean {
  const shared = Math.min(key.length, path.length)
  for (let at = 0; at < shared; at += 1) if (key[at] !== path[at]) return false
  return shared > 0
}

/** As `nestsAlike`, for keys of a query, where PHP makes one word of several parts. */
export const readsAlike = (key: readonly string[], name: readonly string[]): boolean =>
  nestsAlike(key, name) || (key.length > 0 && key.join('') === name.join(''))
