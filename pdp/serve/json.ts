/** JSON that came from outside, read strictly: where two readers could understand two things, nobody reads it. */
import type { Mistake } from '../errors.ts'
import { pointer } from './schemas.ts'
import { Refusal } from './status.ts'

const MISTAKES_MAX = 100
/** Strings and marks of valid JSON; what else there is, numbers and words, is passed over. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/gs
const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** An object has the names that it had so far, and the last of them; an array has none, and its current index. */
type Level = { readonly names: Set<string> | null; at: string | number }

/** Throws Refusal `request_invalid`. */
export function parseUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw new Refusal('request_invalid', 'the body is not UTF-8', { cause })
  }
}

/** Throws Refusal `request_invalid` for what is not JSON, and for objects that name a member twice. */
export function parseJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Refusal('request_invalid', 'the body is not JSON', { cause })
  }
  const mistakes = nameMistakes(text)
  if (mistakes.length === 0) return value
  const message = mistakes.map((mistake) => `${mistake.place} ${mistake.message}`).join('; ')
  throw new Refusal('request_invalid', message, { mistakes })
}

/** Of a text that is known to be JSON. */
function nameMistakes(text: string): readonly Mistake[] {
  const mistakes: Mistake[] = []
  const levels: Level[] = []
  let last = ''
  const note = (message: string): void => {
    if (mistakes.length < MISTAKES_MAX)
      mistakes.push({ place: pointer('', ...levels.map((level) => level.at)), message })
  }
  for (const [token] of text.matchAll(TOKENS)) {
    const level = levels.at(-1)
    if (token === '{') levels.push({ names: new Set(), at: '' })
    else if (token === '[') levels.push({ names: null, at: 0 })
    else if (token === '}' || token === ']') levels.pop()
    else if (token === ',' && typeof level?.at === 'number') level.at += 1
    else if (token === ':' && level?.names != null) {
      const name = last.includes('\\') ? String(JSON.parse(last)) : last.slice(1, -1)
      level.at = name
      if (level.names.has(name)) note('is there more than once')
      // Assigned to an object instead of defined on it, it would become what the object inherits from.
      if (name === '__proto__') note('is not a name that a member may have')
      level.names.add(name)
    } else last = token
  }
  return mistakes
}
