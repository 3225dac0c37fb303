/** Instants as people write them: `Friday`, `tomorrow`, `2026-12-04`, `+3d`, or exact. Days are those of UTC. */

const DAY_MS = 86_400_000
const UNIT_MS: { readonly [unit: string]: number } = { m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS }
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const DAYS: { readonly [name: string]: number } = { yesterday: -1, today: 0, tomorrow: 1 }
export const TIME_FORMS = 'Friday, tomorrow, 2026-12-04, +3d or 2026-12-04T12:00Z; days are those of UTC'

/**
 * Milliseconds since the epoch; null for a text that names no time. `edge`: a day means its first instant, or the one after its
 * last. A weekday is the next one, today included; before `now` with `edge` 'begin', the latest one.
 */
export function instantIn(text: string, nowMs: number, edge: 'begin' | 'end'): number | null {
  const word = text.trim().toLowerCase()
  const span = /^([+-])(\d{1,4})([mhdw])$/.exec(word)
  if (span !== null) {
    const [, sign, count = '', unit = ''] = span
    return nowMs + (sign === '-' ? -1 : 1) * Number(count) * (UNIT_MS[unit] ?? 0)
  }
  const day = dayIn(word, nowMs, edge)
  if (day !== null) return edge === 'begin' ? day : day + DAY_MS
  if (!/^\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:\d\d)?$/.test(word)) return null
  const ms = Date.parse(/t[^z+-]*$/.test(word) ? `${word}z` : word)
  return Number.isNaN(ms) ? null : ms
}

/** The first instant of a day. */
function dayIn(word: string, nowMs: number, edge: 'begin' | 'end'): number | null {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  if (Object.hasOwn(DAYS, word)) return today + (DAYS[word] ?? 0) * DAY_MS
  if (/^\d{4}-\d\d-\d\d$/.test(word)) {
    const ms = Date.parse(`${word}T00:00:00Z`)
    // Not 31 February, which JavaScript takes for a day of March.
    return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== word ? null : ms
  }
  const weekday = word.length < 3 ? -1 : WEEKDAYS.findIndex((one) => one === word || one.slice(0, 3) === word)
  if (weekday === -1) return null
  const ahead = (weekday - new Date(today).getUTCDay() + 7) % 7
  return today + (edge === 'begin' && ahead > 0 ? ahead - 7 : ahead) * DAY_MS
}
