/** Reads times as people write them: `Friday`, `tomorrow`, `2026-12-04`, `+3d`, or an exact instant. Days are those of their zone. */

import { clockFormat } from '../../../engine/decide/conditions/times.ts'
import { type Html, html } from '../../../shared/base/html.ts'
import { parseInstantText } from '../../../shared/base/instant.ts'

const DAY_MS = 86_400_000
const UNIT_MS: { readonly [unit: string]: number } = { m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS }
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const DAYS: { readonly [name: string]: number } = { yesterday: -1, today: 0, tomorrow: 1 }
export const TIME_FORMS = 'Friday, tomorrow, 2026-12-04, +3d or 2026-12-04T12:00Z'

/** A hint that names the zone. A script replaces it by the browser's zone and sets the cookie from which the next page has it. */
export const daysOf = (zone: string): Html => html`Days are those of <span data-zone>${zone}</span>.`

/** The present time and the zone for a text that somebody wrote. */
export type Reading = { readonly nowMs: number; readonly zone: string }

/** The time zone of that name; UTC if there is none. */
export function zoneIn(text: string): string {
  try {
    return /^[A-Za-z][\w+/-]{0,63}$/.test(text)
      ? new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
      : 'UTC'
  } catch {
    return 'UTC'
  }
}

/**
 * Milliseconds since the epoch; null for a text that names no time. `edge`: 'begin' gives the first instant of a day, 'end' the
 * first one after it. A weekday is the latest one with 'begin', else the next one, today included.
 */
export function instantIn(text: string, { nowMs, zone }: Reading, edge: 'begin' | 'end'): number | null {
  const word = text.trim().toLowerCase()
  const span = /^([+-])(\d{1,4})([mhdw])$/.exec(word)
  if (span !== null) {
    const [, sign, count = '', unit = ''] = span
    return nowMs + (sign === '-' ? -1 : 1) * Number(count) * (UNIT_MS[unit] ?? 0)
  }
  const day = dayIn(word, wallClock(nowMs, zone), edge)
  if (day !== null) return instantAt(edge === 'begin' ? day : day + DAY_MS, zone)
  if (!/^[1-9]\d{3}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:\d\d)?$/.test(word)) return null
  const isLocal = /t[^z+-]*$/.test(word)
  const ms = parseInstantText(isLocal ? `${word}z` : word)
  return Number.isNaN(ms) ? null : isLocal ? instantAt(ms, zone) : ms
}

/** The URL with the exact instant in place of an `as_of` that depends on the reader and the day; null: there is none. */
export function exactUrl({ url, query, reading }: Written): string | null {
  const ms = instantIn(query('as_of'), reading, 'begin')
  if (url === null || ms === null || /[tT].*(?:[zZ]|[+-]\d\d:\d\d)$/.test(query('as_of').trim())) return null
  const [path = '', parameters] = url.split('?', 2)
  const all = new URLSearchParams(parameters)
  all.set('as_of', new Date(ms).toISOString())
  return `${path}?${all}`
}
type Written = { readonly url: string | null; readonly reading: Reading; query(name: string): string }

/** The beginning of a day, by the clock of the reader's zone. */
function dayIn(word: string, nowMs: number, edge: 'begin' | 'end'): number | null {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  if (Object.hasOwn(DAYS, word)) return today + (DAYS[word] ?? 0) * DAY_MS
  if (/^[1-9]\d{3}-\d\d-\d\d$/.test(word)) {
    const ms = parseInstantText(word)
    return Number.isNaN(ms) ? null : ms
  }
  const weekday = word.length < 3 ? -1 : WEEKDAYS.findIndex((one) => one === word || one.slice(0, 3) === word)
  if (weekday === -1) return null
  const ahead = (weekday - new Date(today).getUTCDay() + 7) % 7
  return today + (edge === 'begin' && ahead > 0 ? ahead - 7 : ahead) * DAY_MS
}

/** The time that clocks of the zone show, as if they showed UTC. */
function wallClock(ms: number, zone: string): number {
  if (zone === 'UTC') return ms
  const parts = new Map(
    clockFormat(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const at = (part: Intl.DateTimeFormatPartTypes): number => parts.get(part) ?? 0
  const seconds = Date.UTC(at('year'), at('month') - 1, at('day'), at('hour'), at('minute'), at('second'))
  return seconds + (((ms % 1000) + 1000) % 1000)
}

/** The first instant at which clocks of the zone show this time; if they skip it, the instant as long after the change of clocks. */
function instantAt(wallMs: number, zone: string): number {
  const shiftAround = (around: number): number => wallClock(around, zone) - around
  const [first, last] = [wallMs - DAY_MS, wallMs + DAY_MS]
    .map((around) => wallMs - shiftAround(around))
    .toSorted((one, other) => one - other)
  if (first === undefined || last === undefined) return wallMs
  return wallClock(first, zone) === wallMs ? first : last
}
