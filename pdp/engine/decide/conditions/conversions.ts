/**
 * Replaces functions of the CEL library that follow JavaScript rather than CEL: a text is a number, an instant or a duration only
 * when OpenFGA reads it as one, and texts are ordered by code points.
 */
import { type CelFunc, CelScalar, celFunc, celMethod, celUint, isCelMap, mapType, objectType } from '@bufbuild/cel'
import { create } from '@bufbuild/protobuf'
import { DurationSchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { compareNames } from '../../../shared/domain/names.ts'
import { HAS } from './expression.ts'
import { instantText, localDate, nanosecondsOf, parseDuration, parseInstant, withinYears } from './times.ts'

const { BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT } = CelScalar
const INT_MIN = -(2n ** 63n)
const MAP = mapType(DYN, DYN)
const DURATION = objectType(DurationSchema)
const TIMESTAMP = objectType(TimestampSchema)

/** The value; an error thrown here becomes the result of the expression. */
function made<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('type conversion error')
  return value
}

const TRUTHS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'True', 'TRUE'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'False', 'FALSE'].map((text) => [text, false] as const),
])

const whole = (text: string, pattern: RegExp, min: bigint, max: bigint): bigint => {
  const found = pattern.test(text) && text.length <= 100 ? BigInt(text.replace('+', '')) : null
  return made(found !== null && found >= min && found <= max ? found : null)
}
const intOf = (text: string): bigint => whole(text, /^[+-]?\d+$/, INT_MIN, 2n ** 63n - 1n)

/** Reads a finite decimal number. "Infinity" is refused, since a comparison with it would always hold. */
function doubleOf(text: string): number {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : null
  return made(number !== null && Number.isFinite(number) ? number : null)
}

/** Writes a double as Go's `%g` does: `1e+06`, `1e-07`, `0.25`. */
function doubleText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  if (Object.is(value, -0)) return '-0'
  const [, digits, sign, exponent = ''] = /^(.+)e([+-])(\d+)$/.exec(value.toExponential()) ?? []
  const isLarge = sign === '+' ? Number(exponent) >= 6 : Number(exponent) > 4
  return isLarge ? `${digits}e${sign}${exponent.padStart(2, '0')}` : String(value)
}

/** Seconds as text, in the form of Go's `FormatFloat(seconds, 'f', -1, 64)`. */
function secondsText(seconds: number): string {
  const [, sign, whole = '', decimals = '', exponent] = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/.exec(String(seconds)) ?? []
  return exponent === undefined ? `${seconds}s` : `${sign}0.${'0'.repeat(Number(exponent) - 1)}${whole}${decimals}s`
}

function divided(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new Error('divide by zero')
  return a / b
}

function remainder(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new Error('modulus by zero')
  if (b === -1n && a === INT_MIN) throw new Error('int overflow')
  return a % b
}

const MS_OF_DAY = 86_400_000
const CALENDAR: Readonly<Record<string, (date: Date) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - new Date(date).setUTCMonth(0, 1)) / MS_OF_DAY),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
}

const instant = (read: Timestamp | null): Timestamp => made(read === null ? null : withinYears(read))

export const CONVERSIONS: readonly CelFunc[] = [
  celFunc('bool', [STRING], BOOL, (text) => made(TRUTHS.get(text))),
  celFunc('int', [STRING], INT, intOf),
  // A duration becomes its nanoseconds, as in OpenFGA.
  celFunc('int', [DURATION], INT, ({ message }) => nanosecondsOf(message)),
  celFunc('uint', [STRING], UINT, (text) => celUint(whole(text, /^\d+$/, 0n, 2n ** 64n - 1n))),
  celFunc('double', [STRING], DOUBLE, doubleOf),
  celFunc('string', [DOUBLE], STRING, doubleText),
  celFunc('string', [BYTES], STRING, (bytes) =>
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
  ),
  celFunc('string', [TIMESTAMP], STRING, ({ message }) => instantText(message)),
  celFunc('string', [DURATION], STRING, ({ message }) => secondsText(Number(message.seconds) + message.nanos / 1e9)),
  celFunc('timestamp', [STRING], TIMESTAMP, (text) => instant(parseInstant(text))),
  celFunc('timestamp', [INT], TIMESTAMP, (seconds) => instant(create(TimestampSchema, { seconds }))),
  celFunc('duration', [STRING], DURATION, (text) => made(parseDuration(text))),
  celFunc('duration', [INT], DURATION, () => {
    throw new Error('no such overload: duration(int)')
  }),
  celFunc('_<_', [STRING, STRING], BOOL, (a, b) => compareNames(a, b) < 0),
  celFunc('_<=_', [STRING, STRING], BOOL, (a, b) => compareNames(a, b) <= 0),
  celFunc('_>_', [STRING, STRING], BOOL, (a, b) => compareNames(a, b) > 0),
  celFunc('_>=_', [STRING, STRING], BOOL, (a, b) => compareNames(a, b) >= 0),
  celFunc('_/_', [UINT, UINT], UINT, (a, b) => celUint(divided(a.value, b.value))),
  celFunc('_%_', [INT, INT], INT, remainder),
  // A key is in the map even if its value is null.
  ...[STRING, BOOL, INT, UINT, DOUBLE].map((key) =>
    celFunc('@in', [key, MAP], BOOL, (value, map) => map.get(value) !== undefined),
  ),
  celFunc(HAS, [DYN, STRING], BOOL, (value, key) => {
    if (isCelMap(value)) return value.get(key) !== undefined
    if (typeof value === 'object' && value !== null) throw new Error('no such overload: has')
    return false
  }),
  // The whole duration in milliseconds, as in OpenFGA, and not only the part below a second.
  celMethod('getMilliseconds', DURATION, [], INT, function () {
    return nanosecondsOf(this.message) / 1_000_000n
  }),
  // The library would read these fields in the time zone of the process.
  ...Object.entries(CALENDAR).flatMap(([name, field]) => [
    celMethod(name, TIMESTAMP, [], INT, function () {
      return BigInt(field(localDate(this.message, '')))
    }),
    celMethod(name, TIMESTAMP, [STRING], INT, function (zone) {
      return BigInt(field(localDate(this.message, zone)))
    }),
  ]),
]
