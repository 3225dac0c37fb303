/** The words behind a command of the project. What cannot be understood ends the program: nothing is run by half. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { didYouMean } from '../../../pdp/shared/base/nearest.ts'

/** EX_USAGE of sysexits.h. */
const USAGE_STATUS = 64

/** As parseArgs, but a mistake shows the usage and ends with status 64. */
export function readArguments<T extends ParseArgsConfig>(config: T, usage: string): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (err) {
    return misused(err instanceof Error ? err.message : String(err), usage)
  }
}

export function misused(reason: string, usage: string): never {
  console.error(`${reason}\n${usage}`)
  process.exit(USAGE_STATUS)
}

/** Ends the program when a word names none of these. */
export function requireNames(words: readonly string[], names: readonly string[], usage: string): void {
  const unknown = words.filter((word) => !names.includes(word))
  if (unknown.length > 0)
    misused(unknown.map((word) => `there is no "${word}"${didYouMean(word, names)}`).join('\n'), usage)
}

/** Greater than 0. */
export function readNumber(name: string, text: string, usage: string): number {
  const number = Number(text)
  return number > 0 && Number.isFinite(number) ? number : misused(`${name} ${text} is not a number above 0`, usage)
}
