/** OpenFGA's store files (`.fga.yaml`): a model, tuples, and the expected answers. */
import { dirname, resolve } from 'node:path'
import type { JsonObject } from '../../shared/domain/json.ts'
import { type ReadText, unreadableMessage } from './confined-files.ts'
import { type Located, Reader, type ValidationIssues } from './located-yaml.ts'
import { type FileTuple, readTupleFile, readTuples } from './tuple-file.ts'

/** The file with the model: the store file or another. */
export type ModelSource =
  | {
      readonly kind: 'inline'
      readonly text: string
      readonly file: string
      readonly line: number
      readonly indent: number
    }
  | { readonly kind: 'file'; readonly file: string; readonly line: number; readonly from: string }
export type UserFilter = { readonly type: string; readonly relation: string | null }
export type Assertion = { readonly relation: string; readonly line: number; readonly context: JsonObject } & (
  | { readonly kind: 'check'; readonly user: string; readonly object: string; readonly expected: boolean }
  | {
      readonly kind: 'list_objects'
      readonly user: string
      readonly type: string
      readonly expected: readonly string[]
    }
  | {
      readonly kind: 'list_users'
      readonly object: string
      readonly filters: readonly UserFilter[]
      readonly expected: readonly string[]
    }
)
export type StoreTest = {
  readonly name: string
  readonly tuples: readonly FileTuple[]
  readonly assertions: readonly Assertion[]
}
export type StoreFile = {
  readonly model: ModelSource | null
  readonly tuples: readonly FileTuple[]
  readonly tests: readonly StoreTest[]
}
type Context = { readonly reader: Reader; readonly read: ReadText; readonly issues: ValidationIssues }

const STORE = ['name', 'model', 'model_file', 'tuples', 'tuple_file', 'tuple_files', 'tests']
const TEST = ['name', 'description', 'tuples', 'tuple_file', 'tuple_files', 'check', 'list_objects', 'list_users']

/** Reads the store. Errors in it and in its tuple files are noted in `issues`. A mere model is a store without tuples. */
export async function readStoreFile(
  file: string,
  options: { read: ReadText; issues: ValidationIssues },
): Promise<StoreFile> {
  const { read, issues } = options
  const reader = new Reader(file, issues)
  const context = { reader, read, issues }
  const text = await read(file)
  if (/\.(?:fga|mod)$/.test(file) || (file.endsWith('.json') && /"type_definitions"\s*:/.test(text)))
    return { model: { kind: 'file', file, line: 1, from: file }, tuples: [], tests: [] }
  if (file.endsWith('.zed') || (/^schema(?:File)?\s*:/m.test(text) && !/^model(?:_file)?\s*:/m.test(text))) {
    reader.note(1, 'this is of SpiceDB: "portcullis import spicedb" reads it, and plays its assertions')
    return { model: null, tuples: [], tests: [] }
  }
  const root = reader.map(reader.parse(text), 'the store file', STORE)
  const tests: StoreTest[] = []
  for (const value of reader.list(root.get('tests'), 'tests')) tests.push(await readTest(context, value, tests.length))
  return { model: modelSource(context, root), tuples: await allTuples(context, root), tests }
}

function modelSource({ reader }: Context, root: ReadonlyMap<string, Located>): ModelSource | null {
  const { file } = reader
  const inline = root.get('model')
  const text = reader.text(inline, 'model')
  if (text !== null && inline?.kind === 'text')
    return { kind: 'inline', text, file, line: inline.line, indent: inline.indent }
  const named = root.get('model_file')
  const name = reader.text(named, 'model_file')
  if (name !== null) return { kind: 'file', file: resolve(dirname(file), name), line: named?.line ?? 1, from: file }
  reader.note(1, 'there is neither a model nor a model_file')
  return null
}

/** All tuples: the store file's own, and those of its tuple files. */
async function allTuples(context: Context, at: ReadonlyMap<string, Located>): Promise<readonly FileTuple[]> {
  const { reader, read, issues } = context
  const tuples = [...readTuples(reader, at.get('tuples'))]
  const single = at.get('tuple_file')
  for (const value of [
    ...(single === undefined ? [] : [single]),
    ...reader.list(at.get('tuple_files'), 'tuple_files'),
  ]) {
    const name = reader.text(value, 'a tuple file')
    if (name === null) continue
    const file = resolve(dirname(reader.file), name)
    const text = await read(file).catch((err: unknown) => {
      reader.note(value.line, unreadableMessage(err, `the tuple file ${name}`))
      return null
    })
    if (text !== null) tuples.push(...readTupleFile(new Reader(file, issues), text))
  }
  return tuples
}

