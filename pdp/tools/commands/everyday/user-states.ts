/** Commands that end or reset a person's access without deleting the person: `user block`, `user sign-out`, `session`, `sidecars`. */
import type { Command } from 'commander'
import { jsonOr } from '../command-line.ts'
import { addConnectionOptions, type ConnectionOptions, connect, organizationPath } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { fileText } from './flags.ts'
import { type Item, show } from './print.ts'

type Options = ConnectionOptions & { readonly passwordFile?: string }
type Action = {
  readonly name: string
  readonly description: string
  readonly scope: string
  readonly done: string
  readonly flag?: readonly [flags: string, meaning: string]
  /** `below`: the path below the person's own path. */
  steps(options: Options): readonly { readonly method: string; readonly below: string; readonly body?: object }[]
}

const ACTIONS: readonly Action[] = [
  {
    name: 'block',
    description: 'Shut a person out: sessions and tokens end at once. What the person holds stays.',
    scope: 'directory:write',
    done: 'blocked',
    steps: () => [{ method: 'POST', below: '/block' }],
  },
  {
    name: 'unblock',
    description: 'Let a person in again who was blocked.',
    scope: 'directory:write',
    done: 'unblocked',
    steps: () => [{ method: 'POST', below: '/unblock' }],
  },
  {
    name: 'sign-out',
    description: 'End all sessions and all tokens of a person, who may sign in again.',
    scope: 'sessions:revoke',
    done: 'signed out',
    steps: () => [{ method: 'POST', below: '/sessions:revoke' }],
  },
  {
    name: 'reset-second-factor',
    description: 'Remove the authenticator app and all passkeys of a person who has lost them.',
    scope: 'directory:write',
    done: 'has no second factor',
    steps: () => [
      { method: 'DELETE', below: '/totp' },
      { method: 'DELETE', below: '/passkeys' },
    ],
  },
  {
    name: 'set-password',
    description: 'Set a password; all sessions end.',
    scope: 'directory:write',
    done: 'has a new password',
    flag: ['--password-file <file>', 'file with the password'],
    steps: ({ passwordFile }) => {
      if (passwordFile === undefined) throw new CliError('name the file with the password: --password-file')
      return [{ method: 'PATCH', below: '', body: { password: fileText(passwordFile) } }]
    },
  },
]

/** Must be called after `addResourceCommands`, which makes the command `user`. */
export function addUserStateCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const user = program.commands.find((command) => command.name() === 'user')
  if (user === undefined) throw new TypeError('there is no command user')
  for (const action of ACTIONS) {
    const command = user.command(action.name).description(action.description).argument('<id>', 'id of the user')
    if (action.flag !== undefined) command.option(...action.flag)
    addConnectionOptions(command).action((id: string, options: Options) => run(() => act(action, id, { options, io })))
  }
  addConnectionOptions(
    user
      .command('offboard')
      .description('Shut a person out, and take away every membership, role and relationship.')
      .argument('<id>', 'id of the user')
      .option('--dry-run', 'change nothing; show everything that the person holds'),
  ).action((id: string, options: Options & { readonly dryRun?: true }) => run(() => offboard(id, { options, io })))
  const member = program.commands.find((command) => command.name() === 'member')
  addConnectionOptions(
    (member ?? program)
      .command('sign-out')
      .description('End what a member opened by signing in, within what the organization may end.')
      .argument('<user>', 'id of the user'),
    'id of the organization',
  ).action((user: string, options: Options) => run(() => signOutMember(user, { options, io })))
  const session = program.command('session').description('Browser sessions of people.')
  addConnectionOptions(
    session
      .command('list')
      .description('Print the sessions of a person, the newest first.')
      .argument('<user>', 'id of the user'),
  ).action((user: string, options: Options) =>
    run(() =>
      list(`/v1/users/${encodeURIComponent(user)}/sessions`, {
        options,
        io,
        scope: 'sessions:revoke',
        columns: ['id', 'browser', 'address', 'signed_in_at', 'last_used_at', 'clients'],
      }),
    ),
  )
  addConnectionOptions(
    program.command('sidecars').description('Print the sidecars that are connected to the PDP.'),
  ).action((options: Options) =>
    run(() => list('/v1/sidecars', { options, io, scope: 'decisions:read', columns: SIDECAR_COLUMNS })),
  )
  addConnectionOptions(
    session
      .command('end')
      .description('End one session, and the tokens that depend on it.')
      .argument('<id>', 'its id, as the log of changes and the events name it'),
  ).action((id: string, options: Options) =>
    run(async () => {
      const connection = await connect(options, { io, scope: 'sessions:revoke' })
      await connection.send({ method: 'DELETE', path: `/v1/sessions/${encodeURIComponent(id)}` })
      say({ id, state: 'ended' }, { options, io })
    }),
  )
}

