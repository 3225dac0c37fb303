/** The command `relationships`: writes, deletes, imports and exports tuples of an organization. */

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { messageOf } from '../../shared/base/error-message.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { parseTuple, typeOf } from '../../shared/domain/names.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { Reader, ValidationIssues } from '../model-test/located-yaml.ts'
import { readTupleFile } from '../model-test/tuple-file.ts'
import { jsonOr } from './command-line.ts'
import {
  addConnectionOptions,
  type Connection,
  type ConnectionOptions,
  connect,
  organizationPath,
} from './connection.ts'
import { ANYBODY, unknownNames } from './decisions.ts'
import { CliError, problemError, type Run, textOf } from './errors.ts'
import { countLines, NEWLINE, watchJob } from './long-job.ts'

const TUPLE = 'type:id#relation@subject, such as invoice:42#viewer@user:alice'
const importHelp = (command: string): string => `
Each line is a tuple, optionally followed by the time at which it expires, or the same as JSON. Empty lines and lines
that begin with # are skipped. A file that ends in .csv, .json or .yaml has them as OpenFGA writes them (fga tuple read);
then a line is a tuple. 1,000 lines are stored at a time: all of them, or none. After an error, correct the line and
continue with --after-line.

Examples:
  ${command} import tuples.txt -o acme
  ${command} export -o acme | ${command} import - -o copy`

type WriteOptions = ConnectionOptions & { readonly expiresAt?: string }
type Filter = { readonly object?: string; readonly relation?: string; readonly subject?: string }

export function addRelationshipCommands(
  program: Command,
  io: NodeJS.Process,
  { run, name }: { readonly run: Run; readonly name: 'relationships' | 'tuple' },
): void {
  const group = program.command(name).description('Tuples of an organization, on a running PDP.')
  for (const op of ['write', 'delete'] as const) {
    const command = addConnectionOptions(
      group
        .command(op)
        .description(`${op === 'write' ? 'Write' : 'Delete'} the tuples: all of them, or none if one is refused.`)
        .argument('<tuple...>', TUPLE),
    ).action((tuples: readonly string[], options: WriteOptions) => run(() => write({ op, tuples, options, io })))
    if (op === 'write') command.option('--expires-at <time>', 'when the tuples end, such as 2031-01-31T12:00:00Z')
  }
  addConnectionOptions(
    group
      .command('import')
      .description('Write the tuples of a file, one per line.')
      .argument('<file>', 'a file, or - for standard input')
      .option('--after-line <number>', 'skip all lines up to this number', lineNumber)
      .addHelpText('after', importHelp(`${program.name()} ${name}`)),
  ).action((file: string, options: ConnectionOptions & { afterLine?: number }) =>
    run(() => importFile(file, options, io)),
  )
  addConnectionOptions(
    group
      .command('export')
      .description('Print one tuple per line, in the form that import reads; with --json as JSON.')
      .option('--object <object>', 'only tuples with this object')
      .option('--relation <relation>', 'only tuples with this relation')
      .option('--subject <subject>', 'only tuples with this subject'),
  ).action((options: ConnectionOptions & Filter) => run(() => exportAll(options, io)))
}

function lineNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('not a line number')
  return Number(text)
}

async function open(
  options: ConnectionOptions,
  io: NodeJS.Process,
  scope: string,
): Promise<{ connection: Connection; path: string }> {
  const path = `${organizationPath(options)}/relationships`
  return { connection: await connect(options, { io, scope }), path }
}

/** Checks the tuple before credentials are needed. */
function requireTuple(text: string, place: string): void {
  try {
    parseTuple(text)
  } catch (err) {
    throw err instanceof PdpError ? new CliError(`${place}: ${err.message}`, { cause: err }) : err
  }
}

async function write(asked: {
  op: 'write' | 'delete'
  tuples: readonly string[]
  options: WriteOptions
  io: NodeJS.Process
}): Promise<void> {
  const { op, tuples, options, io } = asked
  for (const [i, tuple] of tuples.entries()) requireTuple(tuple, `/${op}/${i}`)
  const { expiresAt: expires_at } = options
  const sent = expires_at === undefined ? tuples : tuples.map((tuple) => ({ ...parseTuple(tuple), expires_at }))
  const { connection, path } = await open(options, io, 'relationships:write')
  const body = await connection.ask<unknown>({ method: 'POST', path, body: { [op]: sent } })
  const deleted = op === 'delete' ? deletedCount(body, tuples.length) : 0
  const text = op === 'write' ? `stored: ${tuples.length}` : `deleted: ${deleted}`
  io.stdout.write(jsonOr(options, body, `${text}\n`))
  if (op === 'delete' && deleted < tuples.length) io.stderr.write(notStored(tuples.length - deleted, tuples.length))
  if (op === 'write') for (const note of await misspelt(tuples, options, io)) io.stderr.write(`note: ${note}\n`)
}

const TYPES_MAX = 256

/** Undeclared types with a similar declared one; empty if the client may not ask. */
async function misspelt(
  tuples: readonly string[],
  options: ConnectionOptions,
  io: NodeJS.Process,
): Promise<readonly string[]> {
  const parsed = tuples.map(parseTuple)
  const asked = new Map(parsed.map(({ object, relation }) => [typeOf(object), relation]))
  const permissions = [...asked].slice(0, TYPES_MAX).map(([type, relation]) => ({ relation, resource: `${type}:any` }))
  try {
    const connection = await connect(options, { io, scope: 'decisions:read', bind: true })
    const found = await unknownNames(connection, { permissions, subject: ANYBODY })
    return found.filter((note) => note.includes('did you mean'))
  } catch (err) {
    if (err instanceof CliError) return []
    throw err
  }
}

