/** The relation model of a store file: in place, or a `.fga`, `.json` or modular `fga.mod` file. No type is built in. */
import { dirname, join } from 'node:path'
import openfga from '@openfga/syntax-transformer'
import { boundIssues } from '../../engine/decide/language/model-bounds.ts'
import {
  compileDocument,
  compileModel,
  type ModelDocument,
  parsed,
} from '../../engine/decide/language/model-language.ts'
import type { Model } from '../../engine/decide/model.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import type { ValidationIssues } from './located-yaml.ts'
import type { ModelSource, ReadText } from './store-file.ts'

/** Null when there is something wrong with the model, which is then in `issues`. */
export async function readModel(
  source: ModelSource,
  options: { readonly read: ReadText; readonly issues: ValidationIssues },
): Promise<Model | null> {
  const { read, issues } = options
  let text: string
  try {
    text = source.kind === 'inline' ? source.text : await read(source.file)
  } catch {
    issues.note(
      source.kind === 'file' ? source.from : source.file,
      source.line,
      `the model file ${source.file} cannot be read`,
    )
    return null
  }
  try {
    requireBounds(text)
    return source.kind === 'inline'
      ? compileModel(text, { builtIn: false })
      : await compileFile(source.file, text, read)
  } catch (err) {
    if (!(err instanceof PdpError) || err.code !== 'request_invalid') throw err
    for (const issue of dynamicCondition(text) ?? err.issues) note(issues, source, issue)
    return null
  }
}

/** `with $expression`: a condition that comes with each tuple, which the parser does not know. */
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

/** As for a manifest. Throws PdpError `request_invalid`. */
function requireBounds(text: string): void {
  const issues = boundIssues(text)
  if (issues.length > 0) throw new PdpError('request_invalid', 'the model is too large', { issues })
}

async function compileFile(file: string, text: string, read: ReadText): Promise<Model> {
  if (file.endsWith('.json')) return compileJson(text)
  return file.endsWith('.mod') ? compileModules(file, text, read) : compileModel(text, { builtIn: false })
}

function compileJson(text: string): Model {
  const document = parsed(() => {
    const model = JSON.parse(text)
    openfga.validator.validateJSON(model)
    return model
  })
  return compileDocument(document)
}

async function compileModules(file: string, text: string, read: ReadText): Promise<Model> {
  const { contents, schema } = parsed(() => openfga.transformer.transformModFileToJSON(text))
  const modules: { name: string; contents: string }[] = []
  for (const { value: name, line } of contents.value) {
    const found = await read(join(dirname(file), name)).catch(() => null)
    if (found === null) throw unreadable(name, line.start + 1)
    requireBounds(found)
    modules.push({ name, contents: found })
  }
  return compileDocument(
    parsed(() => openfga.transformer.transformModuleFilesToModel(modules, schema.value) as unknown as ModelDocument),
  )
}

function unreadable(name: string, line: number): PdpError {
  const message = `the module ${name} cannot be read`
  return new PdpError('request_invalid', message, { issues: [{ place: `${line}:1`, message }] })
}

/** An issue's place is `line:column` of the model's own text, after the module's file if it has several. */
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
