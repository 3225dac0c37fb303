/** Conditions of random worlds: as models write them, as a reference evaluates them, and random values for them. */
import type { JsonObject, JsonValue } from '../../pdp/shared/domain/json.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'

type Definition = {
  readonly parameters: { readonly [name: string]: string }
  readonly expression: string
  readonly holds: (values: { readonly [name: string]: JsonValue }) => boolean | null
}
type Chance = {
  chance(share: number): boolean
  pick<T>(items: readonly T[]): T
}

/** An `int` may be a decimal text. Null: no such value. */
const integer = (value: JsonValue | undefined): number | null => {
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
  return Number.isInteger(number) ? Number(number) : null
}
const CONDITIONS: { readonly [name: string]: Definition } = {
  few: {
    parameters: { x: 'int' },
    expression: 'x < 5',
    holds({ x }) {
      const number = integer(x)
      return number === null ? null : number < 5
    },
  },
  both: {
    parameters: { x: 'int', y: 'string' },
    expression: 'x > 2 && y == "a"',
    holds({ x, y }) {
      const number = integer(x)
      return number === null || typeof y !== 'string' ? null : number > 2 && y === 'a'
    },
  },
  tagged: {
    parameters: { tags: 'list<string>', y: 'string' },
    expression: 'y in tags || y == "c"',
    holds({ tags, y }) {
      if (!Array.isArray(tags) || typeof y !== 'string') return null
      return tags.includes(y) || y === 'c'
    },
  },
}
export const CONDITION_NAMES = Object.keys(CONDITIONS)

export const conditionText = (name: string): string => {
  const { parameters = {}, expression = '' } = CONDITIONS[name] ?? {}
  const declared = Object.entries(parameters).map(([parameter, type]) => `${parameter}: ${type}`)
  return `condition ${name}(${declared.join(', ')}) {\n  ${expression}\n}`
}

/** What the tuple stores wins. Null: it cannot be told. */
export function holds({ condition }: Tuple, context: JsonObject): boolean | null {
  const definition = condition === undefined ? undefined : CONDITIONS[condition.name]
  if (definition === undefined || condition === undefined) return false
  const values = { ...context, ...condition.context }
  const isWhole = Object.keys(definition.parameters).every((name) => Object.hasOwn(values, name))
  return isWhole ? definition.holds(values) : null
}

/** Of a question; a quarter bring none. */
export function randomContext(random: Chance): JsonObject {
  if (random.chance(0.25)) return {}
  const context = valuesFor(random, ['x', 'y', 'tags'], 0.75)
  return random.chance(0.02) ? { ...context, x: 'none' } : context
}

/** Of a tuple. */
export const storedContext = (random: Chance, name: string): JsonObject =>
  valuesFor(random, Object.keys(CONDITIONS[name]?.parameters ?? {}), 0.4)

function valuesFor(random: Chance, names: readonly string[], share: number): JsonObject {
  const values: { [name: string]: JsonValue } = {}
  for (const name of names) {
    if (!random.chance(share)) continue
    if (name === 'x') values.x = random.pick([0, 1, 3, 4, 5, 7, '4', '6'])
    else if (name === 'y') values.y = random.pick(['a', 'b', 'c'])
    else values.tags = random.pick([[], ['a'], ['a', 'b'], ['b', 'd']])
  }
  return values
}
