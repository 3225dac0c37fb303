/** Compares two models without stored tuples: who could gain and who could lose which relation. */
import type { ConditionDefinition } from '../../engine/decide/conditions/condition.ts'
import type { Model } from '../../engine/decide/model.ts'
import { type Counterexample, contains } from '../../engine/decide/models/containment.ts'
import type { TypeRelation } from '../../engine/decide/models/same-answers.ts'
import { directOf } from '../../engine/decide/restrictions.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JsonObject } from '../../shared/domain/json.ts'
import { tupleIssue } from '../model-test/question-issues.ts'
import { createWorld } from '../model-test/test-store.ts'
import type { FileTuple } from '../model-test/tuple-file.ts'
import { contextsFor } from './example-contexts.ts'

/** Tuples with which the subject has the relation under only one model, as confirmed by the engine. */
export type Example = {
  readonly subject: string
  readonly object: string
  readonly tuples: readonly FileTuple[]
  readonly context: JsonObject
}
/** The result. `nobody`: proved for all tuples. `undecided`: neither proof nor example was found. */
export type Outcome =
  | { readonly kind: 'nobody' | 'undecided' }
  | { readonly kind: 'somebody'; readonly example: Example }
export type Difference = TypeRelation & {
  /** The type of the subjects. */
  readonly subject: string
  readonly gain: Outcome
  readonly lose: Outcome
}

/** How many small sets of tuples are tried without a proof or a confirmed example. */
const WORLDS_MAX = 150
const WORLD_TUPLES_MAX = 8

/** The relations of both models, for each type of subject that a relation names. */
export async function diffModels({
  before,
  after,
}: {
  readonly before: Model
  readonly after: Model
}): Promise<readonly Difference[]> {
  const subjects = [...new Set([...subjectTypes(before), ...subjectTypes(after)])]
  const found: Difference[] = []
  for (const type of new Set([...before.keys(), ...after.keys()])) {
    const relations = new Set([...(before.get(type)?.keys() ?? []), ...(after.get(type)?.keys() ?? [])])
    for (const relation of relations)
      for (const subject of subjects) {
        const asked = { type, relation, subject }
        const gain = await outcome({ few: after, many: before }, asked)
        const lose = await outcome({ few: before, many: after }, asked)
        found.push({ ...asked, gain, lose })
      }
  }
  return found
}

/** Types of subjects that relations allow directly or by a wildcard. */
function subjectTypes(model: Model): readonly string[] {
  return [...model.values()].flatMap((relations) =>
    [...relations.values()].flatMap((expression) => {
      const { types, wildcards, conditional } = directOf(expression) ?? { types: [], wildcards: [], conditional: null }
      const named = [...types, ...wildcards, ...(conditional?.keys() ?? [])].filter((name) => !name.includes('#'))
      return named.map((name) => name.replace(/:\*$/, ''))
    }),
  )
}

type Asked = TypeRelation & { readonly subject: string }
/** Asks whether any subject could have the relation under `few` but not under `many`. */
type Sides = { readonly few: Model; readonly many: Model }

async function outcome(sides: Sides, asked: Asked): Promise<Outcome> {
  const found = contains(sides.many, sides.few, asked, asked.subject)
  if (found === 'proved') return { kind: 'nobody' }
  const guess = found === null ? null : await confirmed(sides, asked, tuplesOf(found, asked))
  const example = guess ?? (await searched(sides, asked))
  return example === null ? { kind: 'undecided' } : { kind: 'somebody', example: await smallest(sides, asked, example) }
}

const SUBJECT_ID = 'anne'
const tuple = (object: string, relation: string, user: string, condition: string | null): FileTuple => ({
  object,
  relation,
  user,
  condition: condition === null ? null : { name: condition, context: {} },
  file: '',
  line: 0,
})

/** The tuples of an example. Objects of a type are numbered; the first one is the object in question. */
function tuplesOf(example: Counterexample, { subject }: Asked): readonly FileTuple[] {
  const counts = new Map<string, number>()
  const tuples: FileTuple[] = []
  const visit = (at: Counterexample): string => {
    const number = (counts.get(at.type) ?? 0) + 1
    counts.set(at.type, number)
    const object = `${at.type}:${number}`
    for (const { relation, condition, names } of at.tuples) {
      const user =
        names === 'subject'
          ? `${subject}:${SUBJECT_ID}`
          : names === 'everybody'
            ? `${subject}:*`
            : `${visit(names.object)}${names.relation === null ? '' : `#${names.relation}`}`
      tuples.push(tuple(object, relation, user, condition?.split(' ')[0] ?? null))
    }
    return object
  }
  visit(example)
  return tuples
}

