/** `member invite`, `member invitations` and `member uninvite`: people join an organization by a link in a mail. */
import type { Command } from 'commander'
import { jsonOr } from '../command-line.ts'
import {
  addConnectionOptions,
  type Connection,
  type ConnectionOptions,
  connect,
  organizationPath,
} from '../connection.ts'
import type { Run } from '../errors.ts'
import { type Item, show } from './print.ts'
import { readAll } from './resources.ts'

const COLUMNS = ['id', 'email', 'role', 'invited_by', 'expires_at']
type Options = ConnectionOptions & {
  readonly role?: string
  readonly grant?: readonly string[]
  readonly language?: string
}

export function addInvitationCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.commands.find((command) => command.name() === 'member')
  if (group === undefined) throw new TypeError('the command member comes first')
  const print = (items: readonly Item[], options: Options): void =>
    void io.stdout.write(show(items, { json: options.json === true, columns: COLUMNS }))
  const open = async (options: Options, scope: string): Promise<{ connection: Connection; path: string }> => {
    const path = `${organizationPath(options)}/invitations`
    return { connection: await connect(options, { io, scope }), path }
  }
  addConnectionOptions(
    group
      .command('invite')
      .description('Mail somebody a link by which they join, with an account or without one yet.')
      .argument('<email>')
      .option('--role <tier>', 'owner, admin, developer, member or viewer (member)')
      .option('--grant <role...>', 'roles that they are granted too: <role>, or <app>/<role>')
      .option('--language <tag>', 'language of the mail: en, de, fr or es (en)'),
  ).action((email: string, options: Options) =>
    run(async () => {
      const { role = 'member', grant = [], language } = options
      const scope = grant.length === 0 ? 'directory:write' : 'directory:write roles:write'
      const { connection, path } = await open(options, scope)
      const body = { email, role, roles: grant.map(roleOf), ...(language === undefined ? {} : { language }) }
      print([await connection.ask<Item>({ method: 'POST', path, body })], options)
    }),
  )
  addConnectionOptions(
    group.command('invitations').description('Print the invitations that nobody has answered yet.'),
  ).action((options: Options) =>
    run(async () => {
      const { connection, path } = await open(options, 'directory:read')
      print(await readAll(connection, path), options)
    }),
  )
  addConnectionOptions(
    group.command('uninvite').description('Withdraw an invitation, so that its link no longer works.').argument('<id>'),
  ).action((id: string, options: Options) =>
    run(async () => {
      const { connection, path } = await open(options, 'directory:write')
      await connection.send({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
      io.stdout.write(jsonOr(options, {}, `withdrawn: ${id}\n`))
    }),
  )
}

/** The app and role of `app/role`, split at the last slash: apps' ids may have one, role keys have none. */
function roleOf(text: string): { readonly app?: string; readonly role: string } {
  const slash = text.lastIndexOf('/')
  return slash < 0 ? { role: text } : { app: text.slice(0, slash), role: text.slice(slash + 1) }
}
