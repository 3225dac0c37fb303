/** `portcullis-pdp rotate-master-key` and `portcullis-pdp keys`: change the keys that encrypt the database, and the signing keys. */
import type { Command } from 'commander'
import type { RotationReport } from '../../identity/issuer/keys/master-key-rotation.ts'
import { readConfig } from '../../server/runtime/config.ts'
import { runCommand, StartError } from '../../shared/process/exit.ts'
import { jsonOr } from './command-line.ts'
import { watchJob } from './long-job.ts'

type Options = { readonly dryRun?: boolean; readonly json?: boolean }
const NAMED_MAX = 20
const LEFT = 'what was encrypted with the next key stays so; the PDPs read both. Run the command again to go on'

export function addMasterKeyCommand(program: Command, io: NodeJS.Process): void {
  program
    .command('rotate-master-key')
    .description(
      'Encrypt what the database holds with PORTCULLIS_NEXT_MASTER_KEY while the PDPs serve. If it ends early, run it again.',
    )
    .option('--dry-run', 'say what would change, and change nothing')
    .option('--json', 'print the result as JSON')
    .action((options: Options) => runCommand(() => rotate(options, io), io))
}

async function rotate({ dryRun = false, json = false }: Options, io: NodeJS.Process): Promise<void> {
  const { changeMasterKey } = await import('../../server/runtime/database.ts')
  const config = readConfig(io.env)
  const progress = (line: string): void => void (json || io.stderr.write(`${line}\n`))
  const job = { unit: 'values', total: null as number | null, shown: !json, left: () => LEFT }
  const report = await watchJob(io, job, (report) => {
    const counted = (done: number, total: number): void => {
      job.total = total
      report(done)
    }
    return changeMasterKey(config, { dryRun, progress, counted })
  })
  const said = text(report, { dryRun, isGiven: config.masterKey !== null })
  io.stdout.write(jsonOr({ json }, { ...report, dryRun }, said))
  const lasting = report.unreadable.filter(({ transient }) => !transient)
  if (lasting.length > 0) throw new StartError(unreadableMessage(lasting))
}

function text(
  { from, to, places, unreadable }: RotationReport,
  { dryRun, isGiven }: { dryRun: boolean; isGiven: boolean },
): string {
  const width = Math.max(0, ...places.map(({ what }) => what.length))
  const lines = places.map(
    ({ what, changed, already }) =>
      `  ${what.padEnd(width)} ${changed} ${dryRun ? 'to change' : 'changed'}${already > 0 ? `, ${already} had the next key` : ''}`,
  )
  const lost = unreadable.filter(({ transient }) => transient).length
  const head = `${dryRun ? 'Would encrypt' : 'Encrypted'} with the next master key (${to}) instead of ${from}:`
  const after = lost === 0 ? [] : [`${lost} sign-ins under way can be decrypted with neither key; they expire unused.`]
  return `${[head, ...lines, ...after, ...(dryRun ? [] : whatNext(unreadable, isGiven))].join('\n')}\n`
}

function whatNext(unreadable: RotationReport['unreadable'], isGiven: boolean): readonly string[] {
  if (unreadable.some(({ transient }) => !transient)) return []
  return isGiven
    ? [
        'The former key is no longer needed to read the database. Make the next key PORTCULLIS_MASTER_KEY, remove',
        'PORTCULLIS_NEXT_MASTER_KEY, and restart the PDPs. People whose browsers have not come back since must sign in again.',
        'Keep the former key as long as you keep backups from before.',
      ]
    : ['The data directory holds the next key as its master key now. Keep a copy of it beside your backups.']
}

function unreadableMessage(lasting: RotationReport['unreadable']): string {
  const named = lasting.slice(0, NAMED_MAX).map(({ what, name }) => `  ${what}: ${name}`)
  const more = lasting.length > named.length ? [`  and ${lasting.length - named.length} more`] : []
  return [
    'Some values can be decrypted with neither key, so the rotation is not complete. Write them again or delete them through',
    'the management API (authenticators, token hook, trusted issuers), keep both keys, and run this command again:',
    ...named,
    ...more,
  ].join('\n')
}

/** `portcullis-pdp keys`: the signing keys of the identity service, changed in the database that all nodes share. */
export function addKeyCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('keys')
    .description('Signing keys of the identity service.')
    .command('rotate')
    .description('Sign with the next key, which all verifiers have already fetched, and publish another one.')
    .option('--json', 'print JSON')
    .action((options: Options) => runCommand(() => rotateSigning(options, io), io))
}

async function rotateSigning(options: Options, io: NodeJS.Process): Promise<void> {
  const { rotateSigningKeys } = await import('../../server/runtime/database.ts')
  const { activeKid, nextKid } = await rotateSigningKeys(readConfig(io.env))
  const said = `All nodes sign with ${activeKid} within half a minute. The next key is ${nextKid}.\n`
  io.stdout.write(jsonOr(options, { active_kid: activeKid, next_kid: nextKid }, said))
}
