/** `completion`: what a shell needs to complete commands and options. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Run } from '../errors.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

const HELP = `
Examples:
  portcullis completion bash > /etc/bash_completion.d/portcullis
  portcullis completion zsh  > "\${fpath[1]}/_portcullis"
  portcullis completion fish > ~/.config/fish/completions/portcullis.fish`

export function addCompletionCommand(program: Command, io: NodeJS.Process, run: Run): void {
  program
    .command('completion')
    .description('Print a script that makes a shell complete commands and options.')
    .argument('<shell>', SHELLS.join(', '), parseShell)
    .addHelpText('after', HELP)
    .action((shell: ReturnType<typeof parseShell>) =>
      run(async () => {
        io.stdout.write(shell === 'fish' ? fish(program) : bash(program, shell))
      }),
    )
}

function parseShell(text: string): (typeof SHELLS)[number] {
  const shell = SHELLS.find((name) => name === text)
  if (shell === undefined) throw new InvalidArgumentError(`It must be one of ${SHELLS.join(', ')}.`)
  return shell
}

/** The words after each path of commands. */
function paths(
  command: Command,
  path: readonly string[] = [],
): readonly (readonly [path: string, words: readonly string[]])[] {
  const options = command.options.flatMap(({ long }) => long ?? [])
  const words = [...command.commands.map((inner) => inner.name()), ...options, '--help']
  return [[path.join(' '), words], ...command.commands.flatMap((inner) => paths(inner, [...path, inner.name()]))]
}

function bash(program: Command, shell: 'bash' | 'zsh'): string {
  const cases = paths(program).map(([path, words]) => `    '${path}') words='${words.join(' ')}' ;;`)
  const head = shell === 'zsh' ? '#compdef portcullis\nautoload -U +X bashcompinit && bashcompinit\n' : ''
  return `${head}_portcullis() {
  local path='' words='' word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$word" in -*) break ;; esac
    path="\${path:+$path }$word"
  done
  # Arguments are no commands: the longest path that is one counts.
  while :; do
    case "$path" in
${cases.map((line) => `  ${line}`).join('\n')}
    esac
    [ -n "$words" ] || [ -z "$path" ] && break
    case "$path" in *' '*) path="\${path% *}" ;; *) path='' ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _portcullis -o default portcullis
${shell === 'zsh' ? '# The first completion loads this file in place of the function.\n_bash_complete -o default -F _portcullis\n' : ''}`
}

function fish(program: Command): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const options = (command: Command, condition: string): string[] =>
    command.options.flatMap(({ long, description }) =>
      long == null ? [] : [`complete -c portcullis -n '${condition}' -l ${long.slice(2)} -d ${quoted(description)}`],
    )
  const seen = (command: Command): string => `__fish_seen_subcommand_from ${command.name()}`
  const lines = program.commands.flatMap((command) => [
    `complete -c portcullis -n __fish_use_subcommand -a ${command.name()} -d ${quoted(command.description())}`,
    ...command.commands.flatMap((inner) => [
      `complete -c portcullis -n '${seen(command)}' -a ${inner.name()} -d ${quoted(inner.description())}`,
      ...options(inner, `${seen(command)}; and ${seen(inner)}`),
    ]),
    ...options(command, seen(command)),
  ])
  return `${lines.join('\n')}\n`
}
