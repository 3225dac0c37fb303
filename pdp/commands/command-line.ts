/** What the command lines have in common: versions, help, exit statuses, and errors without a stack. */
import { existsSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CliError, EXIT, type Run } from './errors.ts'

/** Of the nearest package.json, which is this one's in the source, in a package and in an image. */
export function readVersion(): string {
  for (let folder = new URL('./', import.meta.url); folder.pathname !== '/'; folder = new URL('../', folder)) {
    const file = new URL('package.json', folder)
    if (!existsSync(file)) continue
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof found === 'object' && found !== null && 'version' in found) return String(found.version)
  }
  return 'unknown'
}

export function hintAtHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try: ${name} --help`)
  for (const inner of command.commands) hintAtHelp(inner, `${name} ${inner.name()}`)
}

/** Wrong arguments are a failure like any other: 1 is the answer "denied". */
export function exitWithFailure(command: Command, io: NodeJS.Process): void {
  command.exitOverride((err) => void io.exit(err.exitCode === 0 ? EXIT.ok : EXIT.failed))
  for (const inner of command.commands) exitWithFailure(inner, io)
}

/** Runs a command that asks a running PDP; an error is one line, without a stack. */
export function runClient(io: NodeJS.Process): Run {
  return async (work) => {
    // The reader of the output may have closed it.
    io.stdout.on('error', () => io.exit(EXIT.failed))
    try {
      io.exitCode = await work()
    } catch (err) {
      io.stderr.write(`${err instanceof CliError ? err.message : err instanceof Error ? err.stack : err}\n`)
      io.exitCode = EXIT.failed
    }
  }
}

/** Environment variables with what they mean, for `--help`. */
export function settingsTable(settings: readonly (readonly [name: string, meaning: string])[]): string {
  const width = Math.max(...settings.map(([name]) => name.length))
  return settings.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
