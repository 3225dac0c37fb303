/** Instants as people and programs write them. */

/**
 * Milliseconds since the epoch for a day or an instant of ISO 8601; NaN for any other text, and for a day that its month does not have:
 * `Date.parse` alone reads 31 February as 3 March, so that what should end would go on.
 */
export function parseInstantText(text: string): number {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0] ?? ''
  const ms = Date.parse(`${day}T00:00Z`)
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== day ? Number.NaN : Date.parse(text)
}
