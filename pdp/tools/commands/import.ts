/** The command `import`: brings the model, the tuples and the tests of another system into an app and an organization. */

import { Readable } from 'node:stream'
import { type Command, InvalidArgumentError } from 'commander'
import { readDocument } from '../../engine/decide/language/document.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isId } from '../../shared/domain/names.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import { planOpenFga } from '../import/openfga.ts'
import { readOpenFga } from '../import/openfga-api.ts'
import { describePlan, type Plan, usersOf, withRenames, withSubjectPrefix } from '../import/plan.ts'
import { planSpiceDb } from '../import/spicedb.ts'
import { playAssertions } from '../import/spicedb-assertions.ts'
import { readSpiceDbFile } from '../import/spicedb-file.ts'
import { confinedTo, unconfined } from '../model-test/confined-files.ts'
import { ValidationIssues } from '../model-test/located-yaml.ts'
import { runModelTests } from '../model-test/model-test.ts'
import { readModelText } from '../model-test/model-text.ts'
import { readStoreFile } from '../model-test/store-file.ts'
import { jsonOr } from './command-line.ts'
import { addConnectionOptions, type ConnectionOptions, connect, find } from './connection.ts'
import { bytesOf, CliError, type Run, textOf } from './errors.ts'
import { addUserImportCommand, USERS_PER_IMPORT } from './import-users.ts'
import { importLines, importNothing } from './relationships.ts'

type Options = ConnectionOptions & {
  readonly app: string
  readonly dryRun?: true
  readonly allowExternalFiles?: true
  readonly subjectPrefix?: string
  readonly createUsers?: true
  readonly openfgaUrl?: string
  readonly openfgaStore?: string
  readonly rename?: ReadonlyMap<string, string>
  readonly ignoreTests?: true
}

const HELP = `
The app gets the model and keeps its audiences, permissions and roles; the organization gets the tuples. If anything is
refused, nothing is imported, and no user is created. With --dry-run a running PDP is asked as well.

Exit status: 0 imported, or with --dry-run could be imported; 2 something is refused, or failed.`

/** Matches prefixes that a trusted issuer may have. */
const SUBJECT_PREFIX = /^[\x21\x22\x24-\x7e]{1,64}$/

export function addImportCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.command('import').description('Import a model and tuples, or the users, of another system.')
  const add = (name: string, description: string): Command =>
    addConnectionOptions(group.command(name).description(description).addHelpText('after', HELP))
      .requiredOption('--app <id>', 'the app that gets the model')
      .option('--dry-run', 'change nothing; show what would be imported, under which names')
      .option(
        '--subject-prefix <prefix>',
        'people sign in at the trusted issuer with this subject_prefix: user:ann becomes user:~<prefix>ann',
      )
      .option('--create-users', 'create the users that tuples name and the directory lacks')
      .option('--rename <type=name>', 'another name for a type, such as group=jimm_group; may be repeated', withRename)
      .option('--ignore-tests', 'skip the tests of the file')
  add(
    'openfga',
    'Import a store of OpenFGA: from a store file (.fga.yaml), whose tests are run first, or from a server.',
  )
    .argument('[file]', 'a store file, or a model alone (.fga, .json or fga.mod)')
    .option('--openfga-url <url>', 'read from this OpenFGA server instead of a file; OPENFGA_TOKEN is its API token')
    .option('--openfga-store <id>', 'the store on that server')
    .option('--allow-external-files', 'read files outside of the folder of the store file')
    .action((file: string | undefined, options: Options) => run(() => importOpenFga(file, options, io)))
  add(
    'spicedb',
    'Import a schema and relationships of SpiceDB: schema (.zed), validation file, whose assertions are played first, or backup of zed.',
  )
    .argument('<file>', 'a schema, a validation file or a backup')
    .argument('[relationships]', 'beside a schema: a file with a relationship on each line, as zed prints them')
    .action((file: string, relationships: string | undefined, options: Options) =>
      run(async () => bring(await spiceDbPlan(file, relationships, { options, io }), options, io)),
    )
  addUserImportCommand(group, io, run)
}

function withRename(text: string, before: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const [, type, name] = /^([^=]+)=([^=]+)$/.exec(text) ?? []
  if (type === undefined || name === undefined) throw new InvalidArgumentError('it is not <type>=<name>')
  if (before.has(type)) throw new InvalidArgumentError(`${type} is renamed twice`)
  return new Map([...before, [type, name]])
}

