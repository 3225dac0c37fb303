/** Limits the size of a model. A text in the language is measured line by line before it is parsed. */
import { PdpError, type ValidationIssue } from '../../../shared/domain/errors.ts'
import { isJsonModel, type ModelDocument, readDocument, type Userset } from './document.ts'
import { partsOf, referencesOf } from './document-issues.ts'
import { placesIn, START } from './places.ts'

export const MODEL_CHARACTERS_MAX = 256 * 1024
export const MODEL_BOUNDS = {
  types: 500,
  relations: 2_000,
  /** Operands of one relation between `or`, `and` and `but not`. */
  operands: 100,
  /** References of one relation between brackets. */
  references: 200,
  nesting: 16,
  /** Consecutive lines that are empty or hold only a comment. */
  emptyLines: 200,
} as const
type Bound = keyof typeof MODEL_BOUNDS
const NAMES: { readonly [bound in Bound]: string } = {
  types: 'types',
  relations: 'relations',
  operands: 'operands in one relation',
  references: 'kinds of subjects in one relation',
  nesting: 'nested parentheses',
  emptyLines: 'empty lines in a row',
}
/** Up to this size, compiling any text takes a few milliseconds at most. */
const LIGHT: { readonly [bound in Bound]: number } = {
  types: 50,
  relations: 40,
  operands: 20,
  references: 40,
  nesting: 3,
  emptyLines: 20,
}
const LIGHT_CONDITIONS = 5
const LIGHT_CHARACTERS = 6_000
const WORDS = /\b(?:or|and|but not)\b|[[\](),]/g

/** An issue for every bound that the text exceeds, with the line in which it does. */
export function boundIssues(text: string): readonly ValidationIssue[] {
  if (text.length > MODEL_CHARACTERS_MAX)
    return [{ place: START, message: `has more than ${MODEL_CHARACTERS_MAX} characters` }]
  if (isJsonModel(text)) return jsonIssues(text)
  const size = measure(text)
  return (Object.keys(MODEL_BOUNDS) as Bound[])
    .filter((bound) => size[bound].count > MODEL_BOUNDS[bound])
    .map((bound) => ({ place: `${size[bound].line}:1`, message: beyond(bound) }))
}

const beyond = (bound: Bound): string => `the model has more than ${MODEL_BOUNDS[bound]} ${NAMES[bound]}`

/** No issues for a text that is no model: its compilation reports what is wrong. */
function jsonIssues(text: string): readonly ValidationIssue[] {
  let document: ModelDocument
  try {
    document = readDocument(text)
  } catch (err) {
    if (err instanceof PdpError) return []
    throw err
  }
  const { type_definitions: types } = document
  const relations = types.flatMap((definition) =>
    Object.entries(definition.relations).map(([relation, rule]) => ({ definition, relation, rule })),
  )
  const issues: ValidationIssue[] = []
  if (types.length > MODEL_BOUNDS.types) issues.push({ place: START, message: beyond('types') })
  if (relations.length > MODEL_BOUNDS.relations) issues.push({ place: START, message: beyond('relations') })
  const placeOf = placesIn(text)
  for (const { definition, relation, rule } of relations) {
    const size = {
      operands: operatorsIn(rule),
      references: referencesOf(definition, relation).length,
      nesting: depthOf(rule) - 1,
    }
    for (const bound of ['operands', 'references', 'nesting'] as const) {
      if (size[bound] <= MODEL_BOUNDS[bound]) continue
      const { type } = definition
      const message = `${beyond(bound)} (relation "${relation}" of type "${type}")`
      issues.push({ place: placeOf({ type, relation }), message })
    }
  }
  return issues
}

const operatorsIn = (rule: Userset): number =>
  partsOf(rule).reduce((count, part, i) => count + operatorsIn(part) + (i > 0 ? 1 : 0), 0)

const depthOf = (rule: Userset): number => {
  const parts = partsOf(rule)
  return parts.length === 0 ? 0 : 1 + Math.max(...parts.map(depthOf))
}

/** True when compiling takes little time, so that no thread is needed. */
export function isLight(text: string): boolean {
  if (text.length > LIGHT_CHARACTERS) return false
  if ([...text.matchAll(/^\s*condition\b|"expression"/gm)].length > LIGHT_CONDITIONS) return false
  if (isJsonModel(text)) return true
  const size = measure(text)
  return (Object.keys(LIGHT) as Bound[]).every((bound) => size[bound].count <= LIGHT[bound])
}

/** The largest count for each bound, and the line in which it exceeded the bound, else the last line in which it grew. */
function measure(text: string) {
  const size = Object.fromEntries(Object.keys(MODEL_BOUNDS).map((bound) => [bound, { count: 0, line: 1 }])) as {
    [bound in Bound]: { count: number; line: number }
  }
  let inCondition = false
  const now = { types: 0, relations: 0, operands: 0, references: 0, nesting: 0, emptyLines: 0 }
  let line = 0
  const grow = (bound: Bound): void => {
    now[bound] += 1
    const most = size[bound]
    if (now[bound] <= most.count) return
    if (most.count <= MODEL_BOUNDS[bound]) most.line = line
    most.count = now[bound]
  }
  for (const whole of text.split(/\r\n|\r|\n/)) {
    line += 1
    const words = whole.replace(/(^|\s)#.*$/, '').trim()
    if (words === '') {
      grow('emptyLines')
      continue
    }
    now.emptyLines = 0
    const begins = /^(extend\s+type|type|define|condition)\b/.exec(words)?.[1]
    if (begins !== undefined) {
      Object.assign(now, { operands: 0, references: 0, nesting: 0 })
      inCondition = begins === 'condition'
    }
    if (inCondition) continue // the expression of a condition has bounds of its own
    if (begins === 'type' || begins === 'extend type') grow('types')
    if (begins === 'define') grow('relations')
    for (const [word] of words.matchAll(WORDS)) {
      if (word === '(') grow('nesting')
      else if (word === ')') now.nesting -= 1
      else if (word === ',' || word === '[') grow('references')
      else if (word !== ']') grow('operands')
    }
  }
  return size
}
