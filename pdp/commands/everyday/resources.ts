/** `org`, `user`, `client`, `member`, `role` and `entitlement`: listed, shown, written and deleted on a running PDP. */

import type { Command } from 'commander'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect } from '../connection.ts'
import { CliError, EXIT, type Run } from '../errors.ts'
import { type Flags, fileText, text, words } from './flags.ts'
import { type Item, show } from './print.ts'

type Flag = readonly [flags: string, meaning: string]
type Resource = {
  readonly name: string
  readonly description: string
  /** Of the list, percent-encoded; items are below it. */
  readonly path: (organization: string) => string
  readonly inOrganization: boolean
  readonly id: string
  /** Before `:read` and `:write`. */
  readonly scope: string
  readonly columns: readonly string[]
  /** The list comes whole, and takes no page. */
  readonly isWhole?: true
  readonly flags: readonly Flag[]
  /** An argument after the id. */
  readonly argument?: Flag
  readonly body: (flags: Flags, argument: string | undefined) => object
  /** Scopes that writing this needs besides. */
  readonly given?: (flags: Flags) => readonly string[]
}

/** Scopes of the PDP itself: a client can give only those that it holds. */
const OWN_SCOPE =
  /^(?:(?:decisions|directory|manifest|roles|relationships|entitlements|clients|hooks|issuers|identity-providers|sessions|audit|events|streams):|ssf\.)/
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

