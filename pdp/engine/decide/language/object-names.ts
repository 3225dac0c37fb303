/**
 * Names that no model may use. The parser of the language keeps what a model declares in plain objects: a type `__proto__` would
 * give its relations to every object of the process.
 */
import type { ValidationIssue } from '../../../shared/domain/errors.ts'

const TAKEN: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))
const WORD = /[\w$-]+/g
const CONDITION = /^[ \t]*condition\b/
/** Within one line, whatever the parser takes for the end of a line: else one could hide a type. */
const LITERAL = /"(?:\\.|[^"\\\r\u2028\u2029])*"|'(?:\\.|[^'\\\r\u2028\u2029])*'/g

/** Why a name of a model cannot be one of these, or null. */
export const objectNameIssue = (name: string): string | null =>
  TAKEN.has(name) ? `"${name}" is a name that every object of JavaScript has; choose another` : null

/** Every such name outside of comments and of the texts in conditions, with its place. Before anything parses the model. */
export function objectNameIssues(text: string): readonly ValidationIssue[] {
  const lines = text.split('\n')
  const found = lines.findIndex((line) => CONDITION.test(line))
  const firstCondition = found < 0 ? lines.length : found
  return lines.flatMap((line, at) =>
    [...(at < firstCondition ? withoutComment(line) : withoutTexts(withoutComment(line))).matchAll(WORD)].flatMap(
      ({ 0: word, index }) => {
        const message = objectNameIssue(word)
        return message === null ? [] : [{ place: `${at + 1}:${index + 1}`, message }]
      },
    ),
  )
}

const withoutTexts = (line: string): string => line.replace(LITERAL, (found) => ' '.repeat(found.length))
/** Exactly as the parser does it, so that nothing is a comment here alone. */
const withoutComment = (line: string): string => (line.trimStart().startsWith('#') ? '' : (line.split(' #')[0] ?? ''))
