/** `portcullis-pdp keys`: the signing keys of the identity service, changed in the database that all nodes share. */
import type { Command } from 'commander'
import { readConfig } from '../../server/runtime/config.ts'
import { runCommand } from '../../shared/process/exit.ts'

export function addKeyCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('keys')
    .description('Signing keys of the identity service.')
    .command('rotate')
    .description('Sign with the next key, which all verifiers have already fetched, and publish another one.')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) => runCommand(() => rotate(json === true, io), io))
}

async function rotate(json: boolean, io: NodeJS.Process): Promise<void> {
  const { rotateSigningKeys } = await import('../../server/runtime/database.ts')
  const { activeKid, nextKid } = await rotateSigningKeys(readConfig(io.env))
  io.stdout.write(
    json
      ? `${JSON.stringify({ active_kid: activeKid, next_kid: nextKid })}\n`
      : `All nodes sign with ${activeKid} within half a minute. The next key is ${nextKid}.\n`,
  )
}