async function signOutMember(user: string, { options, io }: Asked): Promise<void> {
  const path = `${organizationPath(options)}/members/${encodeURIComponent(user)}/sessions:revoke`
  const connection = await connect(options, { io, scope: 'sessions:revoke' })
  const { everywhere = false } = await connection.ask<{ everywhere?: boolean }>({ method: 'POST', path })
  const left = `signed out of ${options.organization}; elsewhere the browser stays signed in`
  say({ id: user, state: everywhere ? 'signed out' : left, everywhere }, { options, io })
}

const SIDECAR_COLUMNS = ['name', 'resource', 'caller', 'routes', 'never_asked', 'requests', 'denied', 'connected_at']

async function list(
  path: string,
  { options, io, scope, columns }: Asked & { readonly scope: string; readonly columns: readonly string[] },
): Promise<void> {
  const connection = await connect(options, { io, scope })
  const { items } = await connection.ask<{ items: readonly Item[] }>({ method: 'GET', path })
  io.stdout.write(show(items, { json: options.json === true, columns }))
}

type Holdings = {
  readonly blocked: boolean
  readonly memberships: readonly { readonly organization: string; readonly role: string; readonly status: string }[]
  readonly roles: readonly {
    readonly organization: string | null
    readonly app: string | null
    readonly role: string
  }[]
  readonly relationships: readonly { readonly organization: string; readonly tuple: string }[]
  readonly complete: boolean
}

/** Shows a person's holdings, then removes them, in several calls for very many organizations. */
async function offboard(
  id: string,
  { options, io }: { readonly options: Options & { readonly dryRun?: true }; readonly io: NodeJS.Process },
): Promise<void> {
  const scope = options.dryRun === true ? 'directory:read' : 'directory:write roles:write relationships:write'
  const connection = await connect(options, { io, scope })
  const path = `/v1/users/${encodeURIComponent(id)}`
  const shown = async (method: string, below: string): Promise<Holdings> => {
    const held = await connection.ask<Holdings>({ method, path: `${path}${below}` })
    io.stdout.write(jsonOr(options, held, textOf(held)))
    return held
  }
  if (options.dryRun === true) {
    const { complete, blocked } = await shown('GET', '/holdings')
    if (options.json === true) return
    const more = complete ? '' : 'and more, not listed\n'
    io.stdout.write(`${more}${id} is ${blocked ? 'blocked' : 'not blocked'}; nothing was changed\n`)
    return
  }
  let held: Holdings
  do held = await shown('POST', '/offboard')
  while (!held.complete)
  say({ id, state: 'blocked, and holds nothing more' }, { options, io })
}

function textOf({ memberships, roles, relationships }: Holdings): string {
  const everywhere = (organization: string | null): string =>
    organization === null ? 'everywhere' : `in ${organization}`
  const lines = [
    ...memberships.map(({ organization, role, status }) => `member   ${role} (${status}) in ${organization}`),
    ...roles.map(
      ({ organization, app, role }) => `role     ${app === null ? '' : `${app}:`}${role} ${everywhere(organization)}`,
    ),
    ...relationships.map(({ organization, tuple }) => `relation ${tuple} in ${organization}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

type Asked = { readonly options: Options; readonly io: NodeJS.Process }

/** Runs all steps. At least one of them must have found something to do. */
async function act({ steps, scope, done }: Action, id: string, asked: Asked): Promise<void> {
  const all = steps(asked.options)
  const connection = await connect(asked.options, { io: asked.io, scope })
  const missing: unknown[] = []
  for (const { below, ...request } of all) {
    try {
      await connection.send({ ...request, path: `/v1/users/${encodeURIComponent(id)}${below}` })
    } catch (err) {
      if (!(err instanceof CliError) || err.status !== 404) throw err
      missing.push(err)
    }
  }
  if (missing.length === all.length) throw missing[0]
  say({ id, state: done }, asked)
}

function say(
  done: { readonly id: string; readonly state: string; readonly everywhere?: boolean },
  { options, io }: Asked,
): void {
  io.stdout.write(jsonOr(options, done, `${done.state}: ${done.id}\n`))
}