/** The example, if the engine confirms it under both models. Null: the tuples show no difference. */
async function confirmed(sides: Sides, asked: Asked, tuples: readonly FileTuple[]): Promise<Example | null> {
  const [subject, object] = [`${asked.subject}:${SUBJECT_ID}`, `${asked.type}:1`]
  const holds = async (model: Model): Promise<(context: JsonObject) => Promise<boolean | null>> => {
    if (model.get(asked.type)?.has(asked.relation) !== true) return async () => false
    const world = await createWorld(
      model,
      // A model leaves out tuples that it does not allow.
      tuples.filter((one) => tupleIssue(model, one) === null),
    )
    return (context) => orNull(world.check(subject, asked.relation, object, context))
  }
  const [few, many] = [await holds(sides.few), await holds(sides.many)]
  const names = new Set(tuples.flatMap(({ condition }) => condition?.name ?? []))
  const definitions = [...conditionsOf(sides.few), ...conditionsOf(sides.many)].filter(([name]) => names.has(name))
  for (const context of contextsFor(definitions.map(([, definition]) => definition)))
    if ((await few(context)) === true && (await many(context)) === false) return { subject, object, tuples, context }
  return null
}

/** The answer; null if it fails. */
async function orNull(answer: Promise<boolean>): Promise<boolean | null> {
  try {
    return await answer
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}

function conditionsOf(model: Model): readonly (readonly [string, ConditionDefinition])[] {
  return [...model.values()].flatMap((relations) =>
    [...relations.values()].flatMap((expression) =>
      [...(directOf(expression)?.conditional?.values() ?? [])].flatMap((all) => [...all]),
    ),
  )
}

/** The example without tuples that are not needed to show the difference. */
async function smallest(sides: Sides, asked: Asked, example: Example): Promise<Example> {
  let best = example
  for (const one of example.tuples) {
    const tuples = best.tuples.filter((other) => other !== one)
    best = (await confirmed(sides, asked, tuples)) ?? best
  }
  return best
}

/** Tries random sets of tuples that a model allows. Equal models give equal sets. */
async function searched(sides: Sides, asked: Asked): Promise<Example | null> {
  const candidates = [...new Set([...allowedBy(sides.few, asked), ...allowedBy(sides.many, asked)])]
  let state = 1
  const below = (count: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % count
  }
  for (let world = 0; world < WORLDS_MAX && candidates.length > 0; world += 1) {
    const chosen = new Map<string, FileTuple>()
    for (let i = below(WORLD_TUPLES_MAX) + 1; i > 0; i -= 1) {
      const one = candidates[below(candidates.length)]
      if (one !== undefined) chosen.set(`${one.object}#${one.relation}@${one.user}`, one)
    }
    const found = await confirmed(sides, asked, [...chosen.values()])
    if (found !== null) return found
  }
  return null
}

function allowedBy(model: Model, { subject }: Asked): readonly FileTuple[] {
  const numbers = [1, 2]
  return [...model].flatMap(([type, relations]) =>
    [...relations].flatMap(([relation, expression]) => {
      const allowed = directOf(expression)
      if (allowed === null) return []
      const wildcards = [...allowed.wildcards].map((name) => `${name}:*`)
      const plain = [...allowed.types, ...wildcards, ...allowed.usersets].map((name) => [name, null] as const)
      const conditional = [...(allowed.conditional ?? [])].flatMap(([name, conditions]) =>
        [...conditions.keys()].map((condition) => [name, condition] as const),
      )
      return [...plain, ...conditional].flatMap(([name, condition]) =>
        usersOf(name, subject, numbers).flatMap((user) =>
          numbers.map((number) => tuple(`${type}:${number}`, relation, user, condition)),
        ),
      )
    }),
  )
}

function usersOf(name: string, subject: string, numbers: readonly number[]): readonly string[] {
  if (name.endsWith(':*')) return [name]
  const [type = '', relation] = name.split('#')
  if (relation === undefined && type === subject) return [`${type}:${SUBJECT_ID}`]
  return numbers.map((number) => `${type}:${number}${relation === undefined ? '' : `#${relation}`}`)
}
