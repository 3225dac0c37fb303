/** The schema language of SpiceDB, read into its definitions; what has no faithful translation is refused where it stands. */
import type { ValidationIssue } from '../../shared/domain/errors.ts'

export type Expression =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'arrow'; readonly relation: string; readonly permission: string }
  | { readonly kind: 'or' | 'and' | 'but not'; readonly parts: readonly Expression[] }
/** `relation` null for the object itself; `*` for everybody of the type. `caveat` null for none. */
export type Allowed = { readonly type: string; readonly relation: string | null; readonly caveat: string | null }
/** `expression`: as it is written, without comments. */
export type Caveat = {
  readonly name: string
  readonly parameters: readonly { readonly name: string; readonly type: string }[]
  readonly expression: string
}
export type Definition = {
  readonly name: string
  readonly relations: ReadonlyMap<string, readonly Allowed[]>
  readonly permissions: ReadonlyMap<string, Expression>
}
export type Schema = {
  readonly definitions: readonly Definition[]
  readonly caveats: readonly Caveat[]
  /** A relation says `with expiration`. */
  readonly expires: boolean
  readonly issues: readonly ValidationIssue[]
}

/** `index`: where it begins in the text. */
type Token = { readonly text: string; readonly place: string; readonly index: number }
const TOKEN =
  /\s+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n]*|\/\*[\s\S]*?\*\/|->|[A-Za-z_][A-Za-z0-9_]*(?:\/[A-Za-z_][A-Za-z0-9_]*)*|[{}()|:#=+&.*,;-]|[\s\S]/g
const SILENT = /^(?:\s|\/\/|\/\*)/
const NAME = /^[A-Za-z_]/
const END: Token = { text: '', place: '', index: 0 }
const OPERATORS: { readonly [sign: string]: 'or' | 'and' | 'but not' } = { '+': 'or', '&': 'and', '-': 'but not' }
const NESTING_MAX = 50

class Fault extends Error {
  readonly issue: ValidationIssue
  constructor({ place }: Token, message: string) {
    super(message)
    this.issue = { place, message }
  }
}

export function parseSchema(text: string): Schema {
  const parser = new Parser(tokensOf(text), text)
  const definitions: Definition[] = []
  const caveats: Caveat[] = []
  const issues: ValidationIssue[] = []
  while (parser.at.text !== '') {
    try {
      if (parser.at.text === 'use') parser.use()
      else if (parser.at.text === 'caveat') caveats.push(parser.caveat())
      else definitions.push(parser.definition())
    } catch (err) {
      if (!(err instanceof Fault)) throw err
      issues.push(err.issue)
      parser.skipToDefinition()
    }
  }
  return { definitions, caveats, expires: parser.expires, issues }
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  let [line, lineStart] = [1, 0]
  for (const { 0: found, index } of text.matchAll(TOKEN)) {
    const place = `${line}:${index - lineStart + 1}`
    if (!SILENT.test(found)) tokens.push({ text: found, place, index })
    const newLines = found.split('\n').length - 1
    line += newLines
    if (newLines > 0) lineStart = index + found.lastIndexOf('\n') + 1
  }
  tokens.push({ text: '', place: `${line}:1`, index: text.length })
  return tokens
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #text: string
  #index = 0
  expires = false

  constructor(tokens: readonly Token[], text: string) {
    this.#tokens = tokens
    this.#text = text
  }

  get at(): Token {
    return this.#tokens[this.#index] ?? END
  }

  #next(): Token {
    const token = this.at
    this.#index++
    return token
  }

  #is(text: string): boolean {
    return this.at.text === text
  }

  #expect(text: string): void {
    if (this.at.text !== text) throw new Fault(this.at, `"${text}" is expected here, and not "${this.at.text}"`)
    this.#index++
  }

  #name(what: string): string {
    if (!NAME.test(this.at.text))
      throw new Fault(this.at, `the name of a ${what} is expected here, and not "${this.at.text}"`)
    return this.#next().text
  }

  skipToDefinition(): void {
    if (this.at.text !== '') this.#index++
    while (this.at.text !== '' && !['definition', 'caveat', 'use', 'partial'].includes(this.at.text)) this.#index++
  }

  /** Every relationship may expire here, so that nothing has to be switched on for it. */
  use(): void {
    const feature = this.#tokens[this.#index + 1] ?? END
    if (feature.text !== 'expiration') throw new Fault(this.at, `"use ${feature.text}" has no translation`)
    this.#index += 2
  }

  caveat(): Caveat {
    this.#expect('caveat')
    const name = this.#name('caveat')
    const parameters: { name: string; type: string }[] = []
    this.#expect('(')
    while (this.at.text !== ')') {
      const parameter = this.#name('parameter')
      parameters.push({ name: parameter, type: this.#parameterType() })
      if (this.at.text !== ')') this.#expect(',')
    }
    this.#expect(')')
    return { name, parameters, expression: this.#expressionText() }
  }

  #parameterType(): string {
    const at = this.at
    const type = this.#name('type')
    if (type === 'bytes') throw new Fault(at, 'the type "bytes" has no translation')
    if (this.at.text !== '<') return type
    this.#expect('<')
    const inner = this.#parameterType()
    this.#expect('>')
    return `${type}<${inner}>`
  }

  /** Between braces. */
  #expressionText(): string {
    const open = this.at
    this.#expect('{')
    for (; !this.#is('}'); this.#index++) {
      if (this.#is('')) throw new Fault(open, 'the brace is never closed')
      if (this.#is('{')) throw new Fault(this.at, 'a map that is written out has no translation')
    }
    const end = this.#next()
    const parts = this.#text.slice(open.index + 1, end.index).match(TOKEN) ?? []
    return parts
      .map((part) => (SILENT.test(part) ? ' ' : part))
      .join('')
      .trim()
  }

  definition(): Definition {
    const first = this.at
    if (first.text !== 'definition')
      throw new Fault(first, `"${first.text}" has no translation; only definitions and caveats have`)
    this.#index++
    const name = this.#name('definition')
    const relations = new Map<string, readonly Allowed[]>()
    const permissions = new Map<string, Expression>()
    this.#expect('{')
    while (this.at.text !== '}') {
      const kind = this.#next()
      if (kind.text === ';') continue
      if (kind.text === 'relation') {
        const relation = this.#name('relation')
        this.#expect(':')
        relations.set(relation, this.#allowed())
      } else if (kind.text === 'permission') {
        const permission = this.#name('permission')
        this.#expect('=')
        permissions.set(permission, this.#expression(0))
      } else throw new Fault(kind, `"${kind.text}" has no translation; only relations and permissions have`)
    }
    this.#expect('}')
    return { name, relations, permissions }
  }

  #allowed(): readonly Allowed[] {
    const allowed: Allowed[] = []
    do {
      const type = this.#name('type')
      let relation: string | null = null
      if (this.at.text === ':') {
        this.#index++
        this.#expect('*')
        relation = '*'
      } else if (this.at.text === '#') {
        this.#index++
        relation = this.#subjectRelation()
      }
      allowed.push({ type, relation, caveat: this.#traits() })
    } while (this.at.text === '|' && this.#next() !== END)
    return allowed
  }

  /** `with late`, `with expiration` or `with late and expiration`: the name of the caveat. */
  #traits(): string | null {
    if (!this.#is('with')) return null
    let caveat: string | null = null
    do {
      this.#index++
      const at = this.at
      const trait = this.#name('caveat')
      if (trait === 'expiration') this.expires = true
      else if (caveat === null) caveat = trait
      else throw new Fault(at, 'a relation may name one caveat for a subject')
    } while (this.#is('and'))
    return caveat
  }

  /** `type#...` is `type`. */
  #subjectRelation(): string | null {
    if (this.at.text !== '.') return this.#name('relation')
    for (let dots = 0; dots < 3; dots++) this.#expect('.')
    return null
  }

  #expression(depth: number): Expression {
    if (depth > NESTING_MAX) throw new Fault(this.at, 'the parentheses are nested too deeply')
    const parts = [this.#operand(depth)]
    const sign = this.at
    const kind = OPERATORS[sign.text]
    if (kind === undefined) return parts[0] ?? { kind: 'name', name: '' }
    while (OPERATORS[this.at.text] !== undefined) {
      // Which binds more tightly is easily misread, and the other language wants parentheses anyway.
      if (this.at.text !== sign.text)
        throw new Fault(
          this.at,
          `"${sign.text}" and "${this.at.text}" stand side by side; put one of them in parentheses`,
        )
      this.#index++
      parts.push(this.#operand(depth))
    }
    if (kind !== 'but not') return { kind, parts }
    // From the left: (a - b) - c.
    return parts
      .slice(1)
      .reduce<Expression>((base, part) => ({ kind, parts: [base, part] }), parts[0] ?? parts[1] ?? NOTHING)
  }

  #operand(depth: number): Expression {
    if (this.at.text === '(') {
      this.#index++
      const inner = this.#expression(depth + 1)
      this.#expect(')')
      return inner
    }
    const start = this.at
    const name = this.#name('relation or permission')
    if (name === 'nil' || name === 'self') throw new Fault(start, `"${name}" has no translation`)
    if (this.at.text === '->') {
      this.#index++
      return { kind: 'arrow', relation: name, permission: this.#name('permission') }
    }
    if (this.at.text !== '.') return { kind: 'name', name }
    this.#index++
    const call = this.#name('function')
    if (call !== 'any') throw new Fault(start, `"${name}.${call}" has no translation; only "any" and "->" have`)
    this.#expect('(')
    const permission = this.#name('permission')
    this.#expect(')')
    return { kind: 'arrow', relation: name, permission }
  }
}

const NOTHING: Expression = { kind: 'name', name: '' }
