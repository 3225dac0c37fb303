/** The files in which SpiceDB's users keep a schema with its relationships: a schema, a validation file, or a backup of zed. */
import { dirname, resolve } from 'node:path'
import { jsonOf, type Located, Reader, type ValidationIssues } from '../model-test/located-yaml.ts'
import { isBackup, readBackup } from './spicedb-backup.ts'

export type SpiceDbFile = {
  readonly schema: string
  readonly relationships: string
  /** `what`: a relationship, perhaps followed by `with {…}`, which is the context of the question. */
  readonly assertions: readonly {
    readonly line: number
    readonly what: string
    /** `caveated`: the answer depends on values that the question lacks. */
    readonly expected: 'true' | 'false' | 'caveated'
  }[]
  /** Expected subjects of permissions such as `document:1#view`, each as `[user:ann] is <document:1#reader>`. */
  readonly expectations: readonly {
    readonly line: number
    readonly what: string
    readonly subjects: readonly string[]
  }[]
}

const MEMBERS = ['schema', 'schemaFile', 'relationships', 'assertions', 'validation']
const ASSERTIONS = { assertTrue: 'true', assertFalse: 'false', assertCaveated: 'caveated' } as const

/** Errors in the form of a validation file are noted in `issues`. Throws PdpError `request_invalid` for a damaged backup. */
export async function readSpiceDbFile(
  file: string,
  { read, issues }: { readonly read: (path: string) => Promise<Uint8Array>; readonly issues: ValidationIssues },
): Promise<SpiceDbFile> {
  const bytes = await read(file)
  const nothing = { assertions: [], expectations: [] }
  if (isBackup(bytes)) return { ...readBackup(bytes), ...nothing }
  const text = Buffer.from(bytes).toString('utf8')
  if (!isValidationFile(file, text)) return { schema: text, relationships: '', ...nothing }
  const reader = new Reader(file, issues)
  const root = reader.map(reader.parse(text), 'the validation file', MEMBERS)
  const named = reader.text(root.get('schemaFile'), 'schemaFile')
  const path = named === null ? null : resolve(dirname(file), named)
  const found = path === null ? null : await read(path).catch(() => null)
  if (path !== null && found === null)
    reader.note(root.get('schemaFile')?.line ?? 1, `the schema file ${named} cannot be read`)
  const schema = found === null ? reader.text(root.get('schema'), 'schema') : Buffer.from(found).toString('utf8')
  if (schema === null) reader.note(1, 'there is neither a schema nor a schemaFile')
  const asserted = reader.map(root.get('assertions'), 'assertions', Object.keys(ASSERTIONS))
  return {
    schema: schema ?? '',
    relationships: linesOf(reader, root.get('relationships')),
    assertions: Object.entries(ASSERTIONS).flatMap(([member, expected]) =>
      reader.list(asserted.get(member), member).map((item) => ({
        line: item.line,
        what: reader.required(item, member, item.line),
        expected,
      })),
    ),
    expectations: reader.entries(root.get('validation'), 'validation').map(([what, subjects]) => ({
      line: subjects.line,
      what,
      subjects: reader.list(subjects, what).map((item) => subjectText(reader, item)),
    })),
  }
}

const isValidationFile = (file: string, text: string): boolean =>
  /\.(?:ya?ml|zaml)$/.test(file) || /^(?:schema|schemaFile|relationships)\s*:/m.test(text)

/** The relationships, one per line. A folded YAML text has all on one line. */
function linesOf(reader: Reader, value: Located | undefined): string {
  const text = reader.text(value, 'relationships') ?? ''
  return text.replaceAll(/(\S)[ \t]+(?=[\w/]+:[^\s#@[\]]+#)/g, '$1\n')
}

/** The text of a subject: without quotes, YAML reads `[user:ann] is …` as a list. */
function subjectText(reader: Reader, item: Located): string {
  return item.kind === 'list' ? `[${item.items.map(jsonOf).join(',')}]` : reader.required(item, 'a subject', item.line)
}
