/** The command `import users`: imports people of another system, with their password hashes. */
import { createReadStream } from 'node:fs'
import { access } from 'node:fs/promises'
import type { Command } from 'commander'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { CliError, EXIT, type Run } from './errors.ts'

type Options = ConnectionOptions & { readonly dryRun?: true }

const HELP = `
Each line is a JSON object:
  {"id": "u1", "email": "ann@example.com", "email_verified": true, "name": "Ann", "password_hash": "$2b$12$…"}
Only id is required. password_hash is of bcrypt, Argon2, PBKDF2 or scrypt, in PHC or modular crypt form. It becomes a
hash of Portcullis when the person signs in for the first time. If a line is wrong, the command names it and imports
nothing.

Exit status: 0 imported, or with --dry-run could be imported; 2 something is refused, or failed.`

export function addUserImportCommand(group: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    group
      .command('users')
      .description('Create the users of a file, one JSON object per line.')
      .argument('<file>', 'a file, or - for standard input')
      .option('--dry-run', 'change nothing; say what is wrong')
      .addHelpText('after', HELP),
  ).action((file: string, options: Options) => run(() => importUsers(file, options, io)))
}

async function importUsers(file: string, options: Options, io: NodeJS.Process): Promise<number> {
  const dryRun = options.dryRun === true
  if (file !== '-')
    await access(file).catch((err: Error) => {
      throw new CliError(fileProblem(file, err), { cause: err })
    })
  const connection = await connect(options, { io, scope: 'directory:write', bind: false })
  const response = await connection.send({
    method: 'POST',
    path: `/v1/users:import?dry_run=${dryRun}`,
    lines: { stream: file === '-' ? io.stdin : createReadStream(file), type: 'application/x-ndjson' },
  })
  const answer: unknown = await response.json()
  const { users } = Object(answer)
  const text = dryRun ? `${users} users could be imported; nothing was changed` : `imported: ${users} users`
  io.stdout.write(`${options.json === true ? JSON.stringify(answer) : text}\n`)
  return EXIT.ok
}
