/** Reads a configuration of nginx into directives, with what it includes. */
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Place, type Source, UnreadableError } from './source.ts'

export type Directive = Place & {
  readonly name: string
  readonly args: readonly string[]
  /** Null: it ended with `;`. */
  readonly block: readonly Directive[] | null
}
type Token = Place & { readonly text: string; readonly quoted: boolean }

const INCLUDES_MAX = 500
const DEPTH_MAX = 20

type Reading = { readonly root: string; included: number; readonly text: (path: string) => string }

/** `text`: of an included file. Throws UnreadableError. */
export function readNginx(source: Source, text: Reading['text']): readonly Directive[] {
  return new Parser(source.text, source.file, { root: dirname(source.file), included: 0, text }).directives(0)
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #file: string
  readonly #read: Reading
  #at = 0

  constructor(source: string, file: string, read: Reading) {
    this.#tokens = tokensOf(source, file)
    this.#file = file
    this.#read = read
  }

  /** Until the end of the file, or of the block. */
  directives(depth: number): readonly Directive[] {
    if (depth > DEPTH_MAX) throw new UnreadableError(`${this.#file}: blocks are nested too deeply`)
    const found: Directive[] = []
    while (this.#at < this.#tokens.length && !this.#is('}')) found.push(...this.#directive(depth))
    if (depth === 0 && this.#is('}')) throw this.#unexpected()
    return found
  }

  #directive(depth: number): readonly Directive[] {
    const first = this.#next()
    if (first === undefined || isMark(first)) throw this.#unexpected()
    const { file, line } = first
    const args: string[] = []
    while (this.#tokens[this.#at] !== undefined && !this.#is(';') && !this.#is('{') && !this.#is('}'))
      args.push(unbraced(this.#next()?.text ?? ''))
    if (this.#is(';')) {
      this.#at += 1
      if (first.text === 'include') return this.#included(args[0] ?? '', line, depth)
      return [{ name: first.text, args, file, line, block: null }]
    }
    if (!this.#is('{')) throw new UnreadableError(`${file}:${line}: ${first.text} ends with neither ; nor a block`)
    this.#at += 1
    const block = this.directives(depth + 1)
    if (!this.#is('}')) throw new UnreadableError(`${file}:${line}: the block of ${first.text} does not end`)
    this.#at += 1
    return [{ name: first.text, args, file, line, block }]
  }

  #included(pattern: string, line: number, depth: number): readonly Directive[] {
    const path = resolve(this.#read.root, pattern)
    const files = /[*?[]/.test(pattern) ? globSync(path).sort() : [path]
    return files.flatMap((file) => {
      this.#read.included += 1
      if (this.#read.included > INCLUDES_MAX)
        throw new UnreadableError(`${this.#file}:${line}: includes too many files`)
      try {
        return new Parser(this.#read.text(file), file, this.#read).directives(depth + 1)
      } catch (err) {
        if (err instanceof UnreadableError) throw err
        throw new UnreadableError(`${this.#file}:${line}: the included file ${file} cannot be read`)
      }
    })
  }

  #is(mark: string): boolean {
    const token = this.#tokens[this.#at]
    return token?.text === mark && !token.quoted
  }

  #next(): Token | undefined {
    this.#at += 1
    return this.#tokens[this.#at - 1]
  }

  #unexpected(): UnreadableError {
    const token = this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]
    return new UnreadableError(`${this.#file}:${token?.line ?? 1}: this is not a configuration of nginx`)
  }
}

/** `${name}` is `$name`, except where a letter follows. */
const unbraced = (text: string): string => text.replaceAll(/\$\{(\w+)\}(?!\w)/g, '$$$1')

const isMark = ({ text, quoted }: Token): boolean => !quoted && /^[;{}]$/.test(text)

/** Words, quoted words and the marks `;`, `{` and `}`. Blocks of Lua are one quoted word. */
function tokensOf(source: string, file: string): readonly Token[] {
  const tokens: Token[] = []
  let line = 1
  let at = 0
  const pattern =
    /(\n)|([ \t\r]+|#[^\n]*)|"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([;{}])|((?:\$\{|\\[\s\S]|[^\s;{}"'#\\]|(?<=\$\{\w*)\}|(?<=\S)[#"'])+)/suy
  while (at < source.length) {
    pattern.lastIndex = at
    const found = pattern.exec(source)
    if (found === null) throw new UnreadableError(`${file}:${line}: this is not a configuration of nginx`)
    const [text, , , double, single, mark, word] = found
    const quoted = double ?? single
    if (quoted !== undefined) tokens.push({ text: quoted.replaceAll(/\\(.)/gsu, '$1'), quoted: true, file, line })
    else if (mark !== undefined || word !== undefined) tokens.push({ text, quoted: false, file, line })
    line += text.split('\n').length - 1
    at = pattern.lastIndex
    if (mark === '{' && tokens.at(-2)?.text.endsWith('_by_lua_block') === true) {
      const end = closingBrace(source, at)
      if (end < 0) throw new UnreadableError(`${file}:${line}: a block of Lua does not end`)
      line += source.slice(at, end).split('\n').length - 1
      at = end
    }
  }
  return tokens
}

function closingBrace(source: string, from: number): number {
  let depth = 1
  for (let at = from; at < source.length; at += 1) {
    if (source[at] === '{') depth += 1
    if (source[at] === '}') depth -= 1
    if (depth === 0) return at
  }
  return -1
}
