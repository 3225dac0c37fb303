/** The command `import users`: imports people of another system, with their password hashes. */
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { Command } from 'commander'
import { readPeople } from '../import/people.ts'
import { jsonOr } from './command-line.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { type Run, textOf } from './errors.ts'
import { countLines, watchJob } from './long-job.ts'

/** How many people the PDP accepts in one call. */
export const USERS_PER_IMPORT = 20_000
type Options = ConnectionOptions & { readonly dryRun?: true }

const HELP = `
Each line is a JSON object:
  {"id": "u1", "email": "ann@example.com", "email_verified": true, "name": "Ann", "password_hash": "$2b$12$…"}
Only id is required. password_hash is of bcrypt, Argon2, PBKDF2 or scrypt, in PHC or modular crypt form. It becomes a
hash of Portcullis when the person signs in for the first time. If a line is wrong, the command names it and imports
nothing. Of Keycloak (kc.sh export, with its users) and Auth0 people keep the ids that their tokens have as sub; those who
are disabled there are left out.

Exit status: 0 imported, or with --dry-run could be imported; 2 something is refused, or failed.`

export function addUserImportCommand(group: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    group
      .command('users')
      .description('Create the users of a file: JSON lines, a realm export of Keycloak, or the bulk export of Auth0.')
      .argument('<file>', 'a file, or - for standard input')
      .option('--dry-run', 'change nothing; say what is wrong')
      .addHelpText('after', HELP),
  ).action((file: string, options: Options) => run(() => importUsers(file, options, io)))
}

async function importUsers(file: string, options: Options, io: NodeJS.Process): Promise<void> {
  const dryRun = options.dryRun === true
  const text = file === '-' ? '' : textOf(file)
  // Null for lines in the PDP's own form.
  const people = readPeople(text)
  const linesCount = file === '-' ? null : text.trimEnd().split('\n').length
  for (const note of people?.notes ?? []) io.stderr.write(`${note}\n`)
  const connection = await connect(options, { io, scope: 'directory:write' })
  const send = async (stream: Readable, isDry: boolean): Promise<{ readonly users: number }> => {
    const lines = { stream, type: 'application/x-ndjson' }
    const path = `/v1/users:import?dry_run=${isDry}`
    return { users: 0, ...(await connection.ask<object>({ method: 'POST', path, lines })) }
  }
  let users = 0
  const job = {
    unit: 'users',
    total: people?.lines.length ?? linesCount,
    shown: options.json !== true,
    left: () => leftAt(users),
  }
  await watchJob(io, job, async (report) => {
    if (people === null) {
      const source: Readable = file === '-' ? io.stdin : createReadStream(file)
      const counted = source.pipe(countLines(report))
      source.once('error', (err) => counted.destroy(err))
      users = (await send(counted, dryRun)).users
      return
    }
    // The PDP checks all people before any is written.
    if (!dryRun) await inParts(people.lines, (part) => send(part, true))
    await inParts(people.lines, async (part) => {
      users += (await send(part, dryRun)).users
      report(users)
    })
  })
  const said = dryRun ? `${users} users could be imported; nothing was changed` : `imported: ${users} users`
  io.stdout.write(jsonOr(options, { users, dry_run: dryRun }, `${said}\n`))
}

const leftAt = (users: number): string =>
  users === 0
    ? 'nothing is imported, unless the PDP had all of the file: portcullis user list tells'
    : `the first ${users} users are imported; the PDP refuses them a second time: import the rest of the file`

async function inParts(lines: readonly string[], send: (part: Readable) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < lines.length; at += USERS_PER_IMPORT)
    await send(Readable.from([Buffer.from(lines.slice(at, at + USERS_PER_IMPORT).join('\n'))]))
}
