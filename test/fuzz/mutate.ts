/** Changes a text at random, from a seed: as text, as JSON, and as the JSON in the parts of a JWS. */
import { pick, type Random } from '../sidecar/fuzz/targets.ts'

const CHARACTERS_MAX = 6_000
const ODD = [
  '\0',
  '\n',
  '\r',
  '\t',
  ' ',
  '"',
  "'",
  '\\',
  '/',
  '#',
  '@',
  ':',
  '*',
  '%',
  '{',
  '[',
  ',',
  'é',
  '\u{1f600}',
  '\ud800',
  '\u2028',
]
const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  Number.MAX_VALUE,
  2 ** 53,
  '',
  'x',
  '__proto__',
  [],
  {},
  [[]],
  { '': null },
]

/** `words`: pieces that mean something to the parser. */
export function mutated(text: string, seeds: readonly string[], words: readonly string[], random: Random): string {
  let result = text
  for (let left = 1 + Math.floor(random() * 3); left > 0; left--) result = step(result, seeds, words, random)
  return result.slice(0, CHARACTERS_MAX)
}

function step(text: string, seeds: readonly string[], words: readonly string[], random: Random): string {
  const at = Math.floor(random() * (text.length + 1))
  const end = Math.min(text.length, at + 1 + Math.floor(random() * 12))
  const [before, cut, after] = [text.slice(0, at), text.slice(at, end), text.slice(end)]
  const steps: readonly (() => string)[] = [
    () => before + pick(random, ODD) + cut + after,
    () => before + pick(random, [...words, ...ODD]) + cut + after,
    () => before + pick(random, [...words, ...ODD]) + after,
    () => before + after,
    () => before + cut + cut + after,
    () => before + cut.repeat(1 + Math.floor(random() * 200)) + after,
    () => before + String.fromCharCode(Math.floor(random() * 256)) + after,
    () => before + text.slice(Math.floor(random() * text.length)),
    () => before + pick(random, seeds).slice(at),
    () => inJson(text, random) ?? before + after,
    () => inJson(text, random) ?? inJws(text, random) ?? before + after,
  ]
  return pick(random, steps)()
}

/** With another value somewhere. Undefined where the text is no JSON. */
function inJson(text: string, random: Random): string | undefined {
  try {
    return JSON.stringify(otherValue(JSON.parse(text), random))
  } catch {
    return undefined
  }
}

function otherValue(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random() < 0.15) return pick(random, ODD_VALUES)
  if (Array.isArray(value)) return changedIn(value, random)
  const entries = Object.entries(value)
  if (entries.length === 0) return pick(random, ODD_VALUES)
  const chosen = Math.floor(random() * entries.length)
  const way = random()
  return Object.fromEntries(
    entries.flatMap(([name, member], at): [string, unknown][] => {
      if (at !== chosen) return [[name, member]]
      if (way < 0.1) return []
      return way < 0.2 ? [[`${name}x`, member]] : [[name, otherValue(member, random)]]
    }),
  )
}

function changedIn(values: readonly unknown[], random: Random): unknown[] {
  const chosen = Math.floor(random() * (values.length + 1))
  if (chosen === values.length) return [...values, pick(random, [...values, ...ODD_VALUES])]
  return values.flatMap((value, at) => (at !== chosen ? [value] : random() < 0.1 ? [] : [otherValue(value, random)]))
}

function inJws(text: string, random: Random): string | undefined {
  const parts = text.split('.')
  if (parts.length !== 3) return undefined
  const chosen = random() < 0.5 ? 0 : 1
  const changed = inJson(Buffer.from(parts[chosen] ?? '', 'base64url').toString(), random)
  if (changed === undefined) return undefined
  return parts.map((part, at) => (at === chosen ? Buffer.from(changed).toString('base64url') : part)).join('.')
}
