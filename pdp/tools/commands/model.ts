/** `model test`, `model diff` and `model lint`: relation models in files, without a server. */
import type { Command } from 'commander'
import type { Difference, Example, Outcome } from '../model-change/model-diff.ts'
import { EXIT } from './errors.ts'

type Options = { readonly allowExternalFiles?: boolean; readonly json?: true }

export function addModelCommands(program: Command, io: NodeJS.Process): void {
  const model = program.command('model').description('Relation models in the OpenFGA language, without a server.')
  model
    .command('test')
    .description('Run the tests of store files (.fga.yaml). Prints one line for each failure.')
    .argument('<file...>', 'store files, models, or patterns of file names')
    .option('--allow-external-files', 'read files outside of the folder of the store file that names them')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExit status: 0 all passed, 1 a test failed or a PDP that serves would refuse something,\n2 a file could not be used.',
    )
    .action(async (files: readonly string[], { allowExternalFiles = false, json }: Options) => {
      const { runModelTests } = await import('../model-test/model-test.ts')
      const lines: string[] = []
      const write = (text: string): unknown => (json === true ? lines.push(text.trimEnd()) : io.stdout.write(text))
      io.exitCode = await runModelTests(files, { write, directory: io.cwd(), allowExternalFiles })
      if (json !== true) return
      const result = { passed: io.exitCode === 0, summary: lines.at(-1), failures: lines.slice(0, -1) }
      io.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
    })
  model
    .command('diff')
    .description('Say who could gain and who could lose a relation by a change of the model, for all data.')
    .argument('<old>', 'a .fga, .json, fga.mod or store file')
    .argument('<new>', 'a file of the same kinds')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExit status: 0 nobody can gain or lose anything (proved), 1 somebody can,\n2 something is not decided, or a file could not be used.',
    )
    .action(async (before: string, after: string, { json }: Options) => {
      io.exitCode = await diff([before, after], io, json === true)
    })
  model
    .command('lint')
    .description('Check models: unusable, relations that nobody can have, types and conditions that nothing uses.')
    .argument('<file...>', '.fga, .json, fga.mod or store files')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit status: 0 nothing was found, 1 something was, 2 a file could not be used.')
    .action(async (files: readonly string[], { json }: Options) => {
      io.exitCode = await lint(files, io, json === true)
    })
}

async function diff(files: readonly string[], io: NodeJS.Process, json: boolean): Promise<number> {
  const { loadModel, UnusableModel } = await import('../model-change/load-model.ts')
  const { diffModels } = await import('../model-change/model-diff.ts')
  try {
    const [before, after] = await Promise.all(files.map((file) => loadModel(file, io.cwd())))
    if (before === undefined || after === undefined) throw new TypeError('two models are compared')
    const found = await diffModels({ before: before.model, after: after.model })
    io.stdout.write(json ? `${JSON.stringify(found.map(jsonOf), null, 2)}\n` : `${differenceLines(found).join('\n')}\n`)
    const kinds = new Set(found.flatMap(({ gain, lose }) => [gain.kind, lose.kind]))
    return kinds.has('undecided') ? EXIT.failed : kinds.has('somebody') ? EXIT.denied : EXIT.ok
  } catch (err) {
    if (!(err instanceof UnusableModel)) throw err
    io.stderr.write(`${err.lines.join('\n')}\n`)
    return EXIT.failed
  }
}

/** One line per relation that a subject can gain or lose, and a summary. */
export function differenceLines(found: readonly Difference[]): readonly string[] {
  const lines: string[] = []
  for (const { type, relation, subject, gain, lose } of found)
    for (const [word, verdict] of [
      ['gain', gain],
      ['lose', lose],
    ] as const) {
      const about = `${type}#${relation}: `
      if (verdict.kind === 'undecided') lines.push(`${about}not decided whether a ${subject} can ${word} it`)
      if (verdict.kind === 'somebody')
        lines.push(`${about}a ${subject} can ${word} it. Example: ${exampleText(verdict.example)}`)
    }
  const relations = (all: readonly Difference[]): number => new Set(all.map((of) => `${of.type}#${of.relation}`)).size
  const changed = relations(found.filter(({ gain, lose }) => gain.kind !== 'nobody' || lose.kind !== 'nobody'))
  const all = relations(found)
  lines.push(
    changed === 0
      ? `Nobody can gain or lose any of the ${all} relations, whatever the tuples are.`
      : `Nobody can gain or lose any of the other ${all - changed} of ${all} relations, whatever the tuples are.`,
  )
  return lines
}

function exampleText({ subject, object, tuples, context }: Example): string {
  const stored = tuples.map(
    ({ object, relation, user, condition }) =>
      `\n    ${object}#${relation}@${user}${condition === null ? '' : ` with ${condition.name}`}`,
  )
  const values = Object.keys(context).length === 0 ? '' : `\n    context ${JSON.stringify(context)}`
  return `${subject} on ${object}, with${stored.join('')}${values}`
}

function jsonOf({ gain, lose, ...place }: Difference): object {
  const outcome = (of: Outcome): object =>
    of.kind === 'somebody'
      ? {
          verdict: of.kind,
          example: {
            ...of.example,
            tuples: of.example.tuples.map(({ user, relation, object, condition }) => ({
              user,
              relation,
              object,
              ...(condition === null ? {} : { condition: { name: condition.name } }),
            })),
          },
        }
      : { verdict: of.kind }
  return { ...place, gain: outcome(gain), lose: outcome(lose) }
}

async function lint(files: readonly string[], io: NodeJS.Process, json: boolean): Promise<number> {
  const { loadModel, UnusableModel } = await import('../model-change/load-model.ts')
  const { lintModel } = await import('../model-change/model-lint.ts')
  const { shortened } = await import('../model-test/located-yaml.ts')
  const found: { file: string; line: number | null; message: string }[] = []
  const unusable: string[] = []
  for (const file of files)
    try {
      const loaded = await loadModel(file, io.cwd())
      const at = shortened(loaded.source.file, io.cwd())
      found.push(...lintModel(loaded).map((finding) => ({ file: at, ...finding })))
    } catch (err) {
      if (!(err instanceof UnusableModel)) throw err
      unusable.push(...err.lines)
    }
  if (json) io.stdout.write(`${JSON.stringify({ unusable, found }, null, 2)}\n`)
  else {
    for (const line of unusable) io.stderr.write(`${line}\n`)
    for (const { file, line, message } of found)
      io.stdout.write(`${file}${line === null ? '' : `:${line}`}: ${message}\n`)
    if (unusable.length + found.length === 0) io.stdout.write('nothing found\n')
  }
  return unusable.length > 0 ? EXIT.failed : found.length > 0 ? EXIT.denied : EXIT.ok
}
