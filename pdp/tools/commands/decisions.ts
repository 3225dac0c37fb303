/** The commands `check` and `explain`: ask one question, for a person or for a script. */
import type { Command } from 'commander'
import { visible } from '../../shared/base/invisible.ts'
import type { AskedSubject } from '../../shared/domain/decision.ts'
import { reasonText } from '../../shared/domain/reasons.ts'
import { subjectName } from '../../shared/domain/subjects.ts'
import { coloured } from '../../shared/process/command/output.ts'
import { jsonOr } from './command-line.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect } from './connection.ts'
import { CliError, EXIT, type Run } from './errors.ts'
import {
  type Accompanying,
  addQuestionOptions,
  collect,
  parseSubject,
  type QuestionOptions,
  questionBody,
  readQuestion,
} from './question-options.ts'

const examples = (program: string) => ({
  check: `
Exit status: 0 allowed, 1 denied, 2 the question could not be answered.

Examples:
  ${program} check user:alice viewer invoice:42 -o acme
  ${program} check service:importer invoices:approve app:billing -o acme
  ${program} check - viewer invoice:42 --token-file token    # the bearer of the token`,
  explain: `
Exit status: 0 allowed, 1 denied, 2 the question could not be answered.

Examples:
  ${program} explain user:alice viewer invoice:42 -o acme
  ${program} explain user:alice viewer invoice:42 -o acme --without group:staff#member@user:alice
  ${program} explain user:alice viewer invoice:42 -o acme --as-of 2030-01-31T12:00:00Z`,
})

type Result = {
  readonly allowed: boolean
  readonly error?: string
  readonly missing_context?: readonly string[]
  readonly reason?: {
    readonly code: string
    readonly path: readonly object[]
    readonly missing: readonly string[]
    readonly details?: readonly string[]
  }
}
type Decision = {
  readonly organization: string | null
  readonly subject: AskedSubject | null
  readonly permissions: readonly Result[]
}

export function addDecisionCommands(program: Command, io: NodeJS.Process, run: Run): void {
  for (const name of ['check', 'explain'] as const) {
    const command = program
      .command(name)
      .summary(name === 'check' ? 'Ask whether a subject may do something.' : 'Like check, with the reason.')
      .description(
        name === 'check'
          ? 'Ask a running PDP whether a subject has a relation, or a permission, on a resource.'
          : 'Ask like check, and show the chain of grants that allows it, or what is missing.',
      )
      .argument('<subject>', 'such as user:<id>, service:<id> or group:<id>#member; - for the bearer of the token')
      .argument('<relation>', 'a relation such as viewer, or a permission key such as invoices:approve')
      .argument('<resource>', '<type>:<id>')
      .addHelpText('after', examples(program.name())[name])
    addQuestionOptions(addConnectionOptions(command))
      .option(
        '--app <app>',
        'the app whose roles count for a permission key (default: that of the token, or every app)',
      )
      .option('--no-app', 'roles of no app count, as for a token that is for none')
      .option('--actor <client>', 'a client that acts for the subject, the last one first; may be repeated', collect)
      .option('--scope <scopes>', 'scopes of the token by which that client acts, with blanks between')
      .option('--model <file>', 'answer from a store file (.fga.yaml) or a model alone, without a server')
      .action((subject: string, relation: string, resource: string, options: Options) =>
        run(() => decide({ subject, relation, resource, explain: name === 'explain', options, io })),
      )
  }
}

type Options = ConnectionOptions &
  QuestionOptions & {
    readonly model?: string
    readonly app?: string | boolean
    readonly actor?: readonly string[]
    readonly scope?: string
  }

/** The question's members about the subject. For a token's bearer, the token decides. */
function askedBy({ app, actor: actors, scope }: Options, isBearer: boolean): object {
  const named = typeof app === 'string' ? { app } : app === false || isBearer ? {} : { app: '*' }
  return {
    ...named,
    ...(actors === undefined ? {} : { actors }),
    ...(scope === undefined ? {} : { scopes: scope.split(' ').filter((word) => word !== '') }),
  }
}

