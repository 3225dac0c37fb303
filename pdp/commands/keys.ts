/** `portcullis-pdp keys`: the signing keys of the identity service, changed in the database that all nodes share. */
import type { Command } from 'commander'
import { runCommand } from '../process/exit.ts'
import { readConfig } from '../runtime/config.ts'

export function addKeyCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('keys')
    .description('Signing keys of the identity service.')
    .command('rotate')
    .description('Sign with the next key, which everybody knows already, and publish another one.')
    .action(() => runCommand(() => rotate(io), io))
}

async function rotate(io: NodeJS.Process): Promise<void> {
  const { rotateSigningKeys } = await import('../runtime/start.ts')
  const { activeKid, nextKid } = await rotateSigningKeys(readConfig(io.env))
  io.stdout.write(`Signing with ${activeKid} within half a minute; published for the next time: ${nextKid}\n`)
}
