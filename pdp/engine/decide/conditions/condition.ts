/** Conditions of a relation model: compiled with the model, evaluated for one tuple and the context of one question. */
import { type CelInput, celEnv, isCelError, plan } from '@bufbuild/cel'
import { create } from '@bufbuild/protobuf'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { ADDRESS_FUNCTIONS, ADDRESS_REGISTRY } from './addresses.ts'
import { CONVERSIONS } from './conversions.ts'
import { EVALUATION_STEPS_MAX, stepsOf, WORST_STEPS_MAX, worstSteps } from './cost.ts'
import { ExpressionMistake, parseExpression } from './expression.ts'
import { assertBoolean } from './expression-types.ts'
import { CLOCK, createNextInstant, type NextInstant } from './instants.ts'
import {
  celValueOf,
  type ParameterReference,
  type ParameterType,
  parseParameterType,
  type Size,
  typeName,
  ValueMismatch,
} from './parameters.ts'

/** A condition in the JSON form of a model. */
export type ConditionDefinition = {
  readonly name?: string
  readonly expression?: string
  readonly parameters?: { readonly [name: string]: ParameterReference }
}

/** Values of parameters, and messages about values of a wrong type. */
export type Arguments = {
  readonly values: { readonly [parameter: string]: CelInput }
  readonly mismatches: { readonly [parameter: string]: string }
  readonly size: Size
}
/** `ok` false: the condition could not be evaluated with these values. */
export type Evaluation =
  | { readonly ok: true; readonly holds: boolean; readonly untilMs: number | null }
  | { readonly ok: false; readonly message: string; readonly missing: readonly string[] }

export class Condition {
  readonly name: string
  readonly parameters: ReadonlyMap<string, ParameterType>
  readonly #run: (bindings: Record<string, CelInput>) => unknown
  /** The next instant at which the result may change; null: the condition does not read the clock. */
  readonly #nextInstant: NextInstant | null
  /** The cost for values of a size; null when even the largest values cost little. */
  readonly #stepsOf: ((size: Size) => number) | null
  /** Compiled conditions. A model is plain data that threads send to each other, so each thread compiles what it needs. */
  static readonly #compiled = new WeakMap<ConditionDefinition, Condition>()
  /** Converted contexts of stored tuples, so that each is converted only once. */
  readonly #stored = new WeakMap<JsonObject, Arguments>()

  /** @throws ExpressionMistake. */
  constructor(name: string, { expression: text = '', parameters = {} }: ConditionDefinition) {
    this.name = name
    this.parameters = new Map(Object.entries(parameters).map(([key, type]) => [key, parameterType(key, type)] as const))
    const expression = parseExpression(text)
    assertBoolean(expression, this.parameters)
    const worst = worstSteps(expression, this.parameters)
    if (worst > WORST_STEPS_MAX)
      throw new ExpressionMistake('would take too long for large values; nest fewer macros, and match shorter patterns')
    this.#stepsOf = worst <= EVALUATION_STEPS_MAX ? null : (size) => stepsOf(expression, this.parameters, size)
    const env = celEnv({ funcs: [...ADDRESS_FUNCTIONS, ...CONVERSIONS], registry: ADDRESS_REGISTRY })
    this.#run = plan(env, expression)
    this.#nextInstant = this.parameters.get(CLOCK)?.kind === 'timestamp' ? createNextInstant(env, expression) : null
  }

  /** @throws ExpressionMistake for a condition that would have kept its model from being compiled. */
  static of(name: string, definition: ConditionDefinition): Condition {
    const known = Condition.#compiled.get(definition)
    if (known !== undefined) return known
    const condition = new Condition(name, definition)
    Condition.#compiled.set(definition, condition)
    return condition
  }

  /** Converts a context. Values under names that are no parameters are ignored. */
  argumentsOf(context: JsonObject): Arguments {
    const values: Record<string, CelInput> = Object.create(null)
    const mismatches: Record<string, string> = Object.create(null)
    const size = { elements: 0, characters: 0 }
    for (const [name, type] of this.parameters) {
      if (!Object.hasOwn(context, name)) continue
      try {
        values[name] = celValueOf(type, context[name] ?? null, size)
      } catch (err) {
        if (!(err instanceof ValueMismatch)) throw err
        mismatches[name] = `${name} ${err.message} (${typeName(type)})`
      }
    }
    return { values, mismatches, size }
  }

