/** The relation model of a store file: within it, or in a `.fga`, `.json` or modular `fga.mod` file. No type is built in. */
import { dirname, join } from 'node:path'
import { compileDocument } from '../../engine/decide/language/model-language.ts'
import type { Model } from '../../engine/decide/model.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { type ReadText, unreadableMessage } from './confined-files.ts'
import type { ValidationIssues } from './located-yaml.ts'
import { readSourceModel, type SourceModel } from './model-text.ts'
import type { ModelSource } from './store-file.ts'

/** The model; null: its errors are in `issues`. */
export async function readModel(
  source: ModelSource,
  options: { readonly read: ReadText; readonly issues: ValidationIssues },
): Promise<(SourceModel & { readonly model: Model }) | null> {
  const { read, issues } = options
  try {
    const found = await readSourceModel(source, read)
    return { ...found, model: compileDocument(found.document, found.placeOf, { builtIn: false }) }
  } catch (err) {
    if (!(err instanceof PdpError)) {
      if (source.kind === 'inline') throw err
      issues.note(source.from, source.line, unreadableMessage(err, `the model file ${source.file}`))
      return null
    }
    if (err.code !== 'request_invalid') throw err
    const text = source.kind === 'inline' ? source.text : await read(source.file)
    for (const issue of dynamicCondition(text) ?? err.issues) note(issues, source, issue)
    return null
  }
}

/** Issues about `with $expression`: a condition that comes with each tuple, which the parser does not know. */
function dynamicCondition(text: string): readonly ValidationIssue[] | null {
  const lines = text.split('\n')
  const line = lines.findIndex((candidate) => /^[^#]*\bwith\s+\$/.test(candidate))
  const [, name = ''] = /\bwith\s+(\$\w*)/.exec(lines[line] ?? '') ?? []
  if (name === '') return null
  const place = `${line + 1}:${(lines[line]?.indexOf(name) ?? 0) + 1}`
  return [
    {
      place,
      message: `the model uses condition "${name}", which tuples would have to bring along: name a condition that the model declares`,
    },
  ]
}

/** Notes an issue with its `line:column` in the model's text, after the module's file if there are several. */
function note(issues: ValidationIssues, source: ModelSource, { place, message }: ValidationIssue): void {
  const module = /^(.+):(\d+:\d+)$/.exec(place)
  if (source.kind === 'file' && module !== null && !/^\d+$/.test(module[1] ?? '')) {
    issues.note(join(dirname(source.file), module[1] ?? ''), module[2] ?? '1:1', message)
    return
  }
  const [line = 1, column = 1] = place.split(':').map(Number)
  const at = source.kind === 'inline' && source.indent > 0 ? `${source.line + line}:${source.indent + column}` : place
  issues.note(source.file, source.kind === 'inline' && source.indent === 0 ? source.line : at, message)
}
