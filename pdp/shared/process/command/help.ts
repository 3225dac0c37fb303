/** `help WORD…` and `WORD… --help`: the library's own print the help of another command where there is no such one. */
import type { Command } from 'commander'
import { didYouMean } from '../../base/nearest.ts'

/** Adds the command `help`. Must be called after all other commands are added. */
export function addHelpCommand(program: Command): void {
  program.helpCommand(false)
  program
    .command('help [command...]')
    .description('show the help of a command')
    .action((words: readonly string[]) => {
      let at = program
      for (const word of words) at = commandOf(at, word, program)
      at.outputHelp()
    })
  fitHelp(program)
}

/** Help is read in narrow terminals, and copied into pages. */
const COLUMNS = 80
/** The widest term or setting's name in columns; a longer one has its meaning on the next line. */
const TERM_COLUMNS = 36

function fitHelp(command: Command): void {
  const { writeOut } = command.configureOutput()
  if (writeOut !== undefined) command.configureOutput({ writeOut: (text) => writeOut(fitted(text)) })
  // The lines are folded by us; a command's own help names its arguments.
  command.configureHelp({ helpWidth: 10_000, subcommandTerm: (inner) => inner.name() })
  for (const inner of command.commands) fitHelp(inner)
}

export const fitted = (text: string): string =>
  text
    .split('\n')
    .map((line) => (line.length <= COLUMNS ? line : folded(line)))
    .join('\n')

/** Folds a line: a meaning continues below its beginning, and a command continues after a backslash, as in a shell. */
function folded(line: string): string {
  const [, term = '', meaning = ''] = /^( {2,}\S.*? {2,})(\S.*)$/.exec(line) ?? []
  const blanks = /^ */.exec(line)?.[0] ?? ''
  if (term === '') return wrapped(line.trim(), blanks, blanks !== '' ? ' \\' : '')
  if (term.length <= TERM_COLUMNS) return term + wrapped(meaning, ' '.repeat(term.length), '').trimStart()
  return `${term.trimEnd()}\n${wrapped(meaning, `${blanks}    `, '')}`
}

/** `end`: the text at the end of each line but the last. */
function wrapped(text: string, indent: string, end: string): string {
  const lines: string[] = []
  let line = indent
  for (const word of text.split(' ')) {
    const isFull = line.trim() !== '' && line.length + 1 + word.length + end.length > COLUMNS
    if (isFull) {
      lines.push(line + end)
      line = indent + (end === '' ? '' : '  ')
    }
    line += line.trim() === '' ? word : ` ${word}`
  }
  return [...lines, line].join('\n')
}

/** `words`: of the command line. Ends the program with an error if they ask for the help of a command that does not exist. */
export function refuseUnknownHelp(program: Command, words: readonly string[]): void {
  if (!words.includes('--help') && !words.includes('-h')) return
  let at = program
  for (const word of words) {
    // Words that follow a command without others are its arguments.
    if (word.startsWith('-') || at.commands.length === 0) return
    at = commandOf(at, word, program)
  }
}

function commandOf(owner: Command, word: string, program: Command): Command {
  const found = owner.commands.find((one) => one.name() === word || one.aliases().includes(word))
  if (found !== undefined) return found
  const names = owner.commands.map((one) => one.name())
  const has = owner === program ? 'there is' : `${owner.name()} has`
  return owner.error(`error: ${has} no command "${word}"${didYouMean(word, names)}`)
}