async function readTest(context: Context, value: Located, index: number): Promise<StoreTest> {
  const { reader } = context
  const test = reader.map(value, 'the test', TEST)
  return {
    name: reader.text(test.get('name'), 'name') ?? `test ${index + 1}`,
    tuples: await allTuples(context, test),
    assertions: [
      ...reader.list(test.get('check'), 'check').flatMap((check) => readChecks(reader, check)),
      ...reader.list(test.get('list_objects'), 'list_objects').flatMap((list) => readListObjects(reader, list)),
      ...reader.list(test.get('list_users'), 'list_users').flatMap((list) => readListUsers(reader, list)),
    ],
  }
}

/** Assertions about each user with each object. */
function readChecks(reader: Reader, value: Located): readonly Assertion[] {
  const check = reader.map(value, 'the check', ['user', 'users', 'object', 'objects', 'context', 'assertions'])
  const users = oneOrMany(reader, check, { one: 'user', many: 'users', line: value.line })
  const objects = oneOrMany(reader, check, { one: 'object', many: 'objects', line: value.line })
  return assertionsOf(reader, check, value).flatMap(([relation, wanted]) => {
    // OpenFGA's own tool reads a missing value as false.
    const expected = wanted.kind === 'none' ? false : reader.boolean(wanted, `the assertion on ${relation}`)
    if (expected === null) return []
    const at = {
      kind: 'check',
      relation,
      expected,
      line: wanted.line,
      context: reader.context(check.get('context')),
    } as const
    return users.flatMap((user) => objects.map((object) => ({ ...at, user, object })))
  })
}

function readListObjects(reader: Reader, value: Located): readonly Assertion[] {
  const list = reader.map(value, 'the list', ['user', 'type', 'context', 'assertions'])
  const user = reader.required(list.get('user'), 'user', value.line)
  const type = reader.required(list.get('type'), 'type', value.line)
  return assertionsOf(reader, list, value).map(([relation, wanted]) => ({
    kind: 'list_objects',
    user,
    type,
    relation,
    expected: texts(reader, wanted, `the assertion on ${relation}`),
    line: wanted.line,
    context: reader.context(list.get('context')),
  }))
}

function readListUsers(reader: Reader, value: Located): readonly Assertion[] {
  const list = reader.map(value, 'the list', ['object', 'user_filter', 'context', 'assertions'])
  const object = reader.required(list.get('object'), 'object', value.line)
  const filters = reader.list(list.get('user_filter'), 'user_filter').map((item) => {
    const filter = reader.map(item, 'the user filter', ['type', 'relation'])
    return {
      type: reader.required(filter.get('type'), 'type', item.line),
      relation: reader.text(filter.get('relation'), 'relation'),
    }
  })
  if (filters.length === 0) reader.note(value.line, 'user_filter is missing')
  return assertionsOf(reader, list, value).map(([relation, wanted]) => {
    const users =
      wanted.kind === 'map' ? reader.map(wanted, `the assertion on ${relation}`, ['users']).get('users') : wanted
    const expected = texts(reader, users, `the assertion on ${relation}`)
    const context = reader.context(list.get('context'))
    return { kind: 'list_users', object, filters, relation, expected, line: wanted.line, context }
  })
}

function assertionsOf(
  reader: Reader,
  at: ReadonlyMap<string, Located>,
  holder: Located,
): readonly (readonly [string, Located])[] {
  const found = reader.entries(at.get('assertions'), 'assertions')
  // An error, because a test with forgotten assertions would else pass.
  if (found.length === 0) reader.note(holder.line, 'assertions is missing')
  return found
}

function oneOrMany(
  reader: Reader,
  at: ReadonlyMap<string, Located>,
  names: { readonly one: string; readonly many: string; readonly line: number },
): readonly string[] {
  const [one, many] = [at.get(names.one), at.get(names.many)]
  if (one !== undefined && many !== undefined) reader.note(one.line, `there are both ${names.one} and ${names.many}`)
  if (many === undefined) return [reader.required(one, names.one, names.line)]
  const found = texts(reader, many, names.many)
  if (found.length === 0) reader.note(names.line, `${names.many} is empty`)
  return found
}

const texts = (reader: Reader, value: Located | undefined, what: string): readonly string[] =>
  reader.list(value, what).map((item) => reader.required(item, `an item of ${what}`, item.line))
