/** The command `import users`: imports people of another system, with their password hashes. */
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { Command } from 'commander'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { type People, readPeople } from '../import/people.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { CliError, EXIT, type Run } from './errors.ts'

/** As many as the PDP takes at once. */
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

async function importUsers(file: string, options: Options, io: NodeJS.Process): Promise<number> {
  const dryRun = options.dryRun === true
  const people = file === '-' ? null : await readExport(file)
  for (const note of people?.notes ?? []) io.stderr.write(`${note}\n`)
  const connection = await connect(options, { io, scope: 'directory:write', bind: false })
  const send = async (stream: Readable, isDry: boolean): Promise<{ readonly users: number }> => {
    const response = await connection.send({
      method: 'POST',
      path: `/v1/users:import?dry_run=${isDry}`,
      lines: { stream, type: 'application/x-ndjson' },
    })
    return { users: 0, ...Object(await response.json()) }
  }
  let users = 0
  if (people === null) users = (await send(file === '-' ? io.stdin : createReadStream(file), dryRun)).users
  else {
    const parts: string[] = []
    for (let at = 0; at < people.lines.length; at += USERS_PER_IMPORT)
      parts.push(people.lines.slice(at, at + USERS_PER_IMPORT).join('\n'))
    // All are judged before any is written.
    for (const isDry of dryRun ? [true] : [true, false]) {
      users = 0
      for (const part of parts) users += (await send(Readable.from([Buffer.from(part)]), isDry)).users
    }
  }
  const text = dryRun ? `${users} users could be imported; nothing was changed` : `imported: ${users} users`
  io.stdout.write(`${options.json === true ? JSON.stringify({ users, dry_run: dryRun }) : text}\n`)
  return EXIT.ok
}

async function readExport(file: string): Promise<People | null> {
  return readPeople(
    await readFile(file, 'utf8').catch((err: Error) => {
      throw new CliError(fileProblem(file, err), { cause: err })
    }),
  )
}