const RESOURCES: readonly Resource[] = [
  {
    name: 'org',
    description: 'Organizations.',
    path: () => '/v1/organizations',
    inOrganization: false,
    id: 'id',
    scope: 'directory',
    columns: ['id', 'name', 'parent'],
    flags: [
      ['--name <name>', 'its name; by default its id'],
      ['--parent <id>', 'the organization above it'],
    ],
    body: ({ name, parent, id }) => ({ name: name ?? id, parent }),
  },
  {
    name: 'user',
    description: 'People who can sign in.',
    path: () => '/v1/users',
    inOrganization: false,
    id: 'id',
    scope: 'directory',
    columns: ['id', 'email', 'email_verified', 'name'],
    flags: [
      ['--email <address>', 'e-mail address'],
      ['--email-verified', 'the address is known to be theirs'],
      ['--name <name>', 'name'],
      ['--password-file <file>', 'file with the password'],
    ],
    body: ({ email, emailVerified, name, passwordFile }) => ({
      email,
      email_verified: emailVerified,
      name,
      password: fileText(passwordFile),
    }),
  },
  {
    name: 'client',
    description: 'OAuth clients. The secret of a new one is printed once.',
    path: () => '/v1/clients',
    inOrganization: false,
    id: 'client_id',
    scope: 'clients',
    given: ({ scope }) => (words(scope) ?? []).filter((word) => OWN_SCOPE.test(word)),
    columns: ['client_id', 'client_name', 'organization', 'app', 'scope'],
    flags: [
      ['--name <name>', 'name for people'],
      ['--scope <scopes>', 'scopes that it may ask for, separated by spaces'],
      ['--app <app>', 'the app whose roles its tokens carry'],
      ['--public', 'it cannot keep a secret, as a command line or a page in a browser cannot'],
      ['--device', 'people sign in to it by the device flow'],
      ['--redirect-uri <uri...>', 'people sign in to it in a browser, and return here'],
      ['--secret-file <file>', 'file with its secret; by default a new one'],
    ],
    body: ({ name, scope, app, organization, public: isPublic, device, redirectUri, secretFile }) => ({
      client_name: name,
      scope,
      app,
      organization,
      client_secret: fileText(secretFile),
      redirect_uris: redirectUri,
      token_endpoint_auth_method: isPublic === true ? 'none' : undefined,
      grant_types: [
        ...(redirectUri === undefined ? [] : ['authorization_code', 'refresh_token']),
        ...(device === true ? [DEVICE, ...(redirectUri === undefined ? ['refresh_token'] : [])] : []),
        ...(redirectUri === undefined && device !== true ? ['client_credentials'] : []),
      ],
    }),
  },
  {
    name: 'identity-provider',
    description: 'Other OpenID providers, at which people may sign in.',
    path: () => '/v1/identity-providers',
    inOrganization: false,
    id: 'id',
    scope: 'identity-providers',
    isWhole: true,
    columns: ['id', 'name', 'issuer', 'client_id'],
    flags: [
      ['--issuer <url>', 'exactly as its tokens name it'],
      ['--client <id>', 'the client id that the provider gave to Portcullis'],
      ['--secret-file <file>', 'file with the secret from the provider; by default the stored secret stays'],
      ['--name <name>', 'on the button; by default its id'],
      [
        '--auth-method <method>',
        'client_secret_basic, client_secret_post, private_key_jwt or none (client_secret_basic)',
      ],
      ['--scopes <scopes>', 'besides openid, separated by spaces (email profile)'],
      ['--email-domains <domains>', 'only verified addresses of these, separated by commas'],
      ['--organizations <ids>', 'only active members of these, separated by commas'],
      ['--creates-accounts', 'a person who is new gets an account, if the address is verified there'],
      ['--trusted-acr <values>', 'values of acr with which a sign-in there counts as two factors, separated by spaces'],
    ],
    body: (flags) => ({
      issuer: flags.issuer,
      client_id: flags.client,
      client_secret: fileText(flags.secretFile),
      name: flags.name ?? flags.id,
      token_endpoint_auth_method: flags.authMethod,
      scopes: words(flags.scopes),
      ...{ email_domains: words(flags.emailDomains), organizations: words(flags.organizations) },
      creates_accounts: flags.createsAccounts,
      trusted_acr: words(flags.trustedAcr),
    }),
  },
  {
    name: 'member',
    description: 'Members of an organization.',
    path: (organization) => `/v1/organizations/${organization}/members`,
    inOrganization: true,
    id: 'user',
    scope: 'directory',
    columns: ['user', 'role', 'status'],
    flags: [
      ['--role <tier>', 'owner, admin, developer, member or viewer (member)'],
      ['--status <status>', 'active, invited or suspended (active)'],
    ],
    body: ({ role = 'member', status = 'active' }) => ({ role, status }),
  },
  {
    name: 'role',
    description: 'Roles that no app owns; apps declare theirs in manifests.',
    path: () => '/v1/roles',
    inOrganization: false,
    id: 'key',
    scope: 'roles',
    columns: ['key', 'name', 'permissions'],
    flags: [
      ['--name <name>', 'name for people; by default its key'],
      ['--permissions <keys>', 'permission keys, separated by commas'],
    ],
    body: ({ name, permissions, id }) => ({ name: name ?? id, permissions: words(permissions) ?? [] }),
  },
  {
    name: 'entitlement',
    description: 'Entitlements of an organization.',
    path: (organization) => `/v1/organizations/${organization}/entitlements`,
    inOrganization: true,
    id: 'key',
    scope: 'entitlements',
    columns: ['key', 'value', 'enforcement', 'version'],
    flags: [['--claims', 'access tokens carry it, too']],
    argument: ['[value]', 'true, false or a JSON object (true)'],
    body: ({ claims }, value = 'true') => ({
      value: parseValue(value),
      enforcement: claims === true ? 'Claims' : undefined,
    }),
  },
]

function parseValue(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new CliError(`the value must be true, false or a JSON object, not ${JSON.stringify(value)}`)
  }
}

type Options = ConnectionOptions & Flags
type Invocation = { readonly resource: Resource; readonly options: Options; readonly io: NodeJS.Process }