/** How many tuples were deleted; a PDP of an earlier version does not say it. */
function deletedCount(body: unknown, asked: number): number {
  const said = typeof body === 'object' && body !== null && 'applied_count' in body ? body.applied_count : null
  return typeof said === 'number' ? said : asked
}

/** A note on deleted tuples that were not stored: after a typing error, the access would still exist. */
const notStored = (count: number, asked: number): string =>
  asked === 1
    ? 'this tuple was not stored, so nothing was taken away. What is stored: portcullis tuple export\n'
    : `${count} of these ${asked} tuples ${count === 1 ? 'was' : 'were'} not stored. What is stored: portcullis tuple export\n`

async function exportAll(options: ConnectionOptions & Filter, io: NodeJS.Process): Promise<void> {
  const { object, relation, subject } = options
  const { connection, path } = await open(options, io, 'relationships:read')
  const filter = Object.entries({ object, relation, subject }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  const query = new URLSearchParams(filter).toString()
  const response = await connection.send({
    method: 'GET',
    path: `${path}:export${query === '' ? '' : `?${query}`}`,
    accept: options.json === true ? 'application/x-ndjson' : 'text/plain',
  })
  try {
    const body = response.body
    const left = (): string => 'the output is not complete; export again'
    // A terminal already shows the tuples, so no progress is shown.
    const job = { unit: 'tuples', total: null, shown: io.stdout.isTTY !== true, left }
    if (body !== null)
      await watchJob(io, job, (report) =>
        pipeline(Readable.fromWeb(body), countLines(report), io.stdout, { end: false }),
      )
  } catch (err) {
    throw new CliError(`the export ended early, so the output is not complete: ${messageOf(err)}`, { cause: err })
  }
}

type Progress = { readonly line: number; readonly tuples?: number; readonly done?: true; readonly problem?: object }

async function importFile(
  file: string,
  options: ConnectionOptions & { afterLine?: number },
  io: NodeJS.Process,
): Promise<void> {
  if (/\.(?:csv|json|ya?ml)$/i.test(file)) return importLines(openFgaTuples(file), options, io)
  const source = file === '-' ? io.stdin : createReadStream(file)
  if (file === '-') return importLines(source, options, io)
  await readable(source, file)
  const total = io.stderr.isTTY === true ? await linesIn(file) : undefined
  return importLines(source, { ...options, ...(total !== undefined && { total }) }, io)
}

/** The number of the file's lines; undefined for a pipe, which cannot be read twice. */
async function linesIn(file: string): Promise<number | undefined> {
  if (!(await stat(file)).isFile()) return undefined
  let lines = 0
  let isOpen = false
  for await (const piece of createReadStream(file)) {
    const bytes: Buffer = piece
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1
    isOpen = bytes.at(-1) !== NEWLINE
  }
  return isOpen ? lines + 1 : lines
}

/** The tuples as lines of JSON. Throws CliError with every wrong line. */
function openFgaTuples(file: string): Readable {
  const issues = new ValidationIssues()
  const tuples = readTupleFile(new Reader(file, issues), textOf(file))
  if (issues.lines.length > 0) throw new CliError(['nothing was stored', ...issues.lines].join('\n  '))
  const lines = tuples.map(({ object, relation, user: subject, condition }) =>
    JSON.stringify({ object, relation, subject, condition }),
  )
  return Readable.from([Buffer.from(lines.join('\n'))])
}

/** Throws CliError if the organization is unknown, or the token may not write its tuples. */
export async function importNothing(options: ConnectionOptions, io: NodeJS.Process): Promise<void> {
  const { connection, path } = await open(options, io, 'relationships:write')
  const nothing = { stream: Readable.from([]), type: 'application/x-ndjson' }
  const response = await connection.send({ method: 'POST', path: `${path}:import`, lines: nothing })
  for await (const progress of progressOf(response))
    if (progress.problem !== undefined) throw problemError(0, progress.problem)
}

/** Throws CliError with the number of the last stored line when not all are stored. */
export async function importLines(
  source: Readable,
  options: ConnectionOptions & { afterLine?: number; total?: number },
  io: NodeJS.Process,
): Promise<void> {
  const { afterLine = 0 } = options
  const { connection, path } = await open(options, io, 'relationships:write')
  const response = await connection.send({
    method: 'POST',
    path: `${path}:import?after_line=${afterLine}`,
    lines: { stream: source, type: 'application/x-ndjson' },
  })
  let last: Progress = { line: afterLine }
  const left = (): string => `lines up to ${last.line} are stored; continue with --after-line ${last.line}`
  const shown = options.json !== true
  await watchJob(io, { unit: 'lines', total: options.total ?? null, shown, left }, async (report) => {
    for await (const progress of progressOf(response)) {
      last = progress
      report(progress.line)
      if (options.json === true) io.stdout.write(`${JSON.stringify(progress)}\n`)
    }
  })
  if (last.done === true) {
    if (options.json !== true) io.stdout.write(`stored: ${last.tuples ?? 0} tuples of ${last.line} lines\n`)
    return
  }
  const reason = last.problem === undefined ? 'the answer ended early' : problemError(0, last.problem).message
  throw new CliError(`${reason}\n${left()}`)
}

function readable(source: Readable, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    source.once('open', () => resolve())
    source.once('error', (cause) => reject(new CliError(fileProblem(file, cause), { cause })))
  })
}

async function* progressOf(response: Response): AsyncGenerator<Progress> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const piece of response.body ?? []) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line) as Progress
  }
}
