/** Looks in a model for what its author can hardly mean, and for what a PDP that serves would refuse. */
import type { Direct, Expression, Model } from '../../engine/decide/model.ts'
import { contains } from '../../engine/decide/models/containment.ts'
import { directOf } from '../../engine/decide/restrictions.ts'
import { unconfined } from '../model-test/confined-files.ts'
import { readModelText } from '../model-test/model-text.ts'
import { refusedModel } from '../model-test/serving-issues.ts'
import type { LoadedModel } from './load-model.ts'

/** `line` counts from 1; null where the file has no line of the model's own. */
export type Finding = { readonly line: number | null; readonly message: string }

export async function lintModel({ source, model }: LoadedModel): Promise<readonly Finding[]> {
  const text = await readModelText(source, unconfined)
  const isText = source.kind === 'inline' || source.file.endsWith('.fga')
  const above = source.kind === 'inline' ? source.line : 0
  const lines = isText ? text.split('\n') : []
  const at = (found: number): number | null => (found < 0 ? null : above + found + 1)
  const lineOfType = (type: string): number =>
    lines.findIndex((line) => words(line)[0] === 'type' && words(line)[1] === type)
  const lineOfRelation = (type: string, relation: string): number => {
    const from = lineOfType(type)
    const found = lines.slice(from + 1).findIndex((line) => /^\s*define\s/.test(line) && nameDefined(line) === relation)
    return from < 0 || found < 0 ? -1 : from + 1 + found
  }
  const used = typesNamed(model)
  const findings: Finding[] = refusedModel(text, source).map(({ line, message }) => ({
    line: isText ? line : null,
    message: `a PDP that serves refuses this: ${message}`,
  }))
  for (const [type, relations] of model) {
    if (relations.size === 0 && !used.has(type))
      findings.push({ line: at(lineOfType(type)), message: `type ${type} has no relation, and no relation names it` })
    for (const relation of relations.keys()) {
      const line = at(lineOfRelation(type, relation))
      if (isHeldByNobody(model, { type, relation }))
        findings.push({ line, message: `${type}#${relation}: nobody can ever have it, whatever the tuples are` })
    }
  }
  const conditions = new Set([...model.values()].flatMap((relations) => [...relations.values()].flatMap(conditionsOf)))
  lines.forEach((line, index) => {
    const [, name] = /^\s*condition\s+([^\s(]+)/.exec(line) ?? []
    if (name !== undefined && !conditions.has(name))
      findings.push({ line: at(index), message: `condition ${name}: no relation uses it` })
  })
  return findings.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0))
}

const words = (line: string): readonly string[] => line.trim().split(/\s+/)
const nameDefined = (line: string): string => /define\s+([^\s:]+)/.exec(line)?.[1] ?? ''

function isHeldByNobody(model: Model, place: { readonly type: string; readonly relation: string }): boolean {
  return [...model.keys()].every((subject) => contains(null, model, place, subject) === 'proved')
}

const namesOf = ({ types, wildcards, usersets, conditional }: Direct): readonly string[] => [
  ...types,
  ...[...wildcards].map((type) => `${type}:*`),
  ...usersets,
  ...(conditional?.keys() ?? []),
]

const typesNamed = (model: Model): ReadonlySet<string> =>
  new Set(
    [...model.values()].flatMap((relations) =>
      [...relations.values()].flatMap((expression) => {
        const direct = directOf(expression)
        return direct === null ? [] : namesOf(direct).map((name) => name.replace(/[#:].*$/, ''))
      }),
    ),
  )

const conditionsOf = (expression: Expression): readonly string[] =>
  [...(directOf(expression)?.conditional?.values() ?? [])].flatMap((all) => [...all.keys()])
