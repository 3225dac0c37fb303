/** `stream`: shows the state of each stream of Shared Signals, and does what an operator can do with it. */
import type { Command } from 'commander'
import { jsonOr } from '../command-line.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect } from '../connection.ts'
import type { Run } from '../errors.ts'
import { type Item, show } from './print.ts'

const COLUMNS = ['stream_id', 'client_id', 'organization', 'delivery', 'status', 'lag_seconds', 'last_error']
const DETAILS = [...COLUMNS, 'reason', 'pending', 'attempts', 'dead_letters', 'dropped', 'last_delivered_at']
type Options = ConnectionOptions & { readonly reason?: string }

export function addStreamCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.command('stream').description('Streams of security events to receivers (Shared Signals).')
  const open = (options: Options, kind: 'read' | 'write') => connect(options, { io, scope: `streams:${kind}` })

  addConnectionOptions(group.command('list').description('Print all streams, with their lag and last error.')).action(
    (options: Options) =>
      run(async () => {
        const all = await readStreams(await open(options, 'read'))
        const { organization: own } = options
        const items = own === undefined ? all : all.filter(({ organization }) => organization === own)
        io.stdout.write(show(items, { json: options.json === true, columns: COLUMNS }))
      }),
  )
  addConnectionOptions(group.command('show').description('Print the state of one stream.').argument('<id>')).action(
    (id: string, options: Options) =>
      run(async () => {
        const item = await (await open(options, 'read')).ask<Item>({ method: 'GET', path: pathOf(id) })
        io.stdout.write(options.json === true ? `${JSON.stringify(item, null, 2)}\n` : details(item))
      }),
  )
  for (const [name, description, done] of [
    ['pause', 'Pause a stream: tell the receiver, and keep its events for a week at most.', 'paused'],
    ['resume', 'Resume a stream: tell the receiver, and send the events that were kept.', 'resumed'],
    ['verify', 'Send a verification event, to see whether the receiver takes it.', 'sent to'],
  ] as const) {
    const command = group.command(name).description(description).argument('<id>')
    if (name !== 'verify') command.option('--reason <text>', 'why, for the receiver')
    addConnectionOptions(command).action((id: string, options: Options) =>
      run(async () => {
        const connection = await open(options, 'write')
        const body = name === 'verify' ? {} : { body: { reason: options.reason } }
        await connection.send({ method: 'POST', path: `${pathOf(id)}/${name}`, ...body })
        io.stdout.write(jsonOr(options, {}, `${done}: ${id}\n`))
      }),
    )
  }
}

const pathOf = (id: string): string => `/v1/streams/${encodeURIComponent(id)}`

/** One line for each member. */
const details = (item: Item): string => DETAILS.map((name) => `${name}: ${item[name] ?? '-'}\n`).join('')

async function readStreams(connection: Connection): Promise<readonly Item[]> {
  const items: Item[] = []
  for (let after: string | null = ''; after !== null; ) {
    const query = after === '' ? '' : `?${new URLSearchParams({ after })}`
    const page: { items: readonly Item[]; next: string | null } = await connection.ask({
      method: 'GET',
      path: `/v1/streams${query}`,
    })
    items.push(...page.items)
    after = page.next
  }
  return items
}
