/** The command line of `portcullis`: what people ask a running PDP every day, and what developers make from models. */
import { Command } from 'commander'
import { addHelpCommand, refuseUnknownHelp } from './shared/process/command/help.ts'
import { finishCommands } from './shared/process/command/json-errors.ts'
import { endWithReader } from './shared/process/command/output.ts'
import { readVersion } from './shared/process/command/version.ts'
import { exitOnMisuse, runClient, settingsTable, warnOfUnknownSettings } from './tools/commands/command-line.ts'
import { addCompareCommand } from './tools/commands/compare.ts'
import { CLIENT_SETTINGS } from './tools/commands/connection.ts'
import { addDecisionCommands } from './tools/commands/decisions.ts'
import { EXIT } from './tools/commands/errors.ts'
import { addChangesCommand, addDecisionsCommand } from './tools/commands/everyday/changes.ts'
import { addCompletionCommand } from './tools/commands/everyday/completion.ts'
import { addDoctorCommand } from './tools/commands/everyday/doctor.ts'
import { addDelegationCommands, addGrantCommands, addListCommands } from './tools/commands/everyday/grants.ts'
import { addInvitationCommands } from './tools/commands/everyday/invitations.ts'
import { addIssuerCommands } from './tools/commands/everyday/issuers.ts'
import { addLoginCommands } from './tools/commands/everyday/login.ts'
import { addResourceCommands } from './tools/commands/everyday/resources.ts'
import { addSetupCommand } from './tools/commands/everyday/setup.ts'
import { addStreamCommands } from './tools/commands/everyday/streams.ts'
import { addUserStateCommands } from './tools/commands/everyday/user-states.ts'
import { addImportCommands } from './tools/commands/import.ts'
import { addManifestCommands } from './tools/commands/manifest.ts'
import { addModelCommands } from './tools/commands/model.ts'
import { addRelationshipCommands } from './tools/commands/relationships.ts'
import { addTypesCommand } from './tools/commands/types.ts'

/** The groups of the help; every command is in one of them. */
const GROUPS: { readonly [heading: string]: readonly string[] } = {
  'Ask:': ['check', 'explain', 'list', 'compare'],
  'Begin:': ['setup', 'doctor', 'manifest', 'model', 'types', 'import'],
  'Organizations, people and what they hold:': [
    'org',
    'user',
    'member',
    'role',
    'entitlement',
    'tuple',
    'changes',
    'decisions',
  ],
  'Programs and other services:': ['client', 'delegation', 'issuer', 'identity-provider', 'stream', 'sidecars'],
  'Sign in:': ['login', 'logout', 'whoami', 'token', 'session'],
  'This program:': ['completion', 'help'],
}

export async function runClientCli(io: NodeJS.Process): Promise<void> {
  endWithReader(io)
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
  addUserStateCommands(program, io, run)
  addChangesCommand(program, io, run)
  addDecisionsCommand(program, io, run)
  addGrantCommands(program, io, run)
  addDelegationCommands(program, io, run)
  addInvitationCommands(program, io, run)
  addIssuerCommands(program, io, run)
  addListCommands(program, io, run)
  addStreamCommands(program, io, run)
  addLoginCommands(program, io, run)
  addDoctorCommand(program, io, run)
  addCompletionCommand(program, io, run)
  addHelpCommand(program)
  for (const [heading, names] of Object.entries(GROUPS))
    for (const command of program.commands.filter((one) => names.includes(one.name()))) command.helpGroup(heading)
  exitOnMisuse(program, io, EXIT.failed)
  finishCommands(program, program.name(), io)
  warnOfUnknownSettings(io)
  refuseUnknownHelp(program, io.argv.slice(2))
  await program.parseAsync(io.argv)
}
