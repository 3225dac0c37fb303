/** `changes`: who changed what, in order, from the log of an organization, of the environment or of the directory; `decisions`: denials. */
import { type Command, Option } from 'commander'
import { addConnectionOptions, type ConnectionOptions, connect, organizationPath } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { type Item, type ItemsPage, table } from './print.ts'

const COLUMNS = ['revision', 'at', 'actor', 'change']
type Options = ConnectionOptions & { readonly log?: string; readonly after: string }

export function addChangesCommand(program: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    program
      .command('changes')
      .description('Print who changed what: in the organization -o, or in a log of the whole PDP.')
      .addOption(new Option('--log <log>', 'without -o: which log').choices(['environment', 'directory']))
      .option('--after <revision>', 'only what came after this revision', '0'),
  ).action((options: Options) => run(() => print(options, io)))
}

async function print(options: Options, io: NodeJS.Process): Promise<void> {
  const connection = await connect(options, { io, scope: 'audit:read' })
  const { organization, log } = options
  const path = organization === undefined ? '/v1/changes' : `${organizationPath(options)}/changes`
  let isFirst = true
  for (let after = options.after, more = true; more; isFirst = false) {
    const query = new URLSearchParams({ after, ...(organization === undefined && log !== undefined ? { log } : {}) })
    const page = await connection.ask<{
      readonly items: readonly Item[]
      readonly after: number
      readonly more: boolean
      readonly gap: boolean
    }>({ method: 'GET', path: `${path}?${query}` })
    if (page.gap && isFirst) io.stderr.write('The log begins later: earlier changes were deleted.\n')
    if (options.json === true) for (const item of page.items) io.stdout.write(`${JSON.stringify(item)}\n`)
    else if (page.items.length > 0 || isFirst) io.stdout.write(table(page.items, COLUMNS))
    more = page.more
    after = String(page.after)
  }
}

const DENIAL_COLUMNS = ['at', 'subject', 'relation', 'resource', 'reason', 'app', 'route', 'request_id']
const FILTERS = ['subject', 'resource', 'route', 'reason', 'request', 'from', 'to'] as const
type DenialOptions = ConnectionOptions & { readonly [filter in (typeof FILTERS)[number]]?: string } & {
  readonly limit: string
}

export function addDecisionsCommand(program: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    program
      .command('decisions')
      .description('Print what was denied in the organization -o, by all PDPs, newest first.')
      .option('--subject <subject>', 'only about this subject, such as user:alice')
      .option('--resource <resource>', 'only about this resource')
      .option('--route <route>', 'only by this route of a sidecar, such as "GET /invoices/{id}"')
      .option('--reason <reason>', 'only for this reason, such as none')
      .option('--request <id>', 'only of this request or decision')
      .option('--from <instant>', 'from this instant on, such as 2030-01-31T12:00:00Z')
      .option('--to <instant>', 'before this instant')
      .option('--limit <count>', 'how many at most', '100'),
  ).action((options: DenialOptions) => run(() => printDenials(options, io)))
}

async function printDenials(options: DenialOptions, io: NodeJS.Process): Promise<void> {
  const { organization, limit } = options
  if (organization === undefined) throw new CliError('decisions belong to an organization: name it with -o')
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new CliError(`--limit ${limit} is not a number from 1 to 999999`)
  const connection = await connect(options, { io, scope: 'decisions:read' })
  const filter = FILTERS.flatMap((name): readonly [string, string][] => {
    const value = options[name]
    return value === undefined ? [] : [[name, value]]
  })
  const path = `${organizationPath(options)}/decisions`
  const items: Item[] = []
  for (let token: string | null = ''; token !== null && items.length < Number(limit); ) {
    const size = String(Math.min(1_000, Number(limit) - items.length))
    const query = new URLSearchParams([...filter, ['page_size', size]])
    if (token !== '') query.set('page_token', token)
    const page: ItemsPage = await connection.ask({ method: 'GET', path: `${path}?${query}` })
    items.push(...page.items)
    token = page.next_page_token
  }
  if (options.json === true) for (const item of items) io.stdout.write(`${JSON.stringify(item)}\n`)
  else io.stdout.write(table(items, DENIAL_COLUMNS))
}
