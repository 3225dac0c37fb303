/** The command `compare`: who would gain and who would lose a relation under another model or with other tuples. */
import type { Command } from 'commander'
import {
  atLeast,
  type ComparedAccess,
  type ComparisonJson,
  lookedAt,
} from '../../engine/decision-point/compare-shapes.ts'
import { quote } from '../../shared/domain/names.ts'
import { jsonOr } from './command-line.ts'
import {
  addConnectionOptions,
  type Connection,
  type ConnectionOptions,
  connect,
  organizationPath,
} from './connection.ts'
import { CliError, EXIT, type Run } from './errors.ts'
import { watchJob } from './long-job.ts'
import { readModelFile } from './model-file.ts'
import { collect, type QuestionOptions, questionBody, readQuestion } from './question-options.ts'

const HELP = (program: string): string => `
The command changes nothing. It goes through all resources, some seconds at a time; what is written meanwhile may
be seen or not. Exit status: 0 nobody gains or loses, 1 somebody does, 2 the comparison failed or is incomplete:
then there may be more than it names.

Examples:
  ${program} compare viewer invoice -o acme --app billing --model next.fga
  ${program} compare viewer invoice -o acme --without group:staff#member@user:alice`

type Options = ConnectionOptions &
  Pick<QuestionOptions, 'with' | 'without'> & {
    readonly subjectType?: string
    readonly app?: string
    readonly model?: string
    readonly after?: string
    readonly seconds?: string
  }

export function addCompareCommand(program: Command, io: NodeJS.Process, run: Run): void {
  const command = program
    .command('compare')
    .description('Show who would gain and who would lose a relation under another model or with other tuples.')
    .argument('<relation>', 'a relation such as viewer, or a permission key')
    .argument('<type>', 'the type of the resources')
    .addHelpText('after', HELP(program.name()))
  addConnectionOptions(command)
    .option('--subject-type <type>', 'the type of the subjects; by default user')
    .option('--app <app>', 'the app whose model is replaced by --model')
    .option('--model <file>', 'a .fga, .json or fga.mod file')
    .option('--with <tuple>', 'compare as if this tuple were stored; may be repeated', collect)
    .option('--without <tuple>', 'compare as if this stored tuple were deleted; may be repeated', collect)
    .option('--after <resource>', 'go on after this resource, where an earlier run ended')
    .option('--seconds <n>', 'end after so many seconds, and say where to go on')
    .action((relation: string, type: string, options: Options) => run(() => compare({ relation, type }, options, io)))
}

async function compare(
  asked: { readonly relation: string; readonly type: string },
  options: Options,
  io: NodeJS.Process,
): Promise<number> {
  const { organization, app, model, subjectType } = options
  if (organization === undefined) throw new CliError('name an organization with --organization')
  if (model === undefined && options.with === undefined && options.without === undefined)
    throw new CliError('say what to compare with: give --model, --with or --without')
  if (model !== undefined && app === undefined) throw new CliError('--model needs --app')
  const body = {
    ...asked,
    ...(subjectType === undefined ? {} : { subject_type: subjectType }),
    ...(app === undefined ? {} : { app }),
    ...(model === undefined ? {} : { model: { app, text: await readModelFile(model, { by: model, as: '--model' }) } }),
    ...questionBody(readQuestion(options)),
  }
  const connection = await connect(options, { io, scope: 'decisions:read' })
  const found = await compareAll(connection, { body, options, io })
  io.stdout.write(jsonOr(options, found, comparisonText(asked, found)))
  if (found.next !== null) io.stderr.write(`not all was compared; go on with: --after ${found.next}\n`)
  if (!found.complete) return EXIT.failed
  return found.loses_count + found.gains_count > 0 ? EXIT.denied : EXIT.ok
}

/** Continues until no resource is left, or until the time given by the options is over. */
export async function compareAll(
  connection: Connection,
  of: {
    readonly body: object
    readonly options: Pick<Options, 'organization' | 'after' | 'seconds'>
    readonly io: NodeJS.Process
  },
): Promise<ComparisonJson> {
  const { body, options, io } = of
  const path = `${organizationPath(options)}/compare`
  const endsAtMs = Date.now() + secondsOf(options) * 1_000
  const found = createTotal(options.after ?? null)
  const left = (): string => (found.next === null ? 'begin again' : `go on with --after ${found.next}`)
  await watchJob(io, { unit: 'resources', total: null, shown: false, left }, async () => {
    do {
      const part = found.next === null ? body : { ...body, after: found.next }
      found.add(await connection.ask<ComparisonJson>({ method: 'POST', path, body: part }))
      if (found.next !== null && io.stderr.isTTY) io.stderr.write(`${found.progress()}\n`)
    } while (found.next !== null && Date.now() < endsAtMs)
  })
  return found.total()
}

function secondsOf({ seconds }: Pick<Options, 'seconds'>): number {
  if (seconds === undefined) return Number.POSITIVE_INFINITY
  if (/^[1-9]\d{0,6}$/.test(seconds)) return Number(seconds)
  throw new CliError(`--seconds is a whole number above 0, not ${quote(seconds)}`)
}

/** Adds up the answers. It keeps the first hundred names of each list. */
function createTotal(from: string | null) {
  const startedMs = Date.now()
  const sums = { gains_count: 0, loses_count: 0, resources_compared: 0 }
  const gains: ComparedAccess[] = []
  const loses: ComparedAccess[] = []
  let [next, decided, resourcesCount] = [from, true, null as number | null]
  return {
    get next() {
      return next
    },
    add(part: ComparisonJson): void {
      for (const name of ['gains_count', 'loses_count', 'resources_compared'] as const) sums[name] += part[name]
      gains.push(...part.gains.slice(0, NAMED_MAX - gains.length))
      loses.push(...part.loses.slice(0, NAMED_MAX - loses.length))
      decided &&= part.decided
      resourcesCount ??= part.resources_count
      next = part.next
    },
    progress(): string {
      const rate = Math.round(sums.resources_compared / Math.max((Date.now() - startedMs) / 1_000, 1))
      return `${lookedAt(sums.resources_compared, resourcesCount)}, ${rate} a second: ${sums.loses_count} would lose, ${sums.gains_count} would gain`
    },
    total(): ComparisonJson {
      const complete = decided && next === null && from === null
      return { gains, loses, ...sums, decided, complete, resources_count: resourcesCount, next }
    },
  }
}
const NAMED_MAX = 100

export function comparisonText(
  { relation, type }: { readonly relation: string; readonly type: string },
  found: ComparisonJson,
): string {
  const { gains, loses, gains_count, loses_count, complete, resources_compared, resources_count } = found
  const rows = (sign: string, all: readonly ComparedAccess[]): readonly string[] =>
    all.map(({ subject, resource }) => `${sign} ${subject} ${relation} ${resource}`)
  const unnamed = gains_count + loses_count - gains.length - loses.length
  const lines = [
    `${atLeast(loses_count, complete)} would lose and ${atLeast(gains_count, complete)} would gain ${relation} on ${type}${complete ? '' : `; ${lookedAt(resources_compared, resources_count)}`}`,
    ...rows('-', loses),
    ...rows('+', gains),
    ...(unnamed === 0 ? [] : [`and ${unnamed} more`]),
  ]
  return `${lines.join('\n')}\n`
}
