/** Reads a Forwarded field (RFC 7239 section 4). */

export type ForwardedElement = ReadonlyMap<string, string>

const TOKEN = "([!#$%&'*+.^_`|~0-9A-Za-z-]+)"
// Blanks match in one way only, or long runs of them would take long to refuse.
const PAIR = new RegExp(`[ \\t]*(?:${TOKEN}=(?:${TOKEN}|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*)?([;,]|$)`, 'y')

/** The parameters of each element by lower-case name. Throws Error for what is not in the grammar, and for a parameter that comes twice. */
export function parseForwarded(value: string): ForwardedElement[] {
  const elements: ForwardedElement[] = []
  let element = new Map<string, string>()
  PAIR.lastIndex = 0
  for (;;) {
    const match = PAIR.exec(value)
    if (match === null) throw new Error('The Forwarded field of a trusted proxy cannot be read')
    const [, name, token, quoted, end] = match
    if (name !== undefined) {
      const key = name.toLowerCase()
      if (element.has(key)) throw new Error('The Forwarded field of a trusted proxy says one thing twice')
      element.set(key, token ?? (quoted ?? '').replace(/\\(.)/g, '$1'))
    }
    if (end === ';') continue
    elements.push(element)
    if (end === '') return elements
    element = new Map()
  }
}
