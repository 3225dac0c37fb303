/** Reads JSON from outside strictly. JSON that two readers could understand differently is refused. */

import { endOfString, stringAt } from '../../../shared/base/json-text.ts'
import type { ValidationIssue } from '../../../shared/domain/errors.ts'
import { pointer } from '../../../shared/domain/json.ts'
import { RequestProblem } from './status.ts'

const ISSUES_MAX = 100
/** The characters of all positions after which no more issues are noted: the sender chooses how long a position is. */
const CHARACTERS_MAX = 10_000
const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** `names`: the member names of an object so far; null for an array. `at`: the current member or index. */
type Level = { readonly names: Set<string> | null; at: string | number }

/** The text of the bytes. Throws RequestProblem `request_invalid`. */
export function parseUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch (err) {
    throw new RequestProblem('request_invalid', 'the body is not UTF-8', { cause: err })
  }
}

/** Parses JSON. Throws RequestProblem `request_invalid` for another text, and for a repeated member. */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (err) {
    throw new RequestProblem('request_invalid', 'the body is not JSON', { cause: err })
  }
  const issues = nameIssues(text)
  if (issues.length === 0) return value
  const message = issues.map((issue) => `${issue.place} ${issue.message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { issues })
}

/** The text must be valid JSON, so that every mark outside strings has its usual meaning. */
function nameIssues(text: string): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const levels: Level[] = []
  let level: Level | undefined
  let [from, to] = [0, 0]
  let characters = 0
  const note = (message: string): void => {
    if (issues.length === ISSUES_MAX || characters > CHARACTERS_MAX) return
    const place = pointer('', ...levels.map(({ at }) => at))
    characters += place.length
    issues.push({ place, message })
  }
  for (let i = 0; i < text.length; i++) {
    const mark = text[i]
    if (mark === '"') {
      from = i
      to = endOfString(text, i)
      i = to - 1
    } else if (mark === '{' || mark === '[') {
      level = mark === '{' ? { names: new Set(), at: '' } : { names: null, at: 0 }
      levels.push(level)
    } else if (mark === '}' || mark === ']') {
      levels.pop()
      level = levels.at(-1)
    } else if (mark === ',' && typeof level?.at === 'number') level.at += 1
    else if (mark === ':' && level?.names != null) {
      const name = stringAt(text, from, to)
      level.at = name
      if (level.names.has(name)) note('occurs more than once')
      // If a reader assigned this member, it would change the prototype of the object.
      if (name === '__proto__') note('is not an allowed member name')
      level.names.add(name)
    }
  }
  return issues
}