export function addResourceCommands(program: Command, io: NodeJS.Process, run: Run): void {
  for (const resource of RESOURCES) {
    const { name, description, flags, argument } = resource
    const group = program.command(name).description(description)
    const asked = (options: Options): Invocation => ({ resource, options, io })
    addConnectionOptions(group.command('list').description('Print all of them.')).action((options: Options) =>
      run(() => list(asked(options))),
    )
    addConnectionOptions(group.command('get').description('Print one.').argument('<id>')).action(
      (id: string, options: Options) => run(() => get(id, asked(options))),
    )
    const put = group.command('put').description('Create one, or replace it.').argument('<id>')
    if (argument !== undefined) put.argument(...argument)
    for (const flag of flags) put.option(...flag)
    addConnectionOptions(put).action((id: string, ...rest: readonly unknown[]) =>
      run(() => putOne(id, argument === undefined ? undefined : text(rest[0] as Flags[string]), asked(optionsOf(put)))),
    )
    addConnectionOptions(group.command('delete').description('Delete one.').argument('<id>')).action(
      (id: string, options: Options) => run(() => remove(id, asked(options))),
    )
  }
}

const optionsOf = (command: Command): Options => command.opts()

async function open(
  { resource, options, io }: Invocation,
  kind: 'read' | 'write',
): Promise<{ connection: Connection; path: string }> {
  const { organization } = options
  if (resource.inOrganization && organization === undefined)
    throw new CliError('name the organization with --organization')
  const given = kind === 'write' ? (resource.given?.(options) ?? []) : []
  const scope = [...new Set([`${resource.scope}:${kind}`, ...given])].join(' ')
  const connection = await connect(options, { env: io.env, fetch, scope, bind: false })
  return { connection, path: resource.path(encodeURIComponent(organization ?? '')) }
}

async function list(asked: Invocation): Promise<number> {
  const { resource, options, io } = asked
  const { connection, path } = await open(asked, 'read')
  const items = resource.isWhole === true ? await readPage(connection, path) : await readAll(connection, path)
  io.stdout.write(show(items, { json: options.json === true, columns: resource.columns }))
  return EXIT.ok
}

async function readPage(connection: Connection, path: string): Promise<readonly Item[]> {
  const response = await connection.send({ method: 'GET', path })
  return ((await response.json()) as { items: readonly Item[] }).items
}

/** Every page, whatever the number of items. */
export async function readAll(connection: Connection, path: string): Promise<readonly Item[]> {
  const items: Item[] = []
  for (let token: string | null = ''; token !== null; ) {
    const query = new URLSearchParams({ page_size: '1000', ...(token === '' ? {} : { page_token: token }) })
    const separator = path.includes('?') ? '&' : '?'
    const response = await connection.send({ method: 'GET', path: `${path}${separator}${query}` })
    const page = (await response.json()) as { items: readonly Item[]; next_page_token: string | null }
    items.push(...page.items)
    token = page.next_page_token
  }
  return items
}

async function get(id: string, asked: Invocation): Promise<number> {
  const { connection, path } = await open(asked, 'read')
  const response = await connection.send({ method: 'GET', path: `${path}/${encodeURIComponent(id)}` })
  return print((await response.json()) as Item, asked)
}

async function putOne(id: string, argument: string | undefined, asked: Invocation): Promise<number> {
  const { resource, options } = asked
  const body = resource.body({ ...options, id }, argument)
  const { connection, path } = await open(asked, 'write')
  const response = await connection.send({ method: 'PUT', path: `${path}/${encodeURIComponent(id)}`, body })
  return print((await response.json()) as Item, asked)
}

async function remove(id: string, asked: Invocation): Promise<number> {
  const { connection, path } = await open(asked, 'write')
  await connection.send({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
  asked.io.stdout.write(asked.options.json === true ? '{}\n' : `deleted: ${id}\n`)
  return EXIT.ok
}

function print(item: Item, { resource, options, io }: Invocation): number {
  const secret = text(item.client_secret as Flags[string])
  io.stdout.write(
    options.json === true
      ? `${JSON.stringify(item, null, 2)}\n`
      : show([item], { json: false, columns: resource.columns }),
  )
  if (secret !== undefined && options.json !== true) io.stdout.write(`\nsecret, shown this once: ${secret}\n`)
  return EXIT.ok
}
