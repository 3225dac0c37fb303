/** The words behind a command of the project. What cannot be understood ends the program: nothing is run by half. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

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

/** Greater than 0. */
export function readNumber(name: string, text: string, usage: string): number {
  const number = Number(text)
  return number > 0 && Number.isFinite(number) ? number : misused(`${name} ${text} is not a number above 0`, usage)
}
