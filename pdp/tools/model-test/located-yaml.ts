/** YAML (and so JSON) as values with their lines, and readers that note errors with positions. */
import { relative } from 'node:path'
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import type { JsonObject, JsonValue } from '../../shared/domain/json.ts'

export type Located = { readonly line: number } & (
  | { readonly kind: 'none' }
  /** `block`: written as `|` or `>`; its text then begins on the next line, indented by `indent`. */
  | {
      readonly kind: 'text'
      readonly text: string
      /** The plain value. */
      readonly value: JsonValue
      readonly block: boolean
      readonly indent: number
    }
  | { readonly kind: 'list'; readonly items: readonly Located[] }
  | { readonly kind: 'map'; readonly entries: ReadonlyMap<string, Located> }
)

/** The plain value, for readers outside of this file. */
export function jsonOf(located: Located): JsonValue {
  switch (located.kind) {
    case 'none':
      return null
    case 'text':
      return located.value
    case 'list':
      return located.items.map(jsonOf)
    case 'map':
      return Object.fromEntries([...located.entries].map(([key, value]) => [key, jsonOf(value)]))
  }
}

/** The greatest depth: an alias may contain itself. */
const NESTING_MAX = 50

/** All errors in some files as lines for people: `file:line: error`. */
export class ValidationIssues {
  readonly #lines: string[] = []

  note(file: string, line: number | string, message: string): void {
    this.#lines.push(`${file}:${line}: ${message}`)
  }

  /** Notes an error of the file as a whole, in a sentence that begins with the file's name. */
  noteFile(sentence: string): void {
    this.#lines.push(sentence)
  }

  get lines(): readonly string[] {
    return this.#lines
  }
}

/** The line with a short file name, if the file is below the working directory. */
export const shortened = (line: string, directory: string): string =>
  line.startsWith(`${directory}/`) ? relative(directory, line) : line

/** Reads values of one file. A wrong value is noted, and treated as absent. */
export class Reader {
  readonly file: string
  readonly #issues: ValidationIssues
  readonly #above: number

  /** `above`: how many lines of the file come before the text that is read. */
  constructor(file: string, issues: ValidationIssues, above = 0) {
    this.file = file
    this.#issues = issues
    this.#above = above
  }

  note(line: number, message: string): void {
    this.#issues.note(this.file, line + this.#above, message)
  }

  /** A reader for a text that is a part of the file. */
  below(linesCount: number): Reader {
    return new Reader(this.file, this.#issues, linesCount)
  }

  /** The whole text as one located value. */
  parse(text: string): Located {
    const lines = new LineCounter()
    const document = parseDocument(text, { lineCounter: lines, merge: true })
    for (const error of document.errors) this.note(error.linePos?.[0].line ?? 1, firstLine(error.message))
    if (document.errors.length > 0 || document.contents === null) return { kind: 'none', line: 1 }
    return locate(document.contents, { document, lines, text, depth: 0 })
  }

  /** The entries of a map; other members than `known` are errors. */
  map(value: Located | undefined, what: string, known: readonly string[]): ReadonlyMap<string, Located> {
    if (value === undefined || value.kind === 'none') return new Map()
    if (value.kind !== 'map') {
      this.note(value.line, `${what} is not a map`)
      return new Map()
    }
    for (const [key, { line }] of value.entries) {
      if (!known.includes(key)) this.note(line, `${what} has the unknown member "${key}" (known: ${known.join(', ')})`)
    }
    return value.entries
  }

  /** A map's entries, whose keys the author chooses. */
  entries(value: Located | undefined, what: string): readonly (readonly [string, Located])[] {
    if (value === undefined || value.kind === 'none') return []
    if (value.kind === 'map') return [...value.entries]
    this.note(value.line, `${what} is not a map`)
    return []
  }

  list(value: Located | undefined, what: string): readonly Located[] {
    if (value === undefined || value.kind === 'none') return []
    if (value.kind === 'list') return value.items
    this.note(value.line, `${what} is not a list`)
    return []
  }

  /** The text; null when absent; any other value is an error. */
  text(value: Located | undefined, what: string): string | null {
    if (value === undefined || value.kind === 'none') return null
    if (value.kind === 'text') return value.text
    this.note(value.line, `${what} is not text`)
    return null
  }

  /** Like `text`, but the value is required. `line`: the line of its map. */
  required(value: Located | undefined, what: string, line: number): string {
    const text = this.text(value, what)
    if (text === null && (value === undefined || value.kind === 'none')) this.note(line, `${what} is missing`)
    return text ?? ''
  }

  /** A context of conditions; {} when it is absent. */
  context(value: Located | undefined): JsonObject {
    return Object.fromEntries(this.entries(value, 'the context').map(([name, item]) => [name, jsonOf(item)]))
  }

  /** A boolean in any spelling of YAML 1.1, as OpenFGA's own tool reads them. */
  boolean(value: Located, what: string): boolean | null {
    const text = value.kind === 'text' ? value.text.toLowerCase() : ''
    if (['true', 'yes', 'on'].includes(text)) return true
    if (['false', 'no', 'off'].includes(text)) return false
    this.note(value.line, `${what} is neither true nor false`)
    return null
  }
}

type Context = {
  readonly document: Document
  readonly lines: LineCounter
  readonly text: string
  readonly depth: number
}

function locate(node: Node, context: Context): Located {
  const { document, lines, depth } = context
  const line = node.range == null ? 1 : lines.linePos(node.range[0]).line
  const inner = (child: unknown): Located =>
    child === null || child === undefined
      ? { kind: 'none', line }
      : locate(child as Node, { ...context, depth: depth + 1 })
  if (depth > NESTING_MAX) return { kind: 'none', line }
  if (isAlias(node)) {
    const target = node.resolve(document)
    return target === undefined ? { kind: 'none', line } : { ...inner(target), line }
  }
  if (isMap(node))
    return { kind: 'map', line, entries: new Map(node.items.flatMap(({ key, value }) => pair(key, value, inner))) }
  if (isSeq(node)) return { kind: 'list', line, items: node.items.map(inner) }
  if (!isScalar(node) || node.value === null || node.value === '') return { kind: 'none', line }
  const block = node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED'
  // The written text counts, and not YAML's value, since an id may look like a number.
  const text = typeof node.value === 'string' ? node.value : (node.source ?? String(node.value))
  const value = ['boolean', 'number'].includes(typeof node.value) ? (node.value as boolean | number) : text
  return { kind: 'text', line, text, value, block, indent: block ? indentOf(context, line) : 0 }
}

function pair(
  key: unknown,
  value: unknown,
  inner: (node: unknown) => Located,
): readonly (readonly [string, Located])[] {
  const name = inner(key)
  const found = inner(value)
  if (name.kind !== 'text') return []
  if (name.text === '<<' && found.kind === 'map') return [...found.entries]
  return [[name.text, found.kind === 'none' ? { kind: 'none', line: name.line } : found]]
}

/** How many columns a block scalar is indented by; `header`: the line of its header. */
function indentOf({ text }: Context, header: number): number {
  const first = text.split('\n').find((line, i) => i >= header && line.trim() !== '') ?? ''
  return first.length - first.trimStart().length
}

const firstLine = (text: string): string => text.split('\n')[0]?.replace(/ at line .*$/, '') ?? text
