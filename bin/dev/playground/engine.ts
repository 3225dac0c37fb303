/** What the playground's page asks of the engine: the same reader, model and checks as the commands have. */
import { PdpError } from '../../../pdp/shared/domain/errors.ts'
import type { JsonObject } from '../../../pdp/shared/domain/json.ts'
import { lintModel } from '../../../pdp/tools/model-change/model-lint.ts'
import { describe, failureOf, worldOf } from '../../../pdp/tools/model-test/assertions.ts'
import { ValidationIssues } from '../../../pdp/tools/model-test/located-yaml.ts'
import { readModel } from '../../../pdp/tools/model-test/model-file.ts'
import { tupleIssue } from '../../../pdp/tools/model-test/question-issues.ts'
import { type ModelSource, readStoreFile, type StoreFile } from '../../../pdp/tools/model-test/store-file.ts'

type Asked = { readonly user: string; readonly relation: string; readonly object: string; readonly context: JsonObject }
export type Played = {
  /** What is wrong with the files: nothing else is there then. */
  readonly issues: readonly string[]
  readonly findings: readonly string[]
  readonly tests: readonly { readonly text: string; readonly failure: string | null }[]
}

async function read(files: ReadonlyMap<string, string>, main: string, issues: ValidationIssues) {
  const open = async (path: string): Promise<string> => {
    const text = files.get(path.replace(/^\//, ''))
    if (text === undefined) throw Object.assign(new Error(`${path} is not open`), { code: 'ENOENT' })
    return text
  }
  const path = `/${main}`
  const source: ModelSource = { kind: 'file', file: path, line: 1, from: path }
  const alone: StoreFile = { model: source, tuples: [], tests: [] }
  const store = /\.ya?ml$/.test(main) ? await readStoreFile(path, { read: open, issues }) : alone
  const found = store.model === null ? null : await readModel(store.model, { read: open, issues })
  if (found !== null)
    for (const tuple of [...store.tuples, ...store.tests.flatMap(({ tuples }) => tuples)]) {
      const issue = tupleIssue(found.model, tuple)
      if (issue !== null) issues.note(tuple.file, tuple.line, issue)
    }
  return { store, found }
}

/** @param files texts by name. @param main the store file, or a model alone. */
export async function play(files: ReadonlyMap<string, string>, main: string): Promise<Played> {
  const issues = new ValidationIssues()
  const { store, found } = await read(files, main, issues)
  if (store.model === null || found === null || issues.lines.length > 0)
    return { issues: issues.lines.map((line) => line.replace(/^\//, '')), findings: [], tests: [] }
  const { model } = found
  const tests: Played['tests'][number][] = []
  for (const test of store.tests) {
    const world = await worldOf(model, store, test)
    for (const assertion of test.assertions)
      tests.push({
        text: `${test.name}: ${describe(assertion)}`,
        failure: await failureOf(world, model, assertion),
      })
  }
  const linted = lintModel({ source: store.model, ...found })
  return {
    issues: [],
    findings: linted.map(({ line, message }) => (line === null ? message : `line ${line}: ${message}`)),
    tests,
  }
}

/** Null where the files cannot be used. Throws PdpError for a question that has no answer. */
export async function ask(files: ReadonlyMap<string, string>, main: string, asked: Asked) {
  const issues = new ValidationIssues()
  const { store, found } = await read(files, main, issues)
  if (found === null || issues.lines.length > 0) return null
  const world = await worldOf(found.model, store, { name: '', tuples: [], assertions: [] })
  const { user, relation, object, context } = asked
  const failure = await failureOf(world, found.model, {
    kind: 'check',
    user,
    relation,
    object,
    context,
    expected: true,
    line: 1,
  })
  if (failure !== null && !failure.includes('expected true, got false')) throw new PdpError('request_invalid', failure)
  return world.explain(user, relation, object, context)
}