async function importOpenFga(file: string | undefined, options: Options, io: NodeJS.Process): Promise<void> {
  const { openfgaUrl: url, openfgaStore: store } = options
  if ((file === undefined) === (url === undefined))
    throw new CliError('name a store file, or a server with --openfga-url')
  if (file === undefined && store === undefined) throw new CliError('name the store with --openfga-store')
  const token = io.env.OPENFGA_TOKEN ?? null
  const plan = await inWords(async () => {
    if (file !== undefined) return planOfFile(file, options, io)
    const { model, tuples } = await readOpenFga({ url: url ?? '', store: store ?? '', token, fetch })
    return planOpenFga(model, tuples)
  })
  await bring(plan, options, io)
}

/** Turns refusals of files and renames into errors of this command. */
async function inWords<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    if (err instanceof PdpError) throw new CliError(err.message, { cause: err })
    throw err
  }
}

/** The plan. Throws CliError if a file cannot be read or one of its assertions fails. */
async function spiceDbPlan(
  file: string,
  relationships: string | undefined,
  { options, io }: { readonly options: Options; readonly io: NodeJS.Process },
): Promise<Plan> {
  const issues = new ValidationIssues()
  const found = await inWords(() => readSpiceDbFile(file, { read: async (path) => bytesOf(path), issues }))
  if (issues.lines.length > 0) throw new CliError(issues.lines.join('\n'))
  if (relationships !== undefined && found.relationships.trim() !== '')
    throw new CliError(`${file} has relationships of its own`)
  const lines = relationships === undefined ? found.relationships : textOf(relationships)
  const plan = planSpiceDb(found.schema, lines)
  if (plan.refusals.length > 0 || options.ignoreTests === true) return plan
  const { passed, failures } = await playAssertions(plan, found, Date.now())
  if (failures.length > 0)
    throw new CliError(
      [
        'its assertions do not hold:',
        ...failures.map((one) => `${file}:${one}`),
        '--ignore-tests imports it all the same',
      ].join('\n'),
    )
  if (passed > 0 && options.json !== true) io.stdout.write(`assertions: ${passed} hold\n`)
  return plan
}

/** The plan. Throws CliError if the file cannot be read or one of its tests fails. */
async function planOfFile(file: string, options: Options, io: NodeJS.Process): Promise<Plan> {
  bytesOf(file)
  const allowExternalFiles = options.allowExternalFiles === true
  if (options.ignoreTests !== true) await runTests(file, options, io)
  const read = allowExternalFiles ? unconfined : confinedTo(file)
  const store = await readStoreFile(file, { read, issues: new ValidationIssues() })
  if (store.model === null) throw new CliError(`${file} has no model`)
  return planOpenFga(await readModelText(store.model, read), store.tuples)
}

/** Throws CliError when a test fails, or the file cannot be used. */
async function runTests(file: string, options: Options, io: NodeJS.Process): Promise<void> {
  const lines: string[] = []
  const write = (text: string): number => lines.push(text)
  const allowExternalFiles = options.allowExternalFiles === true
  await runModelTests([file], { write, directory: io.cwd(), allowExternalFiles })
  const summary = lines.at(-1) ?? ''
  const said = lines.filter((line) => !line.startsWith('REFUSED '))
  const hint = / 0 failed/.test(summary) ? '' : '--ignore-tests imports it all the same'
  if (!/ 0 failed(?!.*could not)/.test(summary))
    throw new CliError(`its tests do not pass:\n${said.join('')}${hint}`.trimEnd())
  if (options.json !== true) io.stdout.write(`tests: ${summary.replace(/, \d+ refused.*/, '').trim()}\n`)
}

