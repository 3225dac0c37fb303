/** Limits the size of a model. It reads each line once, before anything parses the model. */
import type { ValidationIssue } from '../../../shared/domain/errors.ts'

/** Characters of one model at most. */
export const MODEL_CHARACTERS_MAX = 256 * 1024
export const MODEL_BOUNDS = {
  types: 500,
  relations: 2_000,
  /** Operands of one relation between `or`, `and` and `but not`. */
  operands: 100,
  /** References of one relation between brackets. */
  references: 200,
  nesting: 16,
  /** Lines in a row without anything but a comment. */
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
/** Up to this size the compiler takes some milliseconds at most, whatever the text says. */
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

type Size = { readonly [bound in Bound]: { readonly count: number; readonly line: number } }

/** Every bound that the text is beyond, with the line where it was passed. */
export function boundIssues(text: string): readonly ValidationIssue[] {
  if (text.length > MODEL_CHARACTERS_MAX)
    return [{ place: '1:1', message: `has more than ${MODEL_CHARACTERS_MAX} characters` }]
  const size = measure(text)
  return (Object.keys(MODEL_BOUNDS) as Bound[])
    .filter((bound) => size[bound].count > MODEL_BOUNDS[bound])
    .map((bound) => ({
      place: `${size[bound].line}:1`,
      message: `the model has more than ${MODEL_BOUNDS[bound]} ${NAMES[bound]}`,
    }))
}

/** True where compiling costs little, so that it needs no thread of its own. */
export function isLight(text: string): boolean {
  if (text.length > LIGHT_CHARACTERS) return false
  if ([...text.matchAll(/^\s*condition\b/gm)].length > LIGHT_CONDITIONS) return false
  const size = measure(text)
  return (Object.keys(LIGHT) as Bound[]).every((bound) => size[bound].count <= LIGHT[bound])
}

/** The largest of each, and the line in which it went beyond its bound, or the last in which it grew. */
function measure(text: string): Size {
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
    if (inCondition) continue // its expression has bounds of its own
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
