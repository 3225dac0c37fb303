/** Reads a Caddyfile into directives, with the snippets and files that it imports. */
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Place, type Source, UnreadableError } from './source.ts'

export type Segment = Place & {
  readonly words: readonly string[]
  /** Null: there is no block. */
  readonly block: readonly Segment[] | null
}
type Word = Place & { readonly text: string; readonly quoted: boolean; readonly endsLine: boolean }

const DEPTH_MAX = 20

/** Sites and the block of global options, the last without words. Imports, which `text` reads, are in their places. Throws UnreadableError. */
export function readCaddyfile(source: Source, text: (path: string) => string): readonly Segment[] {
  return expand(withoutBraces(parse(source.text, source.file)), { snippets: new Map(), depth: 0, text, given: null })
}

/** What an import of a snippet or file hands over. */
type Given = { readonly args: readonly string[]; readonly block: readonly Segment[] }
type Imports = {
  /** Those that were read until now, as Caddy knows them. */
  readonly snippets: Map<string, readonly Segment[]>
  readonly depth: number
  readonly text: (path: string) => string
  readonly given: Given | null
}

const SEGMENTS_MAX = 100_000

function expand(segments: readonly Segment[], imports: Imports): readonly Segment[] {
  const { snippets, depth, text, given } = imports
  const expanded = segments.flatMap((segment): readonly Segment[] => {
    const { block, file, line } = segment
    if (depth > DEPTH_MAX) throw new UnreadableError(`${file}:${line}: imports or blocks are nested too deeply`)
    const snippet = /^\((.+)\)$/.exec(segment.words[0] ?? '')?.[1]
    if (snippet !== undefined && block !== null) {
      snippets.set(snippet, block)
      return []
    }
    const words = given === null ? segment.words : segment.words.flatMap((word) => substituted(word, given.args))
    const below = { ...imports, depth: depth + 1 }
    const inner = block === null ? null : expand(block, below)
    const handed = given === null ? null : blockOf(words, given.block)
    if (handed !== null) return handed
    if (words[0] !== 'import') return [{ words, block: inner, file, line }]
    const [, name = '', ...args] = words
    const inside = { ...below, given: { args, block: inner ?? [] } }
    const known = snippets.get(name)
    if (known !== undefined) return expand(known, inside)
    const path = resolve(dirname(file), name)
    const files = /[*?[]/.test(name) ? globSync(path).sort() : [path]
    return files.flatMap((included) => expand(parse(imported(included, `${file}:${line}`, text), included), inside))
  })
  if (expanded.length > SEGMENTS_MAX)
    throw new UnreadableError(`${segments[0]?.file}: its imports have more than ${SEGMENTS_MAX} lines in all`)
  return expanded
}

/** `{args[0]}`, and `{args[1:]}` as a word of its own. What is not given stays as it is. */
function substituted(word: string, args: readonly string[]): readonly string[] {
  const range = /^\{args\[(\d*):(\d*)\]\}$/.exec(word)
  if (range !== null) return args.slice(Number(range[1]), range[2] === '' ? undefined : Number(range[2]))
  return [
    word.replaceAll(/\{args(?:\[(\d+)\]|\.(\d+))\}/g, (whole, a?: string, b?: string) => args[Number(a ?? b)] ?? whole),
  ]
}

/** What `{block}` and `{blocks.name}` stand for; null for another line. */
function blockOf(words: readonly string[], block: readonly Segment[]): readonly Segment[] | null {
  const [first = ''] = words
  if (words.length !== 1) return null
  if (first === '{block}') return block
  const name = /^\{blocks\.(.+)\}$/.exec(first)?.[1]
  return name === undefined ? null : block.filter((one) => one.words[0] === name).flatMap((one) => one.block ?? [])
}

function imported(path: string, from: string, text: Imports['text']): string {
  try {
    return text(path)
  } catch {
    throw new UnreadableError(`${from}: the imported file ${path} cannot be read`)
  }
}

/** A file of one site may leave its braces out: its first line is the address. */
function withoutBraces(segments: readonly Segment[]): readonly Segment[] {
  const at = segments.findIndex(({ words, block }) => block === null && words[0] !== 'import')
  const site = segments[at]
  if (site === undefined) return segments
  return [...segments.slice(0, at), { ...site, block: segments.slice(at + 1) }]
}

function parse(source: string, file: string): readonly Segment[] {
  const words = wordsOf(source, file)
  let at = 0
  const segments = (depth: number): readonly Segment[] => {
    if (depth > DEPTH_MAX) throw new UnreadableError(`${file}: blocks are nested too deeply`)
    const found: Segment[] = []
    while (at < words.length && !isMark(words[at], '}')) found.push(segment(depth))
    if (depth === 0 && at < words.length)
      throw new UnreadableError(`${file}:${words[at]?.line}: no block is open that this } could close`)
    return found
  }
  const segment = (depth: number): Segment => {
    const { line } = words[at] ?? { line: 1 }
    const said: string[] = []
    for (; at < words.length; at += 1) {
      const word = words[at]
      if (word === undefined || isMark(word, '}')) break
      if (isMark(word, '{') && word.endsLine) {
        at += 1
        const block = segments(depth + 1)
        if (!isMark(words[at], '}')) throw new UnreadableError(`${file}:${line}: the block does not end`)
        at += 1
        return { words: said, block, file, line }
      }
      said.push(word.text)
      // Addresses go on in the next line after a comma.
      if (word.endsLine && !(word.text.endsWith(',') && depth === 0)) {
        at += 1
        break
      }
    }
    return { words: said, block: null, file, line }
  }
  return segments(0)
}

const isMark = (word: Word | undefined, mark: string): boolean => word?.text === mark && !word.quoted

function wordsOf(source: string, file: string): readonly Word[] {
  const words: Word[] = []
  let line = 1
  let at = 0
  const pattern =
    /(\r?\n)|(^\uFEFF|[ \t\r]+|\\\r?\n|#[^\n]*)|<<(\w+)\r?\n([\s\S]*?)\n[ \t]*\3(?=\s|$)|"((?:\\[\s\S]|[^"\\])*)"|`([^`]*)`|((?:[^\s"`\\]|\\[\s\S])[^\s]*)/uy
  while (at < source.length) {
    pattern.lastIndex = at
    const found = pattern.exec(source)
    if (found === null) throw new UnreadableError(`${file}:${line}: this is not a Caddyfile`)
    const [whole, , blank, , heredoc, double, raw, bare] = found
    at = pattern.lastIndex
    const said = heredoc ?? double?.replaceAll('\\"', '"') ?? raw ?? bare
    if (blank === undefined && said !== undefined) {
      const rest = /[ \t]*(?:#[^\n]*)?(?:\r?\n|$)/y
      rest.lastIndex = at
      const endsLine = rest.test(source)
      words.push({ text: said, quoted: bare === undefined, endsLine, file, line })
    }
    line += whole.split('\n').length - 1
  }
  return words
}
