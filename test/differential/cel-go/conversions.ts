/** Conversions of each type, with values. */
import type { CelQuestion } from './ask.ts'
import { INSTANTS, POOLS, ZONE_NAMES } from './values.ts'

/** What leads from one type to a text, so that two readers can compare all of it. */
const TO_TEXT: { readonly [type: string]: readonly string[] } = {
  string: [
    'string(int(x))',
    'string(uint(x))',
    'string(double(x))',
    'string(bool(x))',
    'string(timestamp(x))',
    'string(duration(x))',
    'string(bytes(x))',
    'string(size(x))',
    'string(size(bytes(x)))',
    'string(int(timestamp(x)))',
    'string(int(duration(x)))',
  ],
  int: [
    'string(x)',
    'string(timestamp(x))',
    'string(uint(x))',
    'string(double(x))',
    'string(int(double(x)))',
    'string(-x)',
    'string(x * 2)',
    'string(x - 1)',
    'string(x / -1)',
    'string(x % -1)',
  ],
  uint: [
    'string(x)',
    'string(int(x))',
    'string(double(x))',
    'string(x + 1u)',
    'string(x - 1u)',
    'string(uint(double(x)))',
  ],
  double: [
    'string(x)',
    'string(int(x))',
    'string(uint(x))',
    'string(x * 10.0)',
    'string(x / 3.0)',
    'string(1.0 / x)',
    'string(-x)',
    'string(x / 0.0 <= 0.0)',
    'string(x / 0.0 > 0.0)',
    'string(x / 0.0 == x / 0.0)',
  ],
  bool: ['string(x)', 'string(bool(string(x)))', 'string(x < true)', 'string(!x)'],
  timestamp: [
    'string(x)',
    'string(int(x))',
    'string(timestamp(int(x)) == x)',
    'string(x - timestamp("2026-01-01T00:00:00Z"))',
    'string(x + duration("24h"))',
    'string(x - duration("0.5s"))',
    'string(timestamp(string(x)) == x)',
  ],
  duration: [
    'string(x)',
    'string(int(x))',
    'string(x.getHours())',
    'string(x.getMinutes())',
    'string(x.getSeconds())',
    'string(x.getMilliseconds())',
    'string(x + x)',
    'string(x - duration("1h"))',
    'string(duration(string(x)) == x)',
    'string(timestamp("2026-01-01T00:00:00Z") + x)',
  ],
}
const ACCESSORS = [
  'getFullYear',
  'getMonth',
  'getDate',
  'getDayOfMonth',
  'getDayOfWeek',
  'getDayOfYear',
  'getHours',
  'getMinutes',
  'getSeconds',
  'getMilliseconds',
]

/** Each gives a text or an error. */
export function conversionQuestions(): CelQuestion[] {
  const questions = Object.entries(TO_TEXT).flatMap(([type, expressions]) =>
    expressions.flatMap((expression) =>
      (POOLS[type] ?? []).map((x) => ({ expression, types: { x: type }, values: { x } })),
    ),
  )
  const fields = ACCESSORS.flatMap((name) =>
    INSTANTS.flatMap((x) => [
      { expression: `string(x.${name}())`, types: { x: 'timestamp' }, values: { x } },
      ...ZONE_NAMES.map((z) => ({
        expression: `string(x.${name}(z))`,
        types: { x: 'timestamp', z: 'string' },
        values: { x, z },
      })),
    ]),
  )
  // A value that is only known when it is evaluated chooses the same function.
  const dynamic = ['int', 'uint', 'double', 'string', 'bool', 'bytes', 'timestamp', 'duration'].flatMap((name) =>
    (POOLS.any ?? []).map((x) => ({
      expression: `string(type(${name}(x)) == ${name === 'bytes' ? 'bytes' : name === 'timestamp' || name === 'duration' ? `type(${name === 'timestamp' ? 'timestamp(0)' : 'duration("0")'})` : name})`,
      types: { x: 'any' },
      values: { x },
    })),
  )
  return [...questions, ...fields, ...dynamic]
}