async function bring(found: Plan, options: Options, io: NodeJS.Process): Promise<void> {
  if (options.subjectPrefix !== undefined && !SUBJECT_PREFIX.test(options.subjectPrefix))
    throw new CliError('--subject-prefix must be 1 to 64 visible ASCII characters without #')
  const wanted = await inWords(() => withRenames(found, options.rename ?? new Map()))
  const renamed = options.subjectPrefix === undefined ? wanted : withSubjectPrefix(wanted, options.subjectPrefix)
  const users = usersOf(renamed)
  const plan = {
    ...renamed,
    notes: [...renamed.notes, ...peopleNote(renamed), ...(users.length === 0 ? [] : [usersNote(users, options)])],
    refusals: options.createUsers === true ? [...renamed.refusals, ...unfitUsers(users)] : renamed.refusals,
  }
  io.stdout.write(jsonOr(options, plan, describePlan(plan)))
  if (plan.refusals.length > 0) throw new CliError('nothing was imported')
  if (options.dryRun === true) {
    await askFirst(plan, options, io).catch((err: unknown) => {
      // A dry run shows the plan even if no PDP answers.
      if (!(err instanceof CliError) || err.status !== null) throw err
      io.stderr.write(`No PDP was asked whether it takes this: ${err.message}\n`)
    })
    return
  }
  if (options.organization === undefined) throw new CliError('name the organization with --organization')
  await askFirst(plan, options, io)
  if (options.createUsers === true) await createUsers(users, options, io, false)
  const version = await putModel(plan.model, options, io)
  io.stdout.write(`${options.app} has version ${version}\n`)
  if (plan.tuples.length > 0) await importLines(Readable.from(plan.tuples.map(lineOf)), options, io)
}

/** A note for stores that use another type for people than `user`. */
function peopleNote({ model, refusals }: Plan): readonly string[] {
  if (refusals.length > 0) return []
  const types = readDocument(model).type_definitions
  if (types.some(({ type }) => type === 'user')) return []
  const found = types.find(({ relations }) => Object.keys(relations).length === 0)
  if (found === undefined) return []
  return [`people are of type user here; if those of type "${found.type}" are people, add --rename ${found.type}=user`]
}

const unfitUsers = (users: readonly string[]): readonly string[] =>
  users
    .filter((id) => !isId(id))
    .map((id) => `user:${id} cannot be created: the id of a user is 1 to 256 visible ASCII characters`)

const usersNote = (users: readonly string[], { createUsers: created }: Options): string =>
  `${users.length} users are named, such as user:${users[0]}${
    created === true
      ? ', and created where they are missing'
      : ': a question over HTTP or gRPC about a user who is not in the directory is denied. Create them with --create-users, or give --subject-prefix if they sign in at another provider'
  }`

/** Creates missing users, all or none; leaves existing ones unchanged. */
async function createUsers(
  users: readonly string[],
  options: Options,
  io: NodeJS.Process,
  dryRun: boolean,
): Promise<void> {
  const connection = await connect(options, { io, scope: 'directory:write' })
  const missing: string[] = []
  for (const user of users) {
    if ((await find(connection, `/v1/users/${encodeURIComponent(user)}`)) === null) missing.push(user)
  }
  const path = `/v1/users:import?dry_run=${dryRun}`
  for (let at = 0; at < missing.length; at += USERS_PER_IMPORT) {
    const lines = missing.slice(at, at + USERS_PER_IMPORT).map((id) => `${JSON.stringify({ id })}\n`)
    const stream = Readable.from(lines.map((line) => Buffer.from(line)))
    await connection.send({ method: 'POST', path, lines: { stream, type: 'application/x-ndjson' } })
  }
}

const lineOf = ({ object, relation, subject, expiresAtMs, condition }: Tuple): string => {
  const expiry = expiresAtMs === null ? {} : { expires_at: new Date(expiresAtMs).toISOString() }
  return `${JSON.stringify({ object, relation, subject, ...expiry, condition })}\n`
}

/** Asks the PDP, without writing, whether it would accept everything. Throws CliError if not. */
async function askFirst(plan: Plan, options: Options, io: NodeJS.Process): Promise<void> {
  await putModel(plan.model, options, io, '?dry_run=true').catch((err: unknown) => {
    if (!(err instanceof CliError) || !/ which belongs to app /.test(err.message)) throw err
    const { status, code, message } = err
    const hint = 'give it another name here with --rename <type>=<name>'
    throw new CliError(`${message}\n${hint}`, { code, ...(status === null ? {} : { status }) })
  })
  if (options.organization !== undefined) await importNothing(options, io)
  if (options.createUsers === true) await createUsers(usersOf(plan), options, io, true)
}

/** Replaces the model in the manifest and keeps the rest. */
async function putModel(model: string, options: Options, io: NodeJS.Process, query = ''): Promise<unknown> {
  const connection = await connect(options, { io, scope: 'manifest:write' })
  const path = `/v1/apps/${encodeURIComponent(options.app)}/manifest`
  const { audiences, permissions, roles } = (await find(connection, path)) ?? {}
  const body = { audiences, permissions, roles, model }
  return (await connection.ask<{ version: unknown }>({ method: 'PUT', path: `${path}${query}`, body })).version
}
