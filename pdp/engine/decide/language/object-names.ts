/**
 * Names that no model may use. The parser of the language keeps what a model declares in plain objects: a type `__proto__` would
 * give its relations to every object of the process.
 */
import type { ValidationIssue } from '../../../shared/domain/errors.ts'

const TAKEN: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))
const WORD = /[\w$-]+/g
const CONDITION = /^[ \t]*condition\b/
/** A string literal in a condition. It ends at any line end that the parser knows, or else it could hide a type. */
const LITERAL = /"(?:\\.|[^"\\\r\u2028\u2029])*"|'(?:\\.|[^'\\\r\u2028\u2029])*'/g

/** The message when the name is one of these; null otherwise. */
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
