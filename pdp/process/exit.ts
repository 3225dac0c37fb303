/** Ends a command: what the operator can mend is said in plain lines, anything else with its stack. */

/** sysexits.h EX_USAGE: the configuration is wrong, and starting again will not help. */
export const EXIT_USAGE = 64
const EXIT_FAILURE = 1

/** The process cannot start for a reason outside of it, such as a port in use. The message is one line for an operator. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** Every mistake of a configuration, each a whole line for an operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** What of `process` ends a command. */
export type CommandIo = {
  readonly stderr: { write(text: string): unknown }
  readonly exit: (status: number) => unknown
}

/** Runs a command to its end or its failure. A server's command returns when it listens, and the process lives on. */
export async function runCommand(command: () => Promise<void>, io: CommandIo): Promise<void> {
  try {
    await command()
  } catch (err) {
    io.stderr.write(`${describe(err)}\n`)
    io.exit(err instanceof ConfigError ? EXIT_USAGE : EXIT_FAILURE)
  }
}

function describe(err: unknown): string {
  if (err instanceof ConfigError || err instanceof StartError) return err.message
  return err instanceof Error ? (err.stack ?? err.message) : String(err)
}
