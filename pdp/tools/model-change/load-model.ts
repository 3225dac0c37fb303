/** Loads and compiles the model of a file: a `.fga`, JSON, `fga.mod` or store file. */
import { resolve } from 'node:path'
import type { Model } from '../../engine/decide/model.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { unconfined } from '../model-test/confined-files.ts'
import { shortened, ValidationIssues } from '../model-test/located-yaml.ts'
import { readModel } from '../model-test/model-file.ts'
import type { SourceModel } from '../model-test/model-text.ts'
import { type ModelSource, readStoreFile } from '../model-test/store-file.ts'

export type LoadedModel = SourceModel & { readonly source: ModelSource; readonly model: Model }
/** A file's errors as lines with positions. */
export class UnusableModel extends Error {
  override readonly name = 'UnusableModel'
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

/** Throws UnusableModel. */
export async function loadModel(file: string, directory: string): Promise<LoadedModel> {
  const path = resolve(directory, file)
  const issues = new ValidationIssues()
  try {
    const source = (await readStoreFile(path, { read: unconfined, issues })).model
    const found = source === null ? null : await readModel(source, { read: unconfined, issues })
    if (source !== null && found !== null && issues.lines.length === 0) return { ...found, source }
  } catch (err) {
    if (!(err instanceof Error && 'code' in err)) throw err
    throw new UnusableModel([fileProblem(file, err)])
  }
  throw new UnusableModel(issues.lines.map((line) => shortened(line, directory)))
}
