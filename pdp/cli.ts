/** The command line of `portcullis-pdp`. */
import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { Command } from 'commander'
import { addDecisionCommands } from './commands/decisions.ts'
import { CliError, EXIT } from './commands/errors.ts'
import { addImportCommands } from './commands/import.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addManifestCommands } from './commands/manifest.ts'
import { addRelationshipCommands } from './commands/relationships.ts'
import { runCommand } from './process/exit.ts'
import { createLog } from './process/log.ts'
import { openLogOutput } from './process/log-output.ts'
import { createShutdown } from './process/shutdown.ts'
import { CLIENT_SETTINGS, readConfig, SETTINGS } from './runtime/config.ts'

const SHUTDOWN_TIMEOUT_MS = 20_000

/** Runs one command. A server keeps running after the promise has resolved, until SIGINT or SIGTERM. */
export async function runPdpCli(io: NodeJS.Process): Promise<void> {
  const program = new Command('portcullis-pdp')
    .description('The Portcullis policy decision point: decisions, management and the identity service.')
    .addHelpText(
      'after',
      `\nEnvironment of serve, migrate and keys (secrets also as …_FILE, the path of a file with the value):\n${table(SETTINGS)}`,
    )
    .addHelpText('after', `\nEnvironment of the commands that connect to a running PDP:\n${table(CLIENT_SETTINGS)}`)
    .version(readVersion())
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
  program
    .command('serve')
    .description('Update the schema of the database and serve until SIGINT or SIGTERM (the default command).')
    .action(() => runCommand(() => serve(io), io))
  program
    .command('migrate')
    .description('Update the schema of the database and exit.')
    .action(() => runCommand(() => migrate(io), io))
  addKeyCommands(program, io)
  addModelCommands(program, io)
  const run = runClient(io)
  addDecisionCommands(program, io, run)
  addRelationshipCommands(program, io, run)
  addManifestCommands(program, io, run)
  addImportCommands(program, io, run)
  for (const command of program.commands) {
    if (!SERVER_COMMANDS.has(command.name())) exitWithFailure(command, io)
  }
  hintAtHelp(program, program.name())
  const [node = '', script = '', ...words] = io.argv
  await program.parseAsync(words.length === 0 ? [node, script, 'serve'] : io.argv)
}

/** The version in the nearest package.json, which is ours in the source, in dist and in the image. */
function readVersion(): string {
  const path = findPackageJSON(import.meta.url)
  const found: unknown = path === undefined ? null : JSON.parse(readFileSync(path, 'utf8'))
  return typeof found === 'object' && found !== null && 'version' in found ? String(found.version) : 'unknown'
}

function hintAtHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try: ${name} --help`)
  for (const inner of command.commands) hintAtHelp(inner, `${name} ${inner.name()}`)
}

const SERVER_COMMANDS: ReadonlySet<string> = new Set(['serve', 'migrate', 'keys'])

/** Wrong arguments exit with 2 like other failures, because 1 means "denied". */
function exitWithFailure(command: Command, io: NodeJS.Process): void {
  command.exitOverride((err) => void io.exit(err.exitCode === 0 ? EXIT.ok : EXIT.failed))
  for (const inner of command.commands) exitWithFailure(inner, io)
}

function addModelCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('model')
    .description('Relation models in the OpenFGA language.')
    .command('test')
    .description('Run the tests of store files (.fga.yaml) without a server. Prints one line for each failure.')
    .argument('<file...>', 'store files, or patterns of file names')
    .option('--allow-external-files', 'read files outside of the folder of the store file that names them')
    .addHelpText(
      'after',
      '\nExit status: 0 all passed, 1 a test failed or a PDP that serves would refuse something,\n2 a file could not be used.',
    )
    .action(async (files: readonly string[], { allowExternalFiles = false }: { allowExternalFiles?: boolean }) => {
      const { runModelTests } = await import('./model-test/model-test.ts')
      const write = (text: string): boolean => io.stdout.write(text)
      io.exitCode = await runModelTests(files, { write, directory: io.cwd(), allowExternalFiles })
    })
}

/** Runs a command that connects to a running PDP. Its errors are printed without a stack. */
function runClient(io: NodeJS.Process): (work: () => Promise<number>) => Promise<void> {
  return async (work) => {
    // The reader of the output may close it early.
    io.stdout.on('error', () => io.exit(EXIT.failed))
    try {
      io.exitCode = await work()
    } catch (err) {
      io.stderr.write(`${err instanceof CliError ? err.message : err instanceof Error ? err.stack : err}\n`)
      io.exitCode = EXIT.failed
    }
  }
}

// Loaded only here: the server's modules take a second to load, and a client command does not need them.
async function serve(io: NodeJS.Process): Promise<void> {
  const { startPdp } = await import('./runtime/start.ts')
  const config = readConfig(io.env)
  const log = createLog({ service: 'portcullis-pdp', level: config.logLevel, destination: openLogOutput() })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  await startPdp(config, { log, shutdown })
}

async function migrate(io: NodeJS.Process): Promise<void> {
  const { migrateStore } = await import('./runtime/database.ts')
  const applied = await migrateStore(readConfig(io.env))
  io.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied: ${applied.join(', ')}\n`)
}

function table(settings: readonly (readonly [name: string, meaning: string])[]): string {
  const width = Math.max(...settings.map(([name]) => name.length))
  return settings.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
