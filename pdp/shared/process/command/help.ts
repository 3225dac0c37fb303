/** `help WORD…` and `WORD… --help`: the library's own print the help of another command where there is no such one. */
import type { Command } from 'commander'

/** The end of a message about a name that does not exist. */
type DidYouMean = (name: string, candidates: Iterable<string>) => string

/** To be called when all other commands are there. */
export function addHelpCommand(program: Command, didYouMean: DidYouMean): void {
  program.helpCommand(false)
  program
    .command('help [command...]')
    .description('show the help of a command')
    .action((words: readonly string[]) => {
      let at = program
      for (const word of words) at = commandOf(at, word, { program, didYouMean })
      at.outputHelp()
    })
}

/** `words`: of the command line. Ends the program with an error if they ask for the help of a command that does not exist. */
export function refuseUnknownHelp(program: Command, words: readonly string[], didYouMean: DidYouMean): void {
  if (!words.includes('--help') && !words.includes('-h')) return
  let at = program
  for (const word of words) {
    // What follows a command without others are its arguments.
    if (word.startsWith('-') || at.commands.length === 0) return
    at = commandOf(at, word, { program, didYouMean })
  }
}

function commandOf(
  owner: Command,
  word: string,
  { program, didYouMean }: { readonly program: Command; readonly didYouMean: DidYouMean },
): Command {
  const found = owner.commands.find((one) => one.name() === word || one.aliases().includes(word))
  if (found !== undefined) return found
  const names = owner.commands.map((one) => one.name())
  const has = owner === program ? 'there is' : `${owner.name()} has`
  return owner.error(`error: ${has} no command "${word}"${didYouMean(word, names)}`)
}
