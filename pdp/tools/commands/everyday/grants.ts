/** `role grant|revoke|grants`, `delegation grant|end|list`, and `list resources|subjects`. */
import type { Command } from 'commander'
import { MANAGEMENT_APP, MANAGEMENT_MANIFEST, scopesIn } from '../../../identity/oauth/management-app.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { ACTS_FOR, delegationTo, onlyScopes, scopesOf } from '../../../shared/domain/subjects.ts'
import type { TupleCondition } from '../../../shared/domain/tuple.ts'
import { jsonOr } from '../command-line.ts'
import { addConnectionOptions, type ConnectionOptions, connect, organizationPath } from '../connection.ts'
import { ANYBODY, unknownNames } from '../decisions.ts'
import { CliError, type Run } from '../errors.ts'
import {
  addQuestionOptions,
  parseSubject,
  type QuestionOptions,
  questionBody,
  readQuestion,
} from '../question-options.ts'
import { type Item, show, table } from './print.ts'
import { readAll } from './resources.ts'

const COLUMNS = ['id', 'app', 'role', 'subject']
type Options = ConnectionOptions &
  QuestionOptions & {
    readonly app?: string
    readonly type?: string
    readonly subjectRelation?: string
    readonly expiresAt?: string
    readonly scope?: string
  }

/** The path of grants in an organization and those below it, or of all grants. */
const grantsPath = (options: Options): string =>
  options.organization === undefined ? '/v1/role-grants' : `${organizationPath(options)}/role-grants`

/** The scope for a grant. Roles of the built-in app give management scopes, and a client can grant only those that its token has. */
function scopeToGrant(role: string, { app }: Options): string {
  const permissions = app === MANAGEMENT_APP ? (MANAGEMENT_MANIFEST.roles[role]?.permissions ?? []) : []
  return [...new Set(['roles:write', ...scopesIn(permissions)])].join(' ')
}

export function addGrantCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.commands.find((command) => command.name() === 'role')
  if (group === undefined) throw new TypeError('the command role comes first')
  const open = (options: Options, scope: string) => connect(options, { io, scope })
  const app: readonly [string, string] = [
    '--app <app>',
    'the app that declares the role; without --app, an organization-wide role',
  ]

  addConnectionOptions(group.command('grants').description('Print who holds which role, in -o or everywhere.')).action(
    (options: Options) =>
      run(async () => {
        const items = await readAll(await open(options, 'roles:read'), grantsPath(options))
        io.stdout.write(show(items, { json: options.json === true, columns: COLUMNS }))
      }),
  )
  addConnectionOptions(
    group
      .command('grant')
      .description('Grant a role: in the organization -o and those below it, or everywhere.')
      .argument('<role>', 'key of the role')
      .argument('<subject>', 'user:<id>, service:<id> or group:<id>')
      .option(...app),
  ).action((role: string, subject: string, options: Options) =>
    run(async () => {
      const connection = await open(options, scopeToGrant(role, options))
      const body = { app: options.app, role, subject }
      const grant = await connection.ask<Item>({ method: 'POST', path: grantsPath(options), body })
      io.stdout.write(jsonOr(options, grant, table([grant], COLUMNS)))
    }),
  )
  addConnectionOptions(
    group
      .command('revoke')
      .description('Revoke a role that was granted.')
      .argument('<role>', 'key of the role')
      .argument('<subject>')
      .option(...app),
  ).action((role: string, subject: string, options: Options) =>
    run(async () => {
      const connection = await open(options, 'roles:write')
      const path = grantsPath(options)
      const granted = await readAll(connection, `${path}?${new URLSearchParams({ subject })}`)
      const found = granted.find((grant) => grant.role === role && grant.app === (options.app ?? null))
      if (found === undefined) throw new CliError(`${subject} is not granted ${role} here`)
      await connection.send({ method: 'DELETE', path: `${path}/${encodeURIComponent(String(found.id))}` })
      io.stdout.write(jsonOr(options, {}, `revoked: ${role} of ${subject}\n`))
    }),
  )
}

const DELEGATION_COLUMNS = ['client', 'user', 'expires_at', 'scopes']
/** The scopes to write a delegation: to write relationships alone is not enough. */
const DELEGATE = 'relationships:write directory:write'

function tuplesPath(options: Options): string {
  if (options.organization === undefined)
    throw new CliError('-o ORGANIZATION is missing: a client acts for a person in an organization')
  return `${organizationPath(options)}/relationships`
}

export function addDelegationCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program
    .command('delegation')
    .description('Clients that act for people by token exchange, where an app says actors: both.')
  addConnectionOptions(
    group
      .command('list')
      .description('Print which clients may act for whom in the organization -o.')
      .argument('[client]', 'only those of this client'),
  ).action((client: string | undefined, options: Options) =>
    run(async () => {
      const path = tuplesPath(options)
      const connection = await connect(options, { io, scope: 'relationships:read' })
      const query = new URLSearchParams({
        relation: ACTS_FOR,
        ...(client !== undefined && { object: `service:${client}` }),
      })
      const items = (await readAll(connection, `${path}?${query}`)).filter(({ object }) =>
        String(object).startsWith('service:'),
      )
      const shown = items.map(
        ({ object, subject, expires_at, condition }): Item => ({
          client: idOf(object),
          user: idOf(subject),
          expires_at,
          scopes: isCondition(condition) ? (scopesOf(condition)?.join(' ') ?? '') : null,
        }),
      )
      io.stdout.write(show(shown, { json: options.json === true, columns: DELEGATION_COLUMNS }))
    }),
  )
  const ends = (command: Command): Command =>
    addConnectionOptions(command.argument('<client>', 'id of the client').argument('<user>', 'id of the person'))
  ends(
    group
      .command('grant')
      .description('Let a client act for a person: it may what both may, until this ends.')
      .option('--expires-at <time>', 'when it ends, such as 2031-01-31T12:00:00Z')
      .option('--scope <scopes>', 'with tokens of these scopes alone, such as "invoices:read"'),
  ).action((client: string, user: string, options: Options) =>
    run(() => change('write', { client, user }, options, io)),
  )
  ends(
    group.command('end').description('The client may not act for the person any more, with the next question.'),
  ).action((client: string, user: string, options: Options) =>
    run(() => change('delete', { client, user }, options, io)),
  )
}

