/** `--json` in every command line: each command takes it, and an error is one JSON object of one shape on the standard error. */
import type { Command } from 'commander'

/** A failure of a command. The first line of `text` says what happened; each further line is one issue. */
export type Failure = { readonly code: string; readonly text: string; readonly status?: number }

export const wantsJson = ({ argv = [] }: { readonly argv?: readonly string[] }): boolean => argv.includes('--json')

/** `status`: of the answer of the PDP, where there was one. */
export function errorJson({ code, text, status }: Failure): string {
  const [message = '', ...issues] = text.split('\n').map((line) => line.trim())
  return `${JSON.stringify({ error: { code, message, ...(status === undefined ? {} : { status }), issues } })}\n`
}

/** Must be called after all commands are added. `name`: the command whose `--help` is suggested after a mistake. */
export function finishCommands(command: Command, name: string, io: { readonly argv?: readonly string[] }): void {
  if (command.commands.length === 0 && !command.options.some(({ long }) => long === '--json'))
    command.option('--json', 'print errors as JSON')
  if (wantsJson(io))
    command.configureOutput({
      outputError: (text, write) => write(errorJson({ code: 'usage', text: text.trim().replace(/^error: /, '') })),
    })
  else command.showHelpAfterError(`Try: ${name} --help`)
  for (const inner of command.commands) finishCommands(inner, `${name} ${inner.name()}`, io)
}
