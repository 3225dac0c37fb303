/**
 * Names that no model may use: the language's parser keeps declared names in plain objects, so a type `__proto__` would give its relations
 * to every object of the process.
 */
import type { ValidationIssue } from '../../../shared/domain/errors.ts'

const TAKEN: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))
const WORD = /[\w$-]+/g
const CONDITION = /^[ \t]*condition\b/
/** Matches a string literal in a condition. It ends at each line end that the parser knows: else a literal could hide a type. */
const LITERAL = /"(?:\\.|[^"\\\r\u2028\u2029])*"|'(?:\\.|[^'\\\r\u2028\u2029])*'/g

/** The message for a forbidden name; else null. */
export const objectNameIssue = (name: string): string | null =>
  TAKEN.has(name) ? `"${name}" is a name that every object of JavaScript has; choose another` : null

/** An issue for every such name outside of comments and string literals. To be called before the model is parsed. */
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
/** The line without its comment. Must do exactly what the parser does, so that no name is skipped here alone. */
const withoutComment = (line: string): string => (line.trimStart().startsWith('#') ? '' : (line.split(' #')[0] ?? ''))
