/** `changes`: who changed what, in order, from the log of an organization, of the environment or of the directory. */
import { type Command, Option } from 'commander'
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.ts'
import { EXIT, type Run } from '../errors.ts'
import { type Item, table } from './print.ts'

const COLUMNS = ['revision', 'at', 'actor', 'change']
type Options = ConnectionOptions & { readonly log?: string; readonly after: string }
type Page = { readonly items: readonly Item[]; readonly after: number; readonly more: boolean; readonly gap: boolean }

export function addChangesCommand(program: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    program
      .command('changes')
      .description('Print who changed what: in the organization -o, or in a log of the whole PDP.')
      .addOption(new Option('--log <log>', 'without -o: which log').choices(['environment', 'directory']))
      .option('--after <revision>', 'only what came after this revision', '0'),
  ).action((options: Options) => run(() => print(options, io)))
}

async function print(options: Options, io: NodeJS.Process): Promise<number> {
  const connection = await connect(options, { io, scope: 'audit:read', bind: false })
  const { organization, log } = options
  const path =
    organization === undefined ? '/v1/changes' : `/v1/organizations/${encodeURIComponent(organization)}/changes`
  let isFirst = true
  for (let after = options.after, more = true; more; isFirst = false) {
    const query = new URLSearchParams({ after, ...(organization === undefined && log !== undefined ? { log } : {}) })
    const page = (await (await connection.send({ method: 'GET', path: `${path}?${query}` })).json()) as Page
    if (page.gap && isFirst) io.stderr.write('The log begins later: earlier changes were deleted.\n')
    if (options.json === true) for (const item of page.items) io.stdout.write(`${JSON.stringify(item)}\n`)
    else if (page.items.length > 0 || isFirst) io.stdout.write(table(page.items, COLUMNS))
    more = page.more
    after = String(page.after)
  }
  return EXIT.ok
}
