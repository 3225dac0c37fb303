/** The command `issuer`: other identity providers that the PDP trusts, and their streams of security events. */
import type { Command } from 'commander'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { jsonOr } from '../command-line.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect, find } from '../connection.ts'
import { CliError, type Run } from '../errors.ts'
import { type Item, show } from './print.ts'

const COLUMNS = ['issuer', 'subject_prefix', 'organizations', 'signals']
const PATH = '/v1/trusted-issuers'

export function addIssuerCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program
    .command('issuer')
    .description('Trusted issuers: other identity providers whose tokens the PDP accepts.')
  const open = (options: ConnectionOptions): Promise<Connection> => connect(options, { io, scope: 'issuers:read' })
  addConnectionOptions(group.command('list').description('Print all trusted issuers.')).action(
    (options: ConnectionOptions) =>
      run(async () => {
        const connection = await open(options)
        const found = await connection.ask<unknown>({ method: 'GET', path: PATH })
        const items = isJsonObject(found) && Array.isArray(found.items) ? found.items.filter(isJsonObject) : []
        const shown = await Promise.all(items.map(async (item) => ({ ...item, signals: await word(connection, item) })))
        io.stdout.write(show(options.json === true ? items : shown, { json: options.json === true, columns: COLUMNS }))
      }),
  )
  addDelete(group, io, run)
  addConnectionOptions(
    group
      .command('show')
      .description('Print the registration of a trusted issuer, and the state of its security events.')
      .argument('<issuer>', 'as its tokens name it, such as https://login.example.com'),
  ).action((issuer: string, options: ConnectionOptions) =>
    run(async () => {
      const connection = await open(options)
      const found = await find(connection, pathOf(issuer))
      if (found === null) throw new CliError(`there is no trusted issuer ${issuer}: see portcullis issuer list`)
      const signals = await stateOf(connection, found)
      const whole: Item = { ...found, ...(found.ssf !== undefined && { signals }) }
      io.stdout.write(options.json === true ? `${JSON.stringify(whole, null, 2)}\n` : lines(whole))
    }),
  )
}

function addDelete(group: Command, io: NodeJS.Process, run: Run): void {
  addConnectionOptions(
    group
      .command('delete')
      .description('Trust an issuer no longer: its tokens are refused from the next decision on.')
      .argument('<issuer>', 'as its tokens name it'),
  ).action((issuer: string, options: ConnectionOptions) =>
    run(async () => {
      const connection = await connect(options, { io, scope: 'issuers:write' })
      await connection.send({ method: 'DELETE', path: pathOf(issuer) })
      io.stdout.write(jsonOr(options, {}, `deleted: ${issuer}\n`))
    }),
  )
}

const pathOf = (issuer: unknown): string => `${PATH}/${encodeURIComponent(String(issuer))}`

/** The state of the stream; null: no transmitter is named, or the stream does not exist yet. */
const stateOf = async (connection: Connection, { issuer, ssf }: Item): Promise<Item | null> =>
  ssf === undefined ? null : find(connection, `${pathOf(issuer)}/signals`)

async function word(connection: Connection, item: Item): Promise<string | null> {
  if (item.ssf === undefined) return null
  const state = await stateOf(connection, item)
  if (state === null) return 'not made yet'
  if (state.silent === true) return 'silent'
  return state.error === null ? String(state.status) : 'failing'
}

/** One line per member; a nested member has its path as name. */
function lines(item: Item, above = ''): string {
  return Object.entries(item)
    .map(([name, value]) => {
      const path = above === '' ? name : `${above}.${name}`
      if (isJsonObject(value)) return lines(value, path)
      return `${path.padEnd(32)}  ${Array.isArray(value) && !value.some(isJsonObject) ? value.join(' ') : textOf(value)}\n`
    })
    .join('')
}

const textOf = (value: unknown): string =>
  value === null ? '-' : typeof value === 'object' ? JSON.stringify(value) : String(value)
