/** The values that a condition saw, in words for an explanation: bounded, and without what the name says is secret. */
import type { JsonObject, JsonValue } from '../../../shared/domain/json.ts'

const NAMED_MAX = 10
const CHARACTERS_MAX = 80
const SECRET =
  /(?:^|_)(?:authorization|cookie|credentials?|pass(?:word|wd|phrase)|secrets?|tokens?|(?:api|private)_?keys?)(?:$|_)/i

/** Of the contexts the first that has a parameter tells its value. */
export function seenValues(parameters: Iterable<string>, contexts: readonly JsonObject[]): string {
  const seen = [...parameters].map((name) => {
    const context = contexts.find((one) => Object.hasOwn(one, name))
    return `${name} = ${SECRET.test(snakeCase(name)) ? '(hidden)' : shortened(context?.[name] ?? null)}`
  })
  const more = seen.length > NAMED_MAX ? [`${seen.length - NAMED_MAX} more`] : []
  return [...seen.slice(0, NAMED_MAX), ...more].join(', ')
}

const snakeCase = (name: string): string => name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_')

function shortened(value: JsonValue): string {
  const text = JSON.stringify(value)
  return text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text
}
