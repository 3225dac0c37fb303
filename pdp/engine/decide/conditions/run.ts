/** Evaluates the conditions of one question, each once per stored tuple. Nothing is kept for later questions. */
import type { JsonObject, JsonValue } from '../../../shared/domain/json.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { type Arguments, Condition, type ConditionDefinition, type Evaluation } from './condition.ts'
import { REQUEST_STEPS_MAX } from './cost.ts'
import { CLOCK } from './instants.ts'

/** The clock that evaluations read, and where they note how long their result holds. */
type Clock = { clockMs(): number; noteUntil(instantMs: number): void }
type Compiled = {
  readonly condition: Condition
  /** The values from the question's context, by parameter. */
  readonly asked: Arguments
  readonly evaluations: Map<TupleCondition, Evaluation>
}
const NO_CONTEXT: JsonObject = {}

export class ConditionRun {
  readonly #context: JsonObject
  readonly #clock: Clock
  readonly #known = new Map<ConditionDefinition, Compiled>()
  #steps = 0

  constructor(clock: Clock, context: JsonObject = NO_CONTEXT) {
    this.#clock = clock
    this.#context = context
  }

  evaluate(definition: ConditionDefinition, stored: TupleCondition): Evaluation {
    const { condition, asked, evaluations } = this.#of(definition, stored.name)
    const known = evaluations.get(stored)
    if (known !== undefined) return known
    const evaluation = condition.evaluate(condition.storedArguments(stored.context), asked, {
      nowMs: () => this.#clock.clockMs(),
      spend: (steps) => {
        this.#steps += steps
        return this.#steps <= REQUEST_STEPS_MAX
      },
    })
    if (evaluation.ok && evaluation.untilMs !== null) this.#clock.noteUntil(evaluation.untilMs)
    evaluations.set(stored, evaluation)
    return evaluation
  }

  /** The values on which an evaluation of the condition depends, as text for an explanation. */
  seenBy(definition: ConditionDefinition, stored: TupleCondition): string {
    const { parameters } = this.#of(definition, stored.name).condition
    const clock = { [CLOCK]: new Date(this.#clock.clockMs()).toISOString() }
    return seenValues(parameters.keys(), [stored.context, this.#context, clock])
  }

  #of(definition: ConditionDefinition, name: string): Compiled {
    const known = this.#known.get(definition)
    if (known !== undefined) return known
    const condition = Condition.of(name, definition)
    const made = { condition, asked: condition.argumentsOf(this.#context), evaluations: new Map() }
    this.#known.set(definition, made)
    return made
  }
}

/** An explanation shows at most this many values of this length. Parameters with a name like a secret's are hidden. */
const NAMED_MAX = 10
const CHARACTERS_MAX = 80
const SECRET =
  /(?:^|_)(?:authorization|cookie|credentials?|pass(?:word|wd|phrase)|secrets?|tokens?|(?:api|private)_?keys?)(?:$|_)/i

/** The parameters' values as text. The first context that has a parameter counts. */
function seenValues(parameters: Iterable<string>, contexts: readonly JsonObject[]): string {
  const seen = [...parameters].map((name) => {
    const context = contexts.find((one) => Object.hasOwn(one, name))
    return `${name} = ${SECRET.test(snakeCase(name)) ? '(hidden)' : shortened(context?.[name] ?? null)}`
  })
  const more = seen.length > NAMED_MAX ? [`${seen.length - NAMED_MAX} more`] : []
  return [...seen.slice(0, NAMED_MAX), ...more].join(', ')
}

const snakeCase = (name: string): string => name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_')

function shortened(value: JsonValue): string {
  const text = JSON.stringify(value)
  return text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text
}
