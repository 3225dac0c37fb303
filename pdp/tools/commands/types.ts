/** `types`: writes a relation model as TypeScript, so that code with a wrong relation does not compile. */

import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { compileDocument } from '../../engine/decide/language/model-language.ts'
import type { Expression, Model } from '../../engine/decide/model.ts'
import { directOf } from '../../engine/decide/restrictions.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { unconfined } from '../model-test/confined-files.ts'
import { placeIn, readSourceModel } from '../model-test/model-text.ts'
import { CliError, type Run } from './errors.ts'

const HELP = `
Example:
  portcullis types model.fga --out model.ts
  // then: const pdp = createPdp<Model>({ store })`

export function addTypesCommand(program: Command, io: NodeJS.Process, run: Run): void {
  program
    .command('types')
    .description('Write a relation model as TypeScript types.')
    .argument('<file>', 'a .fga, .json or fga.mod file')
    .option('--out <file>', 'where to write it; by default to standard output')
    .addHelpText('after', HELP)
    .action((file: string, { out }: { out?: string }) =>
      run(async () => {
        const text = typesOf(await readModel(file), file)
        if (out === undefined) io.stdout.write(text)
        else write(out, text)
      }),
    )
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (err) {
    throw new CliError(fileProblem(file, err, 'written'), { cause: err })
  }
}

async function readModel(file: string): Promise<Model> {
  try {
    const { document, placeOf } = await readSourceModel({ kind: 'file', file, line: 1, from: file }, unconfined)
    return compileDocument(document, placeOf)
  } catch (err) {
    if (err instanceof Error && 'code' in err && !(err instanceof PdpError))
      throw new CliError(fileProblem(file, err), { cause: err })
    if (!(err instanceof PdpError)) throw err
    const lines = err.issues.map(({ place, message }) => `${placeIn(file, place)}: ${message}`)
    throw new CliError(lines.length === 0 ? `${file}: ${err.message}` : lines.join('\n'))
  }
}

function typesOf(model: Model, file: string): string {
  const types = [...model].map(([name, relations]) => {
    if (relations.size === 0) return `  ${member(name)}: Record<never, never>`
    const lines = [...relations].map(([relation, expression]) => `    ${member(relation)}: ${subjectsOf(expression)}`)
    return `  ${member(name)}: {\n${lines.join('\n')}\n  }`
  })
  const source = `/** Made from ${file.replace(/^.*[\\/]/, '').replaceAll('*/', '')} by \`portcullis types\`; do not edit. */`
  return `${source}\nexport type Model = {\n${types.join('\n')}\n}\n`
}

const member = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : JSON.stringify(name))

/** A union of the subjects that tuples of the relation may have; `never` for a relation that is only computed. */
function subjectsOf(expression: Expression): string {
  const direct = directOf(expression)
  if (direct === null) return 'never'
  const subjects = [
    ...[...direct.types].map((type) => `\`${type}:\${string}\``),
    ...[...direct.wildcards].map((type) => `'${type}:*'`),
    ...[...direct.usersets].map((userset) => {
      const [type, relation] = userset.split('#')
      return `\`${type}:\${string}#${relation}\``
    }),
  ]
  return subjects.length === 0 ? 'never' : subjects.join(' | ')
}
