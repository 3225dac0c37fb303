/** Parts that the command lines share: help, exit statuses, and errors without a stack. */
import type { Command } from 'commander'
import { errorJson, type Failure, wantsJson } from '../../shared/process/command/json-errors.ts'
import { didYouMeanSetting, unknownSettings } from '../../shared/process/setting-names.ts'
import { CliError, EXIT, type Run } from './errors.ts'

/** `status`: the exit status for wrong arguments, which Commander has reported. `--help` exits with 0. */
export function exitOnMisuse(command: Command, io: NodeJS.Process, status: number): void {
  command.exitOverride((err) => void io.exit(err.exitCode === 0 ? EXIT.ok : status))
  for (const inner of command.commands) exitOnMisuse(inner, io, status)
}

/** Runs a command that asks a running PDP. An error becomes one line without a stack. */
export function runClient(io: NodeJS.Process): Run {
  return async (work) => {
    try {
      const status = await work()
      io.exitCode = typeof status === 'number' ? status : EXIT.ok
    } catch (err) {
      const text = err instanceof CliError ? err.message : String(err instanceof Error ? err.stack : err)
      io.stderr.write(wantsJson(io) ? errorJson(failureOf(err, text)) : `${text}\n`)
      io.exitCode = EXIT.failed
    }
  }
}

const failureOf = (err: unknown, text: string): Failure =>
  err instanceof CliError
    ? { code: err.code, text, ...(err.status === null ? {} : { status: err.status }) }
    : { code: 'internal_error', text }

/** The output of a command: JSON for a program, or a text for a person. */
export const jsonOr = ({ json }: { readonly json?: boolean }, value: unknown, text: string): string =>
  json === true ? `${JSON.stringify(value)}\n` : text

/** Warns of unknown `PORTCULLIS_…` variables, since a misspelt setting would be ignored silently. */
export function warnOfUnknownSettings(io: Pick<NodeJS.Process, 'env' | 'stderr'>): void {
  for (const name of unknownSettings(io.env))
    io.stderr.write(`warning: ${name} is not a setting${didYouMeanSetting(name)}\n`)
}

/** The table of environment variables and their meanings, for `--help`. */
export function settingsTable(settings: readonly (readonly [name: string, meaning: string])[]): string {
  const width = Math.max(...settings.map(([name]) => name.length))
  return settings.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