async function decide(asked: {
  subject: string
  relation: string
  resource: string
  explain: boolean
  options: Options
  io: NodeJS.Process
}): Promise<number> {
  const { relation, resource, explain, options, io } = asked
  const subject = asked.subject === '-' ? null : parseSubject(asked.subject)
  const accompanying = readQuestion(options)
  if (options.model !== undefined) {
    if (subject === null) throw new CliError('name a subject: the bearer of a token (-) needs a running PDP')
    if (options.asOf !== undefined) throw new CliError('--as-of needs a running PDP: a file has no log of changes')
    if (options.actor !== undefined) throw new CliError('--actor needs a running PDP: a file has no apps')
    return decideLocally(
      options.model,
      { subject, relation, resource, explain, json: options.json === true, ...accompanying },
      io,
    )
  }
  const connection = await connect(options, { io, scope: 'decisions:read', bind: true })
  const body = {
    permissions: [{ relation, resource }],
    ...(subject === null ? {} : { subject }),
    ...(explain ? { explain } : {}),
    ...askedBy(options, subject === null),
    ...questionBody(accompanying),
  }
  const decision = await askedDecision(connection, body)
  const [result] = decision.permissions
  if (result === undefined) throw new CliError('the answer of the PDP does not match the question')
  if (decision.organization === null)
    throw new CliError(
      connection.hasGivenToken
        ? 'the token is not active, or not bound to an organization: it has ended, was revoked, or is of another PDP'
        : 'name the organization with --organization: the client is not bound to one',
    )
  requireDecided(result)
  io.stdout.write(jsonOr(options, decision, text({ decision, result, relation, resource, io })))
  if (!result.allowed && !explain)
    // A bearer may ask about itself, but gets no explanation.
    for (const note of subject === null ? [] : await unknownNames(connection, body)) io.stderr.write(`note: ${note}\n`)
  return result.allowed ? EXIT.ok : EXIT.denied
}

/** A subject that need not exist, for questions about names alone. */
export const ANYBODY: AskedSubject = { type: 'group', id: 'any', relation: 'member' }

/** Names in the question that are not declared, each with the name that was probably meant. */
export async function unknownNames(connection: Connection, body: object): Promise<readonly string[]> {
  const { permissions } = await askedDecision(connection, { ...body, explain: true })
  const details = permissions.flatMap(({ reason }) => reason?.details ?? [])
  return [...new Set(details)].filter((detail) => /^(?:type|no model declares type) "/.test(detail))
}

async function decideLocally(
  file: string,
  asked: Accompanying & {
    subject: AskedSubject
    relation: string
    resource: string
    explain: boolean
    json: boolean
  },
  io: NodeJS.Process,
): Promise<number> {
  const { checkLocally } = await import('./local-check.ts')
  const { explain, json, ...question } = asked
  const { subject, relation, resource } = question
  const { result: found, notes } = await checkLocally(file, question)
  const { missingContext, ...result } = found
  requireDecided({ ...result, missing_context: missingContext ?? [] })
  const { reason, ...plain } = result
  const shown: Result = explain && reason !== undefined ? { ...plain, reason } : plain
  const decision = { organization: file, subject, permissions: [shown] }
  const lines = notes.map((note) => `note: ${note}\n`).join('')
  io.stdout.write(jsonOr({ json }, decision, text({ decision, result: shown, relation, resource, io }) + lines))
  return result.allowed ? EXIT.ok : EXIT.denied
}

/** Throws CliError with the missing values if the question could not be decided. */
function requireDecided({ error, reason, missing_context: missing = [] }: Result): void {
  if (error === undefined) return
  const why = reason?.details ?? (missing.length === 0 ? [] : [`--context lacks ${missing.join(', ')}`])
  const lines = [`the question cannot be decided (${reasonText(error)})`, ...why]
  throw new CliError(lines.join('\n  '))
}

async function askedDecision(connection: Connection, body: object): Promise<Decision> {
  const value = await connection.ask<unknown>({ method: 'POST', path: '/oauth/decisions', body })
  if (typeof value === 'object' && value !== null && 'permissions' in value && Array.isArray(value.permissions))
    return value as Decision
  throw new CliError('the answer of the PDP is not a decision')
}

function text({
  decision,
  result,
  relation,
  resource,
  io,
}: {
  decision: Decision
  result: Result
  relation: string
  resource: string
  io: NodeJS.Process
}): string {
  const subject = decision.subject === null ? 'nobody' : subjectName(decision.subject)
  const { reason } = result
  const code = reason === undefined ? '' : ` (${reasonText(reason.code)})`
  const lines = [
    `${verdict(result, io)}  ${visible(`${subject} ${relation} ${resource} in ${decision.organization}`)}${code}`,
  ]
  if (reason !== undefined && reason.path.length > 0)
    lines.push('because', ...reason.path.map((step) => `  ${visible(stepText(step))}`))
  lines.push(...(reason?.details ?? []).map((detail) => `  ${visible(detail)}`))
  if (reason !== undefined && reason.missing.length > 0)
    lines.push('one of these would allow it', ...reason.missing.map((tuple) => `  ${visible(tuple)}`))
  return `${lines.join('\n')}\n`
}

const verdict = ({ allowed }: Result, io: NodeJS.Process): string =>
  allowed ? coloured('allowed', 'green', io) : coloured('denied', 'red', io)

/** A step of the reason as text. It has one member, named by its kind: `tuple`, `member`, `rule` or `role_grant`. */
function stepText(step: object): string {
  return Object.entries(step)
    .map(([kind, value]) => `${kind.replace('_', ' ')}: ${value}`)
    .join(', ')
}
