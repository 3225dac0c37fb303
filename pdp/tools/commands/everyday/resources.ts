/** `org`, `user`, `client`, `member`, `role` and `entitlement`: lists, shows, writes and deletes them on a running PDP. */

import type { Command } from 'commander'
import { jsonOr } from '../command-line.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { type Flags, text } from './flags.ts'
import { type Item, type ItemsPage, show, table } from './print.ts'
import { RESOURCES, type Resource } from './resource-kinds.ts'

/** Texts for ids in help that differ from the default. */
const ID_TEXTS: { readonly [member: string]: string } = { user: 'id of the user', key: 'its key' }

type Options = ConnectionOptions & Flags
type Invocation = { readonly resource: Resource; readonly options: Options; readonly io: NodeJS.Process }

export function addResourceCommands(program: Command, io: NodeJS.Process, run: Run): void {
  for (const resource of RESOURCES) {
    const { name, description, flags, argument } = resource
    const [one, many] = resource.words
    const idText = ID_TEXTS[resource.id] ?? 'its id'
    const group = program.command(name).description(description)
    const asked = (options: Options): Invocation => ({ resource, options, io })
    addConnectionOptions(group.command('list').description(`Print all ${many}.`)).action((options: Options) =>
      run(() => list(asked(options))),
    )
    addConnectionOptions(group.command('get').description(`Print ${one}.`).argument('<id>', idText)).action(
      (id: string, options: Options) => run(() => get(id, asked(options))),
    )
    const put = group
      .command('put')
      .description(`Create ${one}, or change it: what is not named stays.`)
      .argument('<id>', idText)
    if (argument !== undefined) put.argument(...argument)
    for (const flag of flags) put.option(...flag)
    put.option('--replace', 'what is not named does not stay')
    addConnectionOptions(put, resource.organization).action((id: string, ...rest: readonly unknown[]) =>
      run(() => putOne(id, argument === undefined ? undefined : text(rest[0] as Flags[string]), asked(optionsOf(put)))),
    )
    addConnectionOptions(group.command('delete').description(`Delete ${one}.`).argument('<id>', idText)).action(
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
  const connection = await connect(options, { io, scope })
  return { connection, path: resource.path(encodeURIComponent(organization ?? '')) }
}

async function list(asked: Invocation): Promise<void> {
  const { resource, options, io } = asked
  const { connection, path } = await open(asked, 'read')
  const items =
    resource.isWhole === true
      ? (await connection.ask<ItemsPage>({ method: 'GET', path })).items
      : await readAll(connection, path)
  io.stdout.write(show(items, { json: options.json === true, columns: resource.columns }))
}

/** The items of all pages. */
export async function readAll(connection: Connection, path: string): Promise<readonly Item[]> {
  const items: Item[] = []
  for (let token: string | null = ''; token !== null; ) {
    const query = new URLSearchParams({ page_size: '1000', ...(token === '' ? {} : { page_token: token }) })
    const separator = path.includes('?') ? '&' : '?'
    const page: ItemsPage = await connection.ask({ method: 'GET', path: `${path}${separator}${query}` })
    items.push(...page.items)
    token = page.next_page_token
  }
  return items
}

async function get(id: string, asked: Invocation): Promise<void> {
  const { connection, path } = await open(asked, 'read')
  print(await connection.ask({ method: 'GET', path: `${path}/${encodeURIComponent(id)}` }), asked)
}

async function putOne(id: string, argument: string | undefined, asked: Invocation): Promise<void> {
  const { resource, options } = asked
  const flags = { ...options, id }
  // Wrong flags are reported before the first request.
  resource.said(flags, null, argument)
  const { connection, path: all } = await open(asked, 'write')
  const path = `${all}/${encodeURIComponent(id)}`
  const found = await findTagged(connection, path)
  const stored = options.replace === true ? null : (found?.item ?? null)
  const said = resource.said(flags, stored, argument)
  requireNothingDropped(said, found?.item ?? {}, options)
  const condition: { [name: string]: string } = found === null ? { 'if-none-match': '*' } : { 'if-match': found.tag }
  const request =
    stored !== null && resource.isWholeValue !== true
      ? { method: 'PATCH', body: said }
      : { method: 'PUT', body: whole(said, stored ?? resource.fresh?.(flags) ?? {}) }
  print(await connection.ask({ ...request, path, headers: condition }), asked)
}

/** Throws CliError for a client that would lose its organization: it would act in all organizations, with the same secret. */
function requireNothingDropped(said: Item, { organization }: Item, { replace }: Options): void {
  if (replace !== true || !('organization' in said) || said.organization !== undefined || organization == null) return
  throw new CliError(
    `this would take it out of organization ${organization}, and let it act in all of them: add -o ${organization} to keep it there, or --unbound`,
  )
}

/** The whole item: members that the flags do not set come from `before`. */
function whole(said: Item, before: Item): Item {
  const members = Object.keys(said).map((name) => [name, said[name] === undefined ? before[name] : said[name]] as const)
  return Object.fromEntries(members.filter(([, value]) => value !== null))
}

async function findTagged(connection: Connection, path: string): Promise<{ item: Item; tag: string } | null> {
  try {
    const response = await connection.send({ method: 'GET', path })
    return { item: (await response.json()) as Item, tag: response.headers.get('etag') ?? '*' }
  } catch (err) {
    if (err instanceof CliError && err.status === 404) return null
    throw err
  }
}

async function remove(id: string, asked: Invocation): Promise<void> {
  const { connection, path } = await open(asked, 'write')
  await connection.send({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
  asked.io.stdout.write(jsonOr(asked.options, {}, `deleted: ${id}\n`))
}

function print(item: Item, { resource, options, io }: Invocation): void {
  const secret = text(item.client_secret as Flags[string])
  io.stdout.write(options.json === true ? `${JSON.stringify(item, null, 2)}\n` : table([item], resource.columns))
  if (secret !== undefined && options.json !== true) io.stdout.write(`\nsecret, shown this once: ${secret}\n`)
}
