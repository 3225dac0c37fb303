/** The plan of an import: the model and tuples under their names here, notes on renames, and reasons against it. */

import { isJsonModel, readDocument } from '../../engine/decide/language/document.ts'
import { compileModel } from '../../engine/decide/language/model-language.ts'
import { placesIn } from '../../engine/decide/language/places.ts'
import { mergeModels } from '../../engine/decide/model.ts'
import { reservedTypeIssues, restrictionIssue } from '../../engine/decide/restrictions.ts'
import { reservedTupleIssue } from '../../engine/store/changes.ts'
import { didYouMean } from '../../shared/base/nearest.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { EXTERNAL, formatTuple, isType, tupleIssue, typeOf } from '../../shared/domain/names.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { modelTextOf } from '../model-test/model-text.ts'
import { refused, renamed, renameTypes, type TypeNames } from './mapping.ts'

export type Plan = {
  readonly model: string
  readonly tuples: readonly Tuple[]
  /** Sentences for the operator: renames, and steps that remain. */
  readonly notes: readonly string[]
  /** Parts without a faithful translation. With any, nothing is imported. */
  readonly refusals: readonly string[]
}
const SHOWN_MAX = 20

/** The plan with all refusals of a running PDP added. */
export function checkedPlan(plan: Plan): Plan {
  const refusals = [...plan.refusals, ...modelRefusals(plan.model)]
  if (refusals.length === 0) refusals.push(...tupleRefusals(plan))
  return { ...plan, refusals }
}

/** The plan with types renamed as the operator wants. Throws PdpError `request_invalid` for names that are not allowed. */
export function withRenames(plan: Plan, names: TypeNames): Plan {
  if (names.size === 0 || plan.refusals.length > 0) return plan
  const document = readDocument(plan.model)
  const types = document.type_definitions.map(({ type }) => type)
  for (const [type, name] of names) {
    if (!types.includes(type)) throw refused(`the model has no type "${type}"${didYouMean(type, types)}`)
    if (!isType(name)) throw refused(`"${name}" cannot be the name of a type`)
    if (types.includes(name) && !names.has(name)) throw refused(`the model has a type "${name}" already`)
  }
  if (new Set(names.values()).size < names.size) throw refused('two types cannot have the same name')
  return checkedPlan({
    ...plan,
    model: modelTextOf(renameTypes(document, names)),
    tuples: plan.tuples.map((tuple) => ({
      ...tuple,
      object: renamed(tuple.object, names),
      subject: renamed(tuple.subject, names),
    })),
    notes: [...plan.notes, ...[...names].map(([type, name]) => `type "${type}" is called "${name}" here, as asked`)],
  })
}

const USER = /^user:(?!\*$)([^#]*)/

/** The plan for people of another identity provider: `user:ann` of the store becomes `user:~<prefix>ann`. */
export function withSubjectPrefix(plan: Plan, prefix: string): Plan {
  const named = (name: string): string => name.replace(USER, (_, id: string) => `user:${EXTERNAL}${prefix}${id}`)
  const tuples = plan.tuples.map((tuple) => ({ ...tuple, object: named(tuple.object), subject: named(tuple.subject) }))
  return { ...plan, tuples }
}

/** Ids of our own people in the tuples; people of another provider need no entry in the directory. */
export const usersOf = ({ tuples }: Plan): readonly string[] => [
  ...new Set(
    tuples.flatMap(({ subject }) => {
      const [, id = EXTERNAL] = USER.exec(subject) ?? []
      return id.startsWith(EXTERNAL) ? [] : [id]
    }),
  ),
]

function modelRefusals(text: string): readonly string[] {
  const shown = ({ place, message }: { place: string; message: string }): string => `model ${place}: ${message}`
  try {
    return reservedTypeIssues(compileModel(text), placesIn(text)).map(shown)
  } catch (err) {
    if (err instanceof PdpError) return err.issues.map(shown)
    throw err
  }
}

function tupleRefusals({ model: text, tuples }: Plan): readonly string[] {
  const model = mergeModels([compileModel(text)])
  const found = tuples.flatMap((tuple) => {
    const issue = tupleIssue(tuple) ?? reservedTupleIssue(tuple) ?? restrictionIssue(model, tuple)
    return issue === null ? [] : [`tuple ${formatTuple(tuple)}: ${issue}`]
  })
  return found.length <= SHOWN_MAX
    ? found
    : [...found.slice(0, SHOWN_MAX), `and ${found.length - SHOWN_MAX} more tuples`]
}

/** The summary of a plan, with the number of tuples of each type. */
export function describePlan({ model, tuples, notes, refusals }: Plan): string {
  const counts = new Map<string, number>()
  for (const { object } of tuples) counts.set(typeOf(object), (counts.get(typeOf(object)) ?? 0) + 1)
  const lines = [
    `tuples: ${tuples.length}${counts.size === 0 ? '' : ` (${[...counts].map(([type, count]) => `${type} ${count}`).join(', ')})`}`,
    ...(isJsonModel(model) ? ['note: the model is kept as JSON, since the language has no words for all of it'] : []),
    ...notes.map((note) => `note: ${note}`),
    ...refusals.map((refusal) => `refused: ${refusal}`),
  ]
  return `${lines.join('\n')}\n`
}
