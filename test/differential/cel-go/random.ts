/** Random expressions. */
import { pick, type Random } from '../../sidecar/fuzz/targets.ts'
import type { CelQuestion } from './ask.ts'
import { POOLS } from './values.ts'

/** Expressions of a type by other expressions: `$string` stands for one of that type. */
const RULES: { readonly [type: string]: readonly string[] } = {
  bool: [
    '$bool && $bool',
    '$bool || $bool',
    '!($bool)',
    '$bool ? $bool : $bool',
    ...['<', '<=', '>', '>=', '==', '!='].flatMap((op) =>
      ['string', 'int', 'uint', 'double', 'timestamp', 'duration', 'bytes'].map((type) => `$${type} ${op} $${type}`),
    ),
    ...['string', 'int', 'uint'].map((type) => `dyn($${type}) == dyn($int)`),
    'dyn($double) < dyn($int)',
    'dyn($uint) >= dyn($int)',
    'dyn($double) <= dyn($uint)',
    '$string in $list',
    '$string in $map',
    '$string.startsWith($string)',
    '$string.contains($string)',
    '$string.endsWith($string)',
    '$string.matches("^[0-9]+$")',
    'matches($string, "a|b")',
    'has($map.a)',
    '$list == $list',
    '$map == $map',
    '$list.exists(e, e < $string)',
    '$list.all(e, int(e) > $int)',
    '$list.exists_one(e, e == $string)',
    '$map.exists(k, $map[k] == k)',
    'bool($string)',
    'any == $dyn',
    '$dyn != any',
    '$dyn in [1, "a", null]',
    '"a" in any',
    'has(any.a)',
    'any.a == $dyn',
    'any[0] == 1',
    'has(any.a.b)',
    'm.toString == $string',
    'has(m.toString)',
    '$string.matches($string)',
    '"a" in m',
    'm[$string] == $string',
    '$string.size() == $int',
    '$int in [$int, $int]',
    'dyn($int) in [dyn($uint), $string]',
    'any in l',
    'any == l',
    'type($dyn) == type($dyn)',
    '{$string: 1} == {$string: 1}',
    '$int in {$int: true}',
    'size(any) > $int',
  ],
  string: [
    'string($int)',
    'string($uint)',
    'string($double)',
    'string($bool)',
    'string($timestamp)',
    'string($duration)',
    '$string + $string',
    '$list[$int]',
    '$map[$string]',
    '$map.a',
    '$bool ? $string : $string',
    'string($bytes)',
    '"\\u00e9\\U0001F600"',
    "r'\\d'",
    '"7"',
  ],
  int: [
    'int($string)',
    'int($double)',
    'int($uint)',
    'int($timestamp)',
    'int($duration)',
    '$int + $int',
    '$int - $int',
    '$int * $int',
    '$int / $int',
    '$int % $int',
    '-(int_1)',
    'size($string)',
    'size($list)',
    '$map.size()',
    '$timestamp.getHours()',
    '$timestamp.getDayOfYear("Europe/Berlin")',
    '$duration.getMilliseconds()',
    '$duration.getMinutes()',
    '7',
    '-1',
  ],
  uint: [
    'uint($string)',
    'uint($int)',
    'uint($double)',
    '$uint + $uint',
    '$uint - $uint',
    '$uint * $uint',
    '$uint / $uint',
    '$uint % $uint',
    '7u',
  ],
  double: [
    'double($string)',
    'double($int)',
    'double($uint)',
    '$double + $double',
    '$double - $double',
    '$double * $double',
    '$double / $double',
    '-($double)',
    '0.5',
    '1e6',
  ],
  timestamp: [
    'timestamp($string)',
    'timestamp($int)',
    '$timestamp + $duration',
    '$timestamp - $duration',
    'timestamp("2026-01-31T12:00:00Z")',
  ],
  duration: [
    'duration($string)',
    '$timestamp - $timestamp',
    '$duration + $duration',
    '$duration - $duration',
    'duration("1h30m")',
  ],
  bytes: ['bytes($string)', '$bytes + $bytes', "b'\\xffa'", "b'a'"],
  list: ['[$string, $string]', '$list + $list', '$list.filter(e, e != $string)', '$list.map(e, e + "x")', '[]'],
  map: ['{"a": $string, $string + "k": "b"}', '{}'],
  dyn: [
    'dyn($int)',
    'dyn($string)',
    'dyn($uint)',
    'null',
    'any',
    'dyn($list)',
    'dyn($map)',
    'dyn($timestamp)',
    'dyn($duration)',
  ],
}
const LEAVES: { readonly [type: string]: readonly string[] } = {
  list: ['l'],
  map: ['m'],
  dyn: ['any'],
  bytes: ["b'a'"],
  bool: ['b'],
}
const LEAF_TYPES: { readonly [name: string]: string } = { l: 'list<string>', m: 'map<string>', any: 'any', b: 'bool' }

function make(random: Random, type: string, depth: number): string {
  if (depth <= 0 || (type !== 'bool' && random() < 0.25)) {
    const leaves = LEAVES[type] ?? [1, 2].map((n) => `${type}_${n}`)
    return pick(random, leaves)
  }
  return pick(random, RULES[type] ?? []).replace(/\$(\w+)/g, (_, inner: string) => {
    const made = make(random, inner, depth - 1)
    return /^[\w.]+$/.test(made) ? made : `(${made})`
  })
}

/** An expression of true or false, with values for the parameters that it names. */
export function randomQuestion(random: Random): CelQuestion {
  const expression = make(random, 'bool', 3)
  const names = new Set(
    expression.match(/\b(?:(?:string|int|uint|double|timestamp|duration)_\d|l|m|any|b)\b(?!['"|])/g) ?? [],
  )
  const types = Object.fromEntries([...names].map((name) => [name, LEAF_TYPES[name] ?? name.replace(/_\d$/, '')]))
  const values = Object.fromEntries(
    Object.entries(types).map(([name, type]) => [name, pick(random, POOLS[type] ?? [])]),
  )
  return { expression, types, values }
}
