/** Ends a command: errors that an operator can fix print one line each; other errors print a stack. */

import { errorJson, type Failure, wantsJson } from './command/json-errors.ts'

/** sysexits.h EX_USAGE: the configuration is wrong, so a restart does not help. */
export const EXIT_USAGE = 64
const EXIT_FAILURE = 1

/** The process cannot start for a reason outside it, such as a port in use. The message is one line for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** All errors of a configuration, one line each for the operator. `cause`: the failure to read a file. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.problems = problems
  }
}

/** Runs a command until it returns or fails. A server command returns when it listens, and the process keeps running. */
export async function runCommand(
  command: () => Promise<void>,
  io: {
    readonly argv?: readonly string[]
    readonly stderr: { write(text: string): unknown }
    readonly exit: (status: number) => unknown
  },
): Promise<void> {
  try {
    await command()
  } catch (err) {
    io.stderr.write(wantsJson(io) ? errorJson(failureOf(err)) : `${describe(err)}\n`)
    io.exit(err instanceof ConfigError ? EXIT_USAGE : EXIT_FAILURE)
  }
}

function failureOf(err: unknown): Failure {
  if (!(err instanceof ConfigError))
    return { code: err instanceof StartError ? 'failed' : 'internal_error', text: describe(err) }
  const { problems } = err
  const head = problems.length === 1 ? [] : [`${problems.length} problems`]
  return { code: 'configuration_invalid', text: [...head, ...problems].join('\n') }
}

function describe(err: unknown): string {
  if (err instanceof ConfigError || err instanceof StartError) return err.message
  return err instanceof Error ? (err.stack ?? err.message) : String(err)
}
