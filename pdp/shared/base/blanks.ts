/**
 * Reads blanks and letters of protocols as their grammars do: blanks are space and tab (RFC 9110 section 5.6.3), and only ASCII
 * letters have two cases. JavaScript's own `trim`, `\s` and `toLowerCase` also take U+00A0 for a blank and U+212A for a k.
 */

/** The text without the spaces and tabs around it. */
export function trimBlanks(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text.charCodeAt(from))) from += 1
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1
  return from === 0 && to === text.length ? text : text.slice(from, to)
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

export const lowerAscii = (text: string): string =>
  ASCII.test(text) ? text.toLowerCase() : text.replace(CAPITALS, (letters) => letters.toLowerCase())

const ASCII = /^[^\u0080-\uffff]*$/
const CAPITALS = /[A-Z]+/g
