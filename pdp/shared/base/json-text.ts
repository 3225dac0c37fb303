/** Reads parts of a valid JSON text without JSON.parse, which hides repeated names and digits of numbers. */

/** The members of an object whose values were not looked at yet. */
export type JsonMembers = { readonly [name: string]: unknown }

/** The place after the closing quote of the string that begins at `at`. */
export function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end + 1
  }
}

/** The value of the string that begins at `at` and has its closing quote before `end`. */
export function stringAt(text: string, at: number, end: number): string {
  const written = text.slice(at + 1, end - 1)
  return written.includes('\\') ? String(JSON.parse(`"${written}"`)) : written
}
