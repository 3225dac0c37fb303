/** `help WORD…`: the library's own prints all commands where there is no such one. */
import type { Command } from 'commander'

/** `didYouMean`: the end of a message about a name that does not exist. */
export function addHelpCommand(
  program: Command,
  didYouMean: (name: string, candidates: Iterable<string>) => string,
): void {
  program.helpCommand(false)
  program
    .command('help [command...]')
    .description('show the help of a command')
    .action((words: readonly string[]) => {
      let at = program
      for (const word of words) {
        const next = at.commands.find((one) => one.name() === word || one.aliases().includes(word))
        const names = at.commands.map((one) => one.name())
        const owner = at === program ? 'there is' : `${at.name()} has`
        at = next ?? at.error(`error: ${owner} no command "${word}"${didYouMean(word, names)}`)
      }
      at.outputHelp()
    })
}
