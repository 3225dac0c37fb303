/** Relationship tuples in OpenFGA's forms: in the store file, or in YAML, JSON, JSON lines or CSV. */
import type { JsonObject } from '../../shared/domain/json.ts'
import type { TupleCondition } from '../../shared/domain/tuple.ts'
import type { Located, Reader } from './located-yaml.ts'

export type FileTuple = {
  readonly user: string
  readonly relation: string
  readonly object: string
  readonly condition: TupleCondition | null
  readonly file: string
  readonly line: number
}

/** The ending of `reader.file` chooses the form of the text. */
export function readTupleFile(reader: Reader, text: string): readonly FileTuple[] {
  const ending = reader.file.slice(reader.file.lastIndexOf('.') + 1).toLowerCase()
  if (['yaml', 'yml', 'json'].includes(ending)) return readTuples(reader, reader.parse(text))
  if (ending === 'jsonl') return readLines(reader, text)
  if (ending === 'csv') return readCsv(reader, text)
  reader.note(1, `a tuple file ends in .yaml, .json, .jsonl or .csv, not .${ending}`)
  return []
}

/** Reads a list, or the output of `fga tuple read`. */
export function readTuples(reader: Reader, value: Located | undefined): readonly FileTuple[] {
  const printed = value?.kind === 'map' ? value.entries.get('tuples') : undefined
  return reader.list(printed ?? value, 'tuples').map((item) => {
    const key = item.kind === 'map' ? item.entries.get('key') : undefined
    return readTuple(reader, key ?? item, item.line)
  })
}

function readTuple(reader: Reader, value: Located, line: number): FileTuple {
  const tuple = reader.map(value, 'the tuple', ['user', 'relation', 'object', 'condition'])
  const condition = reader.map(tuple.get('condition'), 'the condition', ['name', 'context'])
  return {
    user: reader.required(tuple.get('user'), 'user', line),
    relation: reader.required(tuple.get('relation'), 'relation', line),
    object: reader.required(tuple.get('object'), 'object', line),
    condition:
      condition.size === 0
        ? null
        : {
            name: reader.required(condition.get('name'), 'the condition', line),
            context: reader.context(condition.get('context')),
          },
    file: reader.file,
    line,
  }
}

function readLines(reader: Reader, text: string): readonly FileTuple[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '') return []
    const own = reader.below(i)
    return [{ ...readTuple(own, own.parse(line), 1), line: i + 1 }]
  })
}

const COLUMNS = [
  'user_type',
  'user_id',
  'user_relation',
  'relation',
  'object_type',
  'object_id',
  'condition_name',
  'condition_context',
]
const COLUMNS_NEEDED = ['user_type', 'user_id', 'relation', 'object_type', 'object_id']

function readCsv(reader: Reader, text: string): readonly FileTuple[] {
  const [header, ...rows] = csvRows(text)
  const columns = header?.cells.map((cell) => cell.trim()) ?? []
  for (const column of columns)
    if (!COLUMNS.includes(column)) reader.note(1, `column ${column} is unknown (known: ${COLUMNS.join(', ')})`)
  const missing = COLUMNS_NEEDED.filter((column) => !columns.includes(column))
  if (missing.length > 0) {
    reader.note(1, `column ${missing.join(', ')} is missing`)
    return []
  }
  return rows.map(({ cells, line }) => {
    const cell = (name: string): string => cells[columns.indexOf(name)]?.trim() ?? ''
    if (cells.length !== columns.length) reader.note(line, `it has ${cells.length} cells, the header ${columns.length}`)
    const relation = cell('user_relation')
    return {
      user: `${cell('user_type')}:${cell('user_id')}${relation === '' ? '' : `#${relation}`}`,
      relation: cell('relation'),
      object: `${cell('object_type')}:${cell('object_id')}`,
      condition:
        cell('condition_name') === ''
          ? null
          : { name: cell('condition_name'), context: cellContext(reader.below(line - 1), cell('condition_context')) },
      file: reader.file,
      line,
    }
  })
}

function cellContext(reader: Reader, cell: string): JsonObject {
  return cell === '' ? {} : reader.context(reader.parse(cell))
}

type Row = { readonly cells: readonly string[]; readonly line: number }

/** Rows by RFC 4180: quoted cells may contain commas, line breaks and doubled quotes. Empty lines are no rows. */
function csvRows(text: string): readonly Row[] {
  const rows: Row[] = []
  let cells: string[] = []
  let [line, first] = [1, 1]
  const endRow = (): void => {
    if (cells.some((cell) => cell !== '')) rows.push({ cells, line: first })
    cells = []
    first = line
  }
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    line += (quoted?.split('\n').length ?? 1) - 1
    if (end === ',') continue
    if (end !== '') line++
    endRow()
  }
  return rows
}
