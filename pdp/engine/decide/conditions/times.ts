/** Instants and durations of conditions: read from text, written as text, and instants as calendar dates. */
import { create } from '@bufbuild/protobuf'
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'

const SECOND = 1_000_000_000n
const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
}

/** Reads a duration in Go's form: `1h30m`, `-1.5h`, `100ms`. Null for anything else, and beyond 64 bits of nanoseconds. */
export function parseDuration(text: string): Duration | null {
  if (text.length > 100) return null
  const [, sign, rest = ''] = /^([+-]?)(0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text) ?? []
  if (rest === '') return null
  let nanoseconds = 0n
  for (const [, whole = '', decimals = '', unit = ''] of rest.matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g)) {
    const scale = NANOSECONDS[unit] ?? 0n
    nanoseconds += (BigInt(`${whole}${decimals}` || '0') * scale) / 10n ** BigInt(decimals.length)
  }
  if (nanoseconds > 2n ** 63n - 1n) return null
  if (sign === '-') nanoseconds = -nanoseconds
  return create(DurationSchema, { seconds: nanoseconds / SECOND, nanos: Number(nanoseconds % SECOND) })
}

export const nanosecondsOf = ({ seconds, nanos }: Duration): bigint => seconds * SECOND + BigInt(nanos)

const INSTANT =
  /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9})\d*)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/

/** Reads an instant of RFC 3339. Null for anything else, and for a day that the month does not have. */
export function parseInstant(text: string): Timestamp | null {
  const [, day = '', time = '', decimals = '', sign = '+', hours = '0', minutes = '0'] = INSTANT.exec(text) ?? []
  const local = new Date(`${day}T${time}Z`)
  // Date may carry a day that the month does not have over to the next month.
  if (Number.isNaN(local.getTime()) || local.toISOString().slice(0, 10) !== day) return null
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000)
  const seconds = BigInt((local.getTime() - offsetMs) / 1_000)
  return create(TimestampSchema, { seconds, nanos: Number(decimals.padEnd(9, '0')) })
}

/** The instant; null before the year 1 and after the year 9999. */
export const withinYears = (instant: Timestamp): Timestamp | null =>
  instant.seconds < -62_135_596_800n || instant.seconds > 253_402_300_799n ? null : instant

/** The instant as text in UTC, without trailing zeros after the decimal point. */
export function instantText({ seconds, nanos }: Timestamp): string {
  const decimals = `.${String(nanos).padStart(9, '0')}`.replace(/\.?0+$/, '')
  return `${new Date(Number(seconds) * 1_000).toISOString().slice(0, 19)}${decimals}Z`
}

/** A Date whose UTC fields show the instant in the zone (`Europe/Berlin`, `+02:00`; empty for UTC). */
export function localDate({ seconds, nanos }: Timestamp, zone: string): Date {
  const utc = new Date(Number(seconds) * 1_000 + Math.floor(nanos / 1_000_000))
  if (zone === '') return utc
  const [, sign, hours, minutes] = /^([+-]?)(\d{1,2}):(\d{1,2})$/.exec(zone) ?? []
  if (hours !== undefined && minutes !== undefined) {
    if (Number(hours) > 23 || Number(minutes) > 59) throw new RangeError('there is no such offset')
    const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000
    return new Date(utc.getTime() + (sign === '-' ? -offsetMs : offsetMs))
  }
  if (!/^[A-Za-z]/.test(zone) || isAbbreviation(zone)) throw new RangeError('there is no such time zone')
  const fields = Object.fromEntries(
    clockFormat(zone)
      .formatToParts(utc)
      .map((p) => [p.type, p.value]),
  )
  const local = new Date(utc)
  local.setUTCFullYear(Number(fields.year), Number(fields.month) - 1, Number(fields.day))
  local.setUTCHours(Number(fields.hour), Number(fields.minute), Number(fields.second))
  // A formatter counts years before the year 1 backwards (1 BC, 2 BC), so the date would be wrong.
  if (!(Math.abs(local.getTime() - utc.getTime()) <= 86_400_000)) throw new RangeError('there is no such year')
  return local
}

/** Abbreviations are refused: JavaScript reads some by a table of its own, such as `BST` for Dhaka and `AST` for Anchorage. */
const isAbbreviation = (zone: string): boolean =>
  /^(?:[a-z]{3}|SystemV\/.*)$/i.test(zone) && !/^(?:CET|EET|EST|GMT|HST|MET|MST|PRC|ROC|ROK|UCT|UTC|WET)$/i.test(zone)

const FIELDS = {
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
} as const

/** Formatters by zone: making one takes several times as long as using it. */
const formats = new BoundedMap<string, Intl.DateTimeFormat>(100)
/** A formatter that shows the numbers of a clock in the zone. Throws RangeError for an unknown zone. */
export const clockFormat = (zone: string): Intl.DateTimeFormat =>
  formats.getOrMake(zone, () => new Intl.DateTimeFormat('en-US', { ...FIELDS, timeZone: zone }))
