/** The command line of `portcullis-pdp`. */
import { Command } from 'commander'
import { readConfig } from './server/runtime/config.ts'
import { SETTINGS } from './server/runtime/settings-help.ts'
import { addHelpCommand, refuseUnknownHelp } from './shared/process/command/help.ts'
import { finishCommands } from './shared/process/command/json-errors.ts'
import { endWithReader } from './shared/process/command/output.ts'
import { readVersion } from './shared/process/command/version.ts'
import { trustAuthorities, useProxy } from './shared/process/egress.ts'
import { EXIT_USAGE, runCommand } from './shared/process/exit.ts'
import { createLog } from './shared/process/log.ts'
import { openLogOutput } from './shared/process/log-output.ts'
import { createShutdown } from './shared/process/shutdown.ts'
import { exitOnMisuse, runClient, settingsTable } from './tools/commands/command-line.ts'
import { CLIENT_SETTINGS } from './tools/commands/connection.ts'
import { addDecisionCommands } from './tools/commands/decisions.ts'
import { EXIT } from './tools/commands/errors.ts'
import { addImportCommands } from './tools/commands/import.ts'
import { addManifestCommands } from './tools/commands/manifest.ts'
import { addKeyCommands, addMasterKeyCommand } from './tools/commands/master-key.ts'
import { addModelCommands } from './tools/commands/model.ts'
import { addRelationshipCommands } from './tools/commands/relationships.ts'

const SHUTDOWN_TIMEOUT_MS = 20_000

/** Runs one command. A server keeps running after the promise has resolved, until SIGINT or SIGTERM. */
export async function runPdpCli(io: NodeJS.Process): Promise<void> {
  endWithReader(io)
  const program = new Command('portcullis-pdp')
    .description('The Portcullis policy decision point: decisions, management and the identity service.')
    .addHelpText(
      'after',
      `\nEnvironment of serve, migrate, keys and rotate-master-key (secrets also as …_FILE, the path of a file with the value;\nSSL_CERT_FILE names certificate authorities to trust beside those of the system, HTTPS_PROXY the proxy of serve\nfor calls by https, and NO_PROXY its exceptions):\n${settingsTable(SETTINGS)}`,
    )
    .addHelpText(
      'after',
      `\nEnvironment of the commands that connect to a running PDP:\n${settingsTable(CLIENT_SETTINGS)}`,
    )
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
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) => runCommand(() => migrate(json === true, io), io))
  addKeyCommands(program, io)
  addMasterKeyCommand(program, io)
  addModelCommands(program, io)
  const run = runClient(io)
  addDecisionCommands(program, io, run)
  addRelationshipCommands(program, io, { run, name: 'relationships' })
  addManifestCommands(program, io, run)
  addImportCommands(program, io, run)
  addHelpCommand(program)
  exitOnMisuse(program, io, EXIT.failed)
  for (const command of program.commands) if (SERVER_COMMANDS.has(command.name())) exitOnMisuse(command, io, EXIT_USAGE)
  finishCommands(program, program.name(), io)
  const [node = '', script = '', ...words] = io.argv
  refuseUnknownHelp(program, words)
  await program.parseAsync(words.length === 0 ? [node, script, 'serve'] : io.argv)
}

const SERVER_COMMANDS: ReadonlySet<string> = new Set(['serve', 'migrate', 'keys', 'rotate-master-key'])

// Imported here, because the server's modules take a second to load and client commands do not need them.
async function serve(io: NodeJS.Process): Promise<void> {
  const { startPdp } = await import('./server/runtime/start.ts')
  trustAuthorities(io.env)
  const config = readConfig(io.env)
  useProxy(io.env, config.internalHosts)
  const output = openLogOutput('portcullis-pdp')
  const log = createLog({ service: 'portcullis-pdp', level: config.logLevel, destination: output })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  const { loaded } = await startPdp(config, { log, shutdown, droppedLines: output.droppedCount })
  await loaded
}

async function migrate(json: boolean, io: NodeJS.Process): Promise<void> {
  const { migrateStore } = await import('./server/runtime/database.ts')
  const applied = await migrateStore(readConfig(io.env))
  const text = applied.length === 0 ? 'The schema is up to date.' : `Applied: ${applied.join(', ')}`
  io.stdout.write(`${json ? JSON.stringify({ applied }) : text}\n`)
}