const isCondition = (value: unknown): value is TupleCondition => typeof value === 'object' && value !== null
const idOf = (subject: unknown): string => String(subject).replace(/^[^:]*:/, '')

async function change(
  op: 'write' | 'delete',
  { client, user }: { readonly client: string; readonly user: string },
  options: Options,
  io: NodeJS.Process,
): Promise<void> {
  const path = tuplesPath(options)
  const connection = await connect(options, { io, scope: op === 'write' ? DELEGATE : 'relationships:write' })
  const expiry = op === 'write' && options.expiresAt !== undefined ? { expires_at: options.expiresAt } : {}
  const scopes =
    op === 'write' && options.scope !== undefined ? options.scope.split(' ').filter((one) => one !== '') : null
  const condition = scopes === null ? {} : { condition: onlyScopes(scopes, Math.floor(Date.now() / 1_000)) }
  const tuple = { object: delegationTo(client), relation: ACTS_FOR, subject: `user:${user}`, ...expiry, ...condition }
  const body = { [op]: [tuple] }
  const { applied_count } = await connection.ask<{ applied_count: number }>({ method: 'POST', path, body })
  const said = op === 'write' ? `${client} may act for ${user}` : `${client} may not act for ${user} any more`
  const before = op === 'write' ? ' (it could already)' : ' (it could not before)'
  io.stdout.write(jsonOr(options, { applied_count }, `${said}${applied_count === 0 ? before : ''}\n`))
}

export function addListCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.command('list').description('What a subject may reach, and who may reach a resource.')
  const asks = (command: Command): Command => addQuestionOptions(addConnectionOptions(command))
  asks(
    group
      .command('resources')
      .description('Resources of a type on which a subject has a relation.')
      .argument('<subject>', 'such as user:alice')
      .argument('<relation>', 'a relation such as viewer, or a permission key')
      .argument('<type>', 'type of the resources'),
  ).action((subject: string, relation: string, type: string, options: Options) =>
    run(() => listAll('resources', { subject: parseSubject(subject), relation, type }, { options, io })),
  )
  asks(
    group
      .command('subjects')
      .description('Subjects that have a relation on a resource.')
      .argument('<relation>', 'a relation such as viewer, or a permission key')
      .argument('<resource>', '<type>:<id>')
      .option('--type <type>', 'type of the subjects (user)')
      .option('--subject-relation <relation>', 'list usersets type:id#relation instead'),
  ).action((relation: string, resource: string, options: Options) =>
    run(() => {
      const { type = 'user', subjectRelation: subject_relation } = options
      return listAll('subjects', { resource, relation, type, subject_relation }, { options, io })
    }),
  )
}

type Page = {
  readonly items: readonly string[]
  readonly next_page_token: string | null
  readonly complete: boolean
  readonly undecided: readonly { readonly item: string; readonly missing_context: readonly string[] }[]
}

/** Prints one name per line, page by page. */
async function listAll(
  what: 'resources' | 'subjects',
  question: {
    readonly relation: string
    readonly type: string
    readonly subject?: AskedSubject
    readonly resource?: string
    readonly subject_relation?: string | undefined
  },
  { options, io }: { options: Options; io: NodeJS.Process },
): Promise<void> {
  const path = `${organizationPath(options)}/list-${what}`
  const connection = await connect(options, { io, scope: 'decisions:read' })
  const body = { ...question, ...questionBody(readQuestion(options)) }
  const pages: Page[] = []
  for (let token: string | null = ''; token !== null; ) {
    const query = new URLSearchParams({ page_size: '1000', ...(token === '' ? {} : { page_token: token }) })
    const page: Page = await connection.ask({ method: 'POST', path: `${path}?${query}`, body })
    pages.push(page)
    token = page.next_page_token
  }
  const all = pages.flatMap(({ items }) => items)
  io.stdout.write(jsonOr(options, all, all.map((name) => `${name}\n`).join('')))
  if (!pages.every(({ complete }) => complete)) throw incomplete(pages.flatMap(({ undecided }) => undecided))
  // Notes go to stderr, since programs read the list.
  if (all.length > 0) return
  const { relation, type, subject = ANYBODY, resource = `${type}:any` } = question
  const bound = await connect(options, { io, scope: 'decisions:read', bind: true })
  const unknown = await unknownNames(bound, { permissions: [{ relation, resource }], subject, app: options.app ?? '*' })
  if (unknown.length > 0) throw new CliError([`no ${what} found`, ...unknown].join('\n  '))
  io.stderr.write(`no ${what} found\n`)
}

function incomplete(undecided: Page['undecided']): CliError {
  const items = undecided.map(({ item, missing_context: missing }) =>
    missing.length === 0 ? `${item}: its condition fails` : `${item}: --context lacks ${missing.join(', ')}`,
  )
  const reason = items.length === 0 ? 'something in it exceeds the evaluation limit' : 'these cannot be decided'
  return new CliError([`the list is not complete: ${reason}`, ...items].join('\n  '))
}
