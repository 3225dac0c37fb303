/**
 * Names that no model may use. The parser of the language keeps what a model declares in plain objects: a type `__proto__` would
 * give its relations to every object of the process.
 */
import type { ValidationIssue } from '../../domain/errors.ts'

const TAKEN = new Set(Object.getOwnPropertyNames(Object.prototype))
const WORD = /[\w$-]+/g

/** Every such name outside of comments, with its place. Before anything parses the text. */
export function objectNameIssues(text: string): readonly ValidationIssue[] {
  return text.split('\n').flatMap((line, at) =>
    [...withoutComment(line).matchAll(WORD)]
      .filter(([word]) => TAKEN.has(word))
      .map(({ 0: word, index }) => ({
        place: `${at + 1}:${index + 1}`,
        message: `"${word}" is a name that every object of JavaScript has; choose another`,
      })),
  )
}

/** Exactly as the parser does it, so that nothing is a comment here alone. */
const withoutComment = (line: string): string => (line.trimStart().startsWith('#') ? '' : (line.split(' #')[0] ?? ''))
