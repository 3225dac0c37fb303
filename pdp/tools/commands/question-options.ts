/** Options of the commands that ask a question: its context, and the tuples that are only for it. */

import type { Command } from 'commander'
import { parseInstantText } from '../../shared/base/instant.ts'
import type { AskedSubject, ContextualTuple, DecideRequest } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { isSubject, parseTuple, quote } from '../../shared/domain/names.ts'
import { CliError } from './errors.ts'

export type QuestionOptions = {
  readonly context?: string
  readonly with?: readonly string[]
  readonly without?: readonly string[]
  readonly asOf?: string
}
export type Accompanying = Pick<DecideRequest, 'context' | 'contextualTuples' | 'withoutTuples' | 'asOfMs'>
export const collect = (word: string, earlier: readonly string[] = []): readonly string[] => [...earlier, word]

export const addQuestionOptions = (command: Command): Command =>
  command
    .option('--context <json>', 'values of parameters of conditions, such as \'{"ip": "203.0.113.7"}\'')
    .option('--with <tuple>', 'a tuple that counts in this question only; may be repeated', collect)
    .option('--without <tuple>', 'a stored tuple that does not count in this question; may be repeated', collect)
    .option('--as-of <instant>', 'answer as of this time, from the log of changes, such as 2030-01-31T12:00:00Z')

/** Throws CliError. */
export function parseSubject(text: string): AskedSubject {
  if (!isSubject(text))
    throw new CliError(
      `the subject must be <type>:<id>, <type>:<id>#<relation> or <type>:*, such as user:alice, not ${quote(text)}`,
    )
  const [object = '', relation] = text.split('#')
  const colon = object.indexOf(':')
  const subject = { type: object.slice(0, colon), id: object.slice(colon + 1) }
  return relation === undefined ? subject : { ...subject, relation }
}

/** Throws CliError. */
export const readQuestion = ({ context, with: tuples, without, asOf }: QuestionOptions): Accompanying => ({
  ...(context === undefined ? {} : { context: parseContext(context) }),
  ...(tuples === undefined ? {} : { contextualTuples: tuples.map((text) => parseContextualTuple('--with', text)) }),
  ...(without === undefined ? {} : { withoutTuples: without.map((text) => parseContextualTuple('--without', text)) }),
  ...(asOf === undefined ? {} : { asOfMs: parseInstant(asOf) }),
})

/** The options as members of a question of the PDP's API. */
export const questionBody = ({ context, contextualTuples, withoutTuples, asOfMs }: Accompanying): object => ({
  ...(context === undefined ? {} : { context }),
  ...(contextualTuples === undefined ? {} : { contextual_tuples: contextualTuples }),
  ...(withoutTuples === undefined ? {} : { without_tuples: withoutTuples }),
  ...(asOfMs === undefined ? {} : { as_of: new Date(asOfMs).toISOString() }),
})

function parseContext(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {
    // The error is reported below.
  }
  throw new CliError(`--context must be a JSON object, such as {"ip": "203.0.113.7"}, not ${quote(text)}`)
}

/** Refuses a time without a zone, which would be another instant on each machine. */
function parseInstant(text: string): number {
  const instant = parseInstantText(text)
  const isExact = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  if (isExact && !Number.isNaN(instant)) return instant
  throw new CliError(`--as-of must be an instant with its zone, such as 2030-01-31T12:00:00Z, not ${quote(text)}`)
}

function parseContextualTuple(option: string, text: string): ContextualTuple {
  try {
    return parseTuple(text)
  } catch (err) {
    if (err instanceof PdpError) throw new CliError(`${option}: ${err.message}`)
    throw err
  }
}
