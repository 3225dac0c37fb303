/** Converts header fields to the form that Node's HTTP/2 library uses. Values are Latin-1, one character per byte. */

/** Keeps repeated single-value fields, so that the pipeline and the upstream see them. */
export const FIELD_OPTIONS = { strictSingleValueFields: false } as const

/** Names are lower case (RFC 9113 section 8.2). Names and values in turn. */
export const http2Fields = (fields: readonly string[]): string[] =>
  fields.map((part, at) => (at % 2 === 0 ? part.toLowerCase() : part))

/** Repeated names become lists. */
export function http2Lists(pairs: readonly (readonly [string, string])[]): { [name: string]: string[] } {
  const lists: { [name: string]: string[] } = Object.create(null)
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    lists[lower] ??= []
    lists[lower].push(value)
  }
  return lists
}
