/** The command line of `portcullis`: what people ask a running PDP every day, and what developers make from models. */
import { Command } from 'commander'
import { CLIENT_SETTINGS } from './commands/client-settings.ts'
import { exitOnMisuse, runClient, settingsTable, warnOfUnknownSettings } from './commands/command-line.ts'
import { addCompareCommand } from './commands/compare.ts'
import { addDecisionCommands } from './commands/decisions.ts'
import { EXIT } from './commands/errors.ts'
import { addCompletionCommand } from './commands/everyday/completion.ts'
import { addDoctorCommand } from './commands/everyday/doctor.ts'
import { addGrantCommands, addListCommands } from './commands/everyday/grants.ts'
import { addInvitationCommands } from './commands/everyday/invitations.ts'
import { addIssuerCommands } from './commands/everyday/issuers.ts'
import { addLoginCommands } from './commands/everyday/login.ts'
import { addResourceCommands } from './commands/everyday/resources.ts'
import { addSetupCommand } from './commands/everyday/setup.ts'
import { addStreamCommands } from './commands/everyday/streams.ts'
import { addImportCommands } from './commands/import.ts'
import { addManifestCommands } from './commands/manifest.ts'
import { addModelCommands } from './commands/model.ts'
import { addRelationshipCommands } from './commands/relationships.ts'
import { addTypesCommand } from './commands/types.ts'
import { didYouMean } from './domain/nearest.ts'
import { addHelpCommand, refuseUnknownHelp } from './process/command/help.ts'
import { finishCommands } from './process/command/json-errors.ts'
import { readVersion } from './process/command/version.ts'

export async function runClientCli(io: NodeJS.Process): Promise<void> {
  const program = new Command('portcullis')
    .description('Portcullis: ask and manage a running PDP, and make types and tests of models.')
    .addHelpText('after', `\nEnvironment:\n${settingsTable(CLIENT_SETTINGS)}`)
    .version(readVersion())
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
  const run = runClient(io)
  addDecisionCommands(program, io, run)
  addCompareCommand(program, io, run)
  addRelationshipCommands(program, io, { run, name: 'tuple' })
  addManifestCommands(program, io, run)
  addImportCommands(program, io, run)
  addModelCommands(program, io)
  addTypesCommand(program, io, run)
  addSetupCommand(program, io, run)
  addResourceCommands(program, io, run)
  addGrantCommands(program, io, run)
  addInvitationCommands(program, io, run)
  addIssuerCommands(program, io, run)
  addListCommands(program, io, run)
  addStreamCommands(program, io, run)
  addLoginCommands(program, io, run)
  addDoctorCommand(program, io, run)
  addCompletionCommand(program, io, run)
  addHelpCommand(program, didYouMean)
  exitOnMisuse(program, io, EXIT.failed)
  finishCommands(program, program.name(), io)
  warnOfUnknownSettings(io)
  refuseUnknownHelp(program, io.argv.slice(2), didYouMean)
  await program.parseAsync(io.argv)
}
