/** Reads a model file for commands that send it: a text, JSON, or an `fga.mod` with modules. */
import { readFile } from 'node:fs/promises'
import { PdpError } from '../../shared/domain/errors.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { CliError } from './errors.ts'

/** `named`: the option or member that names the file, for errors. Throws CliError. */
export async function readModelFile(
  file: string,
  named: { readonly by: string; readonly as: string },
): Promise<string> {
  const { placeIn, readModelText } = await import('../model-test/model-text.ts')
  try {
    return await readModelText({ kind: 'file', file, line: 1, from: named.by }, (name) => readFile(name, 'utf8'))
  } catch (err) {
    if (err instanceof PdpError) {
      const issues = err.issues.map(({ place, message }) => `${placeIn(file, place)} ${message}`)
      throw new CliError([`${named.as}: the model is not valid`, ...issues].join('\n  '), { cause: err })
    }
    if (!(err instanceof Error && 'code' in err)) throw err
    const problem = fileProblem('path' in err ? String(err.path) : 'the model', err)
    throw new CliError(`${named.as}: ${problem}`, { cause: err })
  }
}
