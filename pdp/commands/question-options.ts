/** Options of the commands that ask: the context and the tuples that come with the question. */
import type { Command } from 'commander'
import type { ContextualTuple } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import type { JsonObject } from '../domain/json.ts'
import { parseTuple, quote } from '../domain/names.ts'
import { CliError } from './errors.ts'

export type QuestionOptions = { readonly context?: string; readonly with?: readonly string[] }
export type Accompanying = { readonly context?: JsonObject; readonly contextualTuples?: readonly ContextualTuple[] }

export const addQuestionOptions = (command: Command): Command =>
  command
    .option('--context <json>', 'values of parameters of conditions, such as \'{"ip": "203.0.113.7"}\'')
    .option(
      '--with <tuple>',
      'a tuple that counts in this question only; may be repeated',
      (tuple: string, earlier: readonly string[] = []) => [...earlier, tuple],
    )

/** Throws CliError. */
export const readQuestion = ({ context, with: tuples }: QuestionOptions): Accompanying => ({
  ...(context === undefined ? {} : { context: parseContext(context) }),
  ...(tuples === undefined ? {} : { contextualTuples: tuples.map(parseContextualTuple) }),
})

/** As the PDP's API names them. */
export const questionBody = ({ context, contextualTuples }: Accompanying): object => ({
  ...(context === undefined ? {} : { context }),
  ...(contextualTuples === undefined ? {} : { contextual_tuples: contextualTuples }),
})

function parseContext(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  } catch {
    // Reported below.
  }
  throw new CliError(`--context must be a JSON object, such as {"ip": "203.0.113.7"}, not ${quote(text)}`)
}

function parseContextualTuple(text: string): ContextualTuple {
  try {
    return parseTuple(text)
  } catch (error) {
    if (error instanceof PdpError) throw new CliError(`--with: ${error.message}`)
    throw error
  }
}
