/** Converts header fields to the form that Node's HTTP/2 library uses. Values are Latin-1, one character per byte. */

/** Makes Node pass on repeated single-value fields unchanged, so that the pipeline and the upstream see them as they came. */
export const FIELD_OPTIONS = { strictSingleValueFields: false } as const

/** The fields with lower-case names (RFC 9113 section 8.2). Names and values alternate. */
export const http2Fields = (fields: readonly string[]): string[] =>
  fields.map((part, at) => (at % 2 === 0 ? part.toLowerCase() : part))

/** The fields as an object of lists: a repeated name has several values. */
export function http2Lists(pairs: readonly (readonly [string, string])[]): { [name: string]: string[] } {
  const lists: { [name: string]: string[] } = Object.create(null)
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    lists[lower] ??= []
    lists[lower].push(value)
  }
  return lists
}
