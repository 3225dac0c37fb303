/** Functions and operators that conditions may use: those of the CEL standard library, and those of addresses. */
import { grouped } from '../../../shared/domain/grouped.ts'

/** `args`: the kinds of the arguments; a method's target comes first. `method` null: callable as a function and as a method. */
export type Overload = { readonly args: readonly string[]; readonly result: string; readonly method: boolean | null }

const OPERATORS: readonly string[] = [
  '_&&_(bool,bool)bool',
  '_||_(bool,bool)bool',
  '!_(bool)bool',
  '@not_strictly_false(dyn)bool',
  ...['_<_', '_<=_', '_>_', '_>=_'].flatMap((name) => [
    ...['bool', 'string', 'bytes', 'timestamp', 'duration'].map((kind) => `${name}(${kind},${kind})bool`),
    ...['int', 'uint', 'double'].flatMap((a) => ['int', 'uint', 'double'].map((b) => `${name}(${a},${b})bool`)),
  ]),
  ...['_+_', '_-_', '_*_', '_/_'].flatMap((name) =>
    ['int', 'uint', 'double'].map((kind) => `${name}(${kind},${kind})${kind}`),
  ),
  ...['int', 'uint'].map((kind) => `_%_(${kind},${kind})${kind}`),
  '-_(int)int',
  '-_(double)double',
  ...['string', 'bytes', 'duration'].map((kind) => `_+_(${kind},${kind})${kind}`),
  '_+_(timestamp,duration)timestamp',
  '_+_(duration,timestamp)timestamp',
  '_-_(timestamp,timestamp)duration',
  '_-_(timestamp,duration)timestamp',
  '_-_(duration,duration)duration',
]

const FUNCTIONS: readonly string[] = [
  ...['string', 'bytes', 'list', 'map'].map((kind) => `size(${kind})int`),
  'matches(string,string)bool',
]

const ONLY_FUNCTIONS: readonly string[] = [
  ...['int', 'uint', 'double', 'string', 'timestamp', 'duration'].map((kind) => `int(${kind})int`),
  ...['int', 'uint', 'double', 'string'].flatMap((kind) => [`uint(${kind})uint`, `double(${kind})double`]),
  ...['bool', 'int', 'uint', 'double', 'string', 'bytes', 'timestamp', 'duration'].map((k) => `string(${k})string`),
  ...['bool', 'string'].map((kind) => `bool(${kind})bool`),
  ...['bytes', 'string'].map((kind) => `bytes(${kind})bytes`),
  ...['timestamp', 'string', 'int'].map((kind) => `timestamp(${kind})timestamp`),
  ...['duration', 'string'].map((kind) => `duration(${kind})duration`),
  'dyn(dyn)dyn',
  'type(dyn)type',
  'ipaddress(string)ipaddress',
]

const CLOCK = ['getHours', 'getMinutes', 'getSeconds', 'getMilliseconds']
const CALENDAR = ['getFullYear', 'getMonth', 'getDate', 'getDayOfMonth', 'getDayOfWeek', 'getDayOfYear']
const METHODS: readonly string[] = [
  ...['contains', 'startsWith', 'endsWith'].map((name) => `${name}(string,string)bool`),
  ...[...CLOCK, ...CALENDAR].flatMap((name) => [`${name}(timestamp)int`, `${name}(timestamp,string)int`]),
  ...CLOCK.map((name) => `${name}(duration)int`),
  'in_cidr(ipaddress,string)bool',
]

function overload(text: string, method: boolean | null): readonly [string, Overload] {
  const [, name = '', args = '', result = ''] = /^(.+)\((.*)\)(\w+)$/.exec(text) ?? []
  return [name, { args: args.split(','), result, method }]
}

export const OVERLOADS: ReadonlyMap<string, readonly Overload[]> = new Map(
  [
    ...grouped(
      [
        ...OPERATORS.map((text) => overload(text, false)),
        ...FUNCTIONS.map((text) => overload(text, null)),
        ...ONLY_FUNCTIONS.map((text) => overload(text, false)),
        ...METHODS.map((text) => overload(text, true)),
      ],
      ([name]) => name,
    ),
  ].map(([name, all]) => [name, all.map(([, one]) => one)]),
)