  storedArguments(context: JsonObject): Arguments {
    const known = this.#stored.get(context)
    if (known !== undefined) return known
    const found = this.argumentsOf(context)
    this.#stored.set(context, found)
    return found
  }

  /** Evaluates the condition. Values of the tuple win over those of the question. `spend`: false after the request's last step. */
  evaluate(
    stored: Arguments,
    asked: Arguments,
    { nowMs, spend }: { readonly nowMs: () => number; readonly spend: (steps: number) => boolean },
  ): Evaluation {
    const bindings: Record<string, CelInput> = Object.create(null)
    const missing: string[] = []
    let clockMs: number | null = null
    for (const name of this.parameters.keys()) {
      const { values, mismatches } = name in stored.values || name in stored.mismatches ? stored : asked
      const [value, mismatch] = [values[name], mismatches[name]]
      if (mismatch !== undefined) return failed(`the context of condition "${this.name}" does not fit: ${mismatch}`)
      if (value !== undefined) bindings[name] = value
      else if (name === CLOCK && this.#nextInstant !== null) {
        clockMs = nowMs()
        bindings[name] = timestamp(clockMs)
      } else missing.push(name)
    }
    if (missing.length > 0) return failed(missingMessage(this.name, missing), missing.sort())
    const steps = this.#stepsOf?.(larger(stored.size, asked.size)) ?? 1
    if (steps > EVALUATION_STEPS_MAX || !spend(steps))
      return failed(`condition "${this.name}" takes too long with these values; send smaller lists and texts`)
    const result = this.#run(bindings)
    if (typeof result !== 'boolean')
      return failed(`condition "${this.name}" cannot be evaluated with these values${reasonOf(result)}`)
    const untilMs = clockMs === null ? null : (this.#nextInstant?.(bindings, clockMs) ?? null)
    return { ok: true, holds: result, untilMs }
  }
}

/** The most conditions of one model. */
const CONDITIONS_MAX = 100

export function conditionIssues(definitions: {
  readonly [name: string]: ConditionDefinition
}): readonly { readonly spot: { readonly condition?: string }; readonly message: string }[] {
  const defined = Object.entries(definitions)
  if (defined.length > CONDITIONS_MAX)
    return [{ spot: {}, message: `the model has more than ${CONDITIONS_MAX} conditions` }]
  return defined.flatMap(([condition, definition]) => {
    try {
      Condition.of(condition, definition)
      return []
    } catch (err) {
      if (!(err instanceof ExpressionMistake)) throw err
      return [{ spot: { condition }, message: `condition "${condition}" ${err.message}` }]
    }
  })
}

function missingMessage(condition: string, missing: readonly string[]): string {
  const names = missing.map((name) => `"${name}"`).join(', ')
  return `condition "${condition}" needs ${names} in the context of the question`
}

const failed = (message: string, missing: readonly string[] = []): Evaluation => ({ ok: false, message, missing })

/** The library's reason if it is a known one, else a general one: other messages could reveal values. */
function reasonOf(result: unknown): string {
  const text = isCelError(result) ? result.message : ''
  const known = ['divide by zero', 'division by zero', 'modulus by zero', 'overflow', 'no such key', 'no such overload']
  const found = known.find((reason) => text.includes(reason))
  return found === undefined ? '' : ` (${found})`
}

const larger = (a: Size, b: Size): Size => ({
  elements: Math.max(a.elements, b.elements),
  characters: Math.max(a.characters, b.characters),
})

function timestamp(ms: number): CelInput {
  const seconds = Math.floor(ms / 1_000)
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.floor((ms - seconds * 1_000) * 1e6) })
}

function parameterType(name: string, reference: ParameterReference): ParameterType {
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) || name === '__proto__')
    throw new ExpressionMistake(`has a parameter ${JSON.stringify(name)} that is not a name`)
  const type = parseParameterType(reference)
  if (typeof type === 'string') throw new ExpressionMistake(`has a parameter ${name}: ${type}`)
  return type
}
