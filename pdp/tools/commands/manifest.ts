/** The command `manifest`: shows, tries and applies the manifest of an app. */

import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { readDocument } from '../../engine/decide/language/document.ts'
import { parseYaml } from '../../engine/worker/yaml.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { portabilityIssues } from '../model-test/portability.ts'
import { jsonOr } from './command-line.ts'
import { compareAll, comparisonText } from './compare.ts'
import { addConnectionOptions, type Connection, type ConnectionOptions, connect, find } from './connection.ts'
import { bytesOf, CliError, type Run } from './errors.ts'
import { differenceLines } from './model.ts'
import { readModelFile } from './model-file.ts'

type DryRun = { readonly version: number; readonly complete: boolean } & {
  readonly [change in 'gains' | 'loses']: readonly {
    readonly permission: string
    readonly subject: string
    readonly organization: string | null
  }[]
}
type Invocation = { readonly app: string; readonly options: ConnectionOptions; readonly io: NodeJS.Process }

export function addManifestCommands(program: Command, io: NodeJS.Process, run: Run): void {
  const group = program.command('manifest').description('Manifests of apps, on a running PDP.')
  addConnectionOptions(
    group.command('get').description('Print the current manifest as JSON.').argument('<app>', 'the app’s id'),
  ).action((app: string, options: ConnectionOptions) => run(() => show({ app, options, io })))
  addConnectionOptions(
    group
      .command('apply')
      .description('Declare the audiences, permissions, roles and model of an app.')
      .argument('<app>', 'the app’s id')
      .argument('<file>', 'YAML or JSON; model_file in it names a .fga, .json or fga.mod file')
      .option(
        '--dry-run',
        'change nothing; show who would gain and lose which permissions, and relations; with --organization by its data too',
      ),
  ).action((app: string, file: string, options: ConnectionOptions & { dryRun?: true }) =>
    run(() => apply({ app, options, io }, { file, dryRun: options.dryRun === true })),
  )
}

const pathOf = (app: string): string => `/v1/apps/${encodeURIComponent(app)}/manifest`
const open = ({ options, io }: Invocation, more = '') => connect(options, { io, scope: `manifest:write${more}` })

async function show(asked: Invocation): Promise<void> {
  const manifest = await (await open(asked)).ask({ method: 'GET', path: pathOf(asked.app) })
  asked.io.stdout.write(`${JSON.stringify(manifest, null, 2)}\n`)
}

async function apply(asked: Invocation, { file, dryRun }: { file: string; dryRun: boolean }): Promise<void> {
  const body = await withModelFile(bytesOf(file), file)
  for (const { message } of portabilityOf(body)) asked.io.stderr.write(`warning: OpenFGA refuses this: ${message}\n`)
  const connection = await open(asked, dryRun && asked.options.organization !== undefined ? ' decisions:read' : '')
  const answer = await connection.ask<DryRun>({
    method: 'PUT',
    path: `${pathOf(asked.app)}${dryRun ? '?dry_run=true' : ''}`,
    // One media type for both: JSON is also YAML.
    lines: { stream: once(body), type: 'application/yaml' },
  })
  asked.io.stdout.write(jsonOr(asked.options, answer, text(answer, { dryRun, app: asked.app })))
  if (dryRun && asked.options.json !== true) await showModelChange(asked, { connection, body })
}

/** Prints who could gain or lose a relation under another model: for all possible data or, with an organization, for its data. */
async function showModelChange(
  { app, options, io }: Invocation,
  { connection, body }: { connection: Connection; body: Uint8Array },
): Promise<void> {
  const { model: after = null } = Object(parseYaml(Buffer.from(body).toString('utf8'))) as { model?: string | null }
  const stored = (await find(connection, pathOf(app))) as { readonly model?: string | null } | null
  const before = stored?.model ?? null
  if (after === before || after === null || before === null) return
  const { compileModel, withBuiltIn } = await import('../../engine/decide/language/model-language.ts')
  const { diffModels } = await import('../model-change/model-diff.ts')
  const [was, is] = [compileModel(before), compileModel(after)]
  const found = (await diffModels({ before: withBuiltIn(was), after: withBuiltIn(is) })).filter(
    ({ type }) => was.has(type) || is.has(type),
  )
  io.stdout.write(`${differenceLines(found).join('\n')}\n`)
  if (options.organization === undefined) return
  const changed = found.filter(({ gain, lose }) => gain.kind !== 'nobody' || lose.kind !== 'nobody')
  for (const { type, relation, subject } of changed) {
    const question = { relation, type, subject_type: subject, model: { app, text: after } }
    const compared = await compareAll(connection, { body: question, options, io })
    io.stdout.write(comparisonText({ relation, type }, compared))
  }
}

/** The manifest with the model of `model_file` next to it: a text, JSON, or an `fga.mod` whose modules are merged. */
async function withModelFile(bytes: Uint8Array, file: string): Promise<Uint8Array> {
  const text = Buffer.from(bytes).toString('utf8')
  const single = /^model: *["']?([^\s"'#]+\.(?:fga|json|mod))["']? *$/m.exec(text)?.[1]
  if (single !== undefined)
    throw new CliError(`${file}: model is the text of a model. A file is named by model_file: ${single}`)
  if (!/\bmodel_file\b/.test(text)) return bytes
  try {
    const { model_file: named, ...manifest }: { [member: string]: unknown } = Object(parseYaml(text))
    if (typeof named !== 'string') return bytes
    const model = await readModelFile(resolve(dirname(file), named), { by: file, as: `${file}: model_file` })
    return Buffer.from(JSON.stringify({ ...manifest, model }))
  } catch (err) {
    if (!(err instanceof PdpError)) throw err
    throw new CliError([`${file}: ${err.message}`, ...err.issues.map((i) => `${i.place} ${i.message}`)].join('\n  '), {
      cause: err,
    })
  }
}

/** Issues of portability; empty for an unreadable manifest, whose errors the PDP reports. */
function portabilityOf(body: Uint8Array): readonly { readonly message: string }[] {
  try {
    const { model }: { [member: string]: unknown } = Object(parseYaml(Buffer.from(body).toString('utf8')))
    return typeof model === 'string' ? portabilityIssues(readDocument(model)) : []
  } catch (err) {
    if (err instanceof PdpError) return []
    throw err
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function text(answer: DryRun, { dryRun, app }: { dryRun: boolean; app: string }): string {
  if (!dryRun) return `${app} has version ${answer.version}\n`
  const line =
    (sign: string) =>
    ({ permission, subject, organization }: DryRun['gains'][number]) =>
      `${sign} ${permission}  ${subject} ${organization === null ? 'everywhere' : `in ${organization}`}`
  const lines = [
    `${app} would have version ${answer.version}`,
    ...answer.gains.map(line('+')),
    ...answer.loses.map(line('-')),
    ...(answer.complete ? [] : ['and more, not listed']),
  ]
  return `${lines.join('\n')}\n`
}
