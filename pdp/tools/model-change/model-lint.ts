/** Finds parts of a model that its author hardly intended, or that a running PDP would refuse. */
import type { Spot } from '../../engine/decide/language/places.ts'
import type { Expression, Model } from '../../engine/decide/model.ts'
import { contains } from '../../engine/decide/models/containment.ts'
import { directOf, kindsOf } from '../../engine/decide/restrictions.ts'
import { refusedModel } from '../model-test/serving-issues.ts'
import type { LoadedModel } from './load-model.ts'

/** `line`: counts from 1; null if the file has no line for it. */
export type Finding = { readonly line: number | null; readonly message: string }

export function lintModel(loaded: LoadedModel): readonly Finding[] {
  const { source, model, document, placeOf } = loaded
  const above = source.kind === 'inline' ? source.line : 0
  const lineAt = (spot: Spot): number | null => {
    const [, line] = /^(\d+):\d+$/.exec(placeOf(spot)) ?? []
    return line === undefined ? null : above + Number(line)
  }
  const used = typesNamed(model)
  const findings: Finding[] = refusedModel(loaded, source).map(({ file, line, message }) => ({
    line: file === source.file ? line : null,
    message: `a PDP that serves refuses this: ${message}`,
  }))
  for (const [type, relations] of model) {
    if (relations.size === 0 && !used.has(type))
      findings.push({ line: lineAt({ type }), message: `type ${type} has no relation, and no relation names it` })
    for (const relation of relations.keys()) {
      if (isHeldByNobody(model, { type, relation }))
        findings.push({
          line: lineAt({ type, relation }),
          message: `${type}#${relation}: nobody can ever have it, whatever the tuples are`,
        })
    }
  }
  const conditions = new Set([...model.values()].flatMap((relations) => [...relations.values()].flatMap(conditionsOf)))
  for (const condition of Object.keys(document.conditions)) {
    if (!conditions.has(condition))
      findings.push({ line: lineAt({ condition }), message: `condition ${condition}: no relation uses it` })
  }
  return findings.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0))
}

function isHeldByNobody(model: Model, place: { readonly type: string; readonly relation: string }): boolean {
  return [...model.keys()].every((subject) => contains(null, model, place, subject) === 'proved')
}

const typesNamed = (model: Model): ReadonlySet<string> =>
  new Set(
    [...model.values()].flatMap((relations) =>
      [...relations.values()].flatMap((expression) => {
        const direct = directOf(expression)
        return direct === null ? [] : kindsOf(direct).map((name) => name.replace(/[#:].*$/, ''))
      }),
    ),
  )

const conditionsOf = (expression: Expression): readonly string[] =>
  [...(directOf(expression)?.conditional?.values() ?? [])].flatMap((all) => [...all.keys()])
