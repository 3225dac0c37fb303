/** `model test`: runs the tests of store files without a server. */
import type { Command } from 'commander'

type Options = { readonly allowExternalFiles?: boolean; readonly json?: true }

export function addModelCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('model')
    .description('Relation models in the OpenFGA language.')
    .command('test')
    .description('Run the tests of store files (.fga.yaml) without a server. Prints one line for each failure.')
    .argument('<file...>', 'store files, or patterns of file names')
    .option('--allow-external-files', 'read files outside of the folder of the store file that names them')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExit status: 0 all passed, 1 a test failed or a PDP that serves would refuse something,\n2 a file could not be used.',
    )
    .action(async (files: readonly string[], { allowExternalFiles = false, json }: Options) => {
      const { runModelTests } = await import('../model-test/model-test.ts')
      const lines: string[] = []
      const write = (text: string): unknown => (json === true ? lines.push(text.trimEnd()) : io.stdout.write(text))
      io.exitCode = await runModelTests(files, { write, directory: io.cwd(), allowExternalFiles })
      if (json !== true) return
      const result = { passed: io.exitCode === 0, summary: lines.at(-1), failures: lines.slice(0, -1) }
      io.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
    })
}
