/** Reads a schema of SpiceDB into its definitions. Constructs without a faithful translation are noted as issues. */
import type { ParameterReference } from '../../engine/decide/conditions/parameters.ts'
import type { ValidationIssue } from '../../shared/domain/errors.ts'

export type Expression =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'arrow'; readonly relation: string; readonly permission: string }
  | {
      readonly kind: 'or' | 'and' | 'but not'
      readonly parts: readonly Expression[]
      readonly inParentheses?: true
    }
/** An allowed subject. `relation`: null for the object itself, `*` for everybody of the type. `caveat`: null for none. */
export type Allowed = { readonly type: string; readonly relation: string | null; readonly caveat: string | null }
/** `expression`: the text of the caveat, without comments. */
export type Caveat = {
  readonly name: string
  readonly parameters: readonly { readonly name: string; readonly type: ParameterReference }[]
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
  /** True: some relation has `with expiration`. */
  readonly expires: boolean
  /** Expressions with mixed operators, with the parentheses that SpiceDB assumes. */
  readonly readings: readonly string[]
  readonly issues: readonly ValidationIssue[]
}

type Token = { readonly text: string; readonly place: string; readonly index: number }
const TOKEN =
  /\s+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n]*|\/\*[\s\S]*?\*\/|->|[A-Za-z_][A-Za-z0-9_]*(?:\/[A-Za-z_][A-Za-z0-9_]*)*|[{}()|:#=+&.*,;-]|[\s\S]/g
const SILENT = /^(?:\s|\/\/|\/\*)/
const NAME = /^[A-Za-z_]/
const END: Token = { text: '', place: '', index: 0 }
/** Operators in SpiceDB's order of precedence: the weakest first. */
const OPERATORS = [
  { sign: '-', kind: 'but not' },
  { sign: '&', kind: 'and' },
  { sign: '+', kind: 'or' },
] as const
/** Parts of the language that need other files or a compiler. */
const COMPOSABLE = ['partial', 'import']
const NESTING_MAX = 50

class Fault extends Error {
  readonly issue: ValidationIssue
  /** True: after this error, nothing can be read correctly. */
  readonly isLast: boolean
  constructor({ place }: Token, message: string, isLast = false) {
    super(message)
    this.issue = { place, message }
    this.isLast = isLast
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
      if (err.isLast) break
      parser.skipToDefinition()
    }
  }
  return { definitions, caveats, expires: parser.expires, readings: parser.readings, issues }
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
  readonly readings: string[] = []

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

  /** Reads `use`, which needs no work: each relationship may expire here, and types are always checked. */
  use(): void {
    const feature = this.#tokens[this.#index + 1] ?? END
    if (COMPOSABLE.includes(feature.text))
      throw new Fault(this.at, `"use ${feature.text}": make one schema of it first, with "zed schema compile"`, true)
    if (!['expiration', 'typechecking', 'self'].includes(feature.text))
      throw new Fault(this.at, `"use ${feature.text}" has no translation`, true)
    this.#index += 2
  }

  caveat(): Caveat {
    this.#expect('caveat')
    const name = this.#name('caveat')
    const parameters: { name: string; type: ParameterReference }[] = []
    this.#expect('(')
    while (this.at.text !== ')') {
      const parameter = this.#name('parameter')
      parameters.push({ name: parameter, type: this.#parameterType() })
      if (this.at.text !== ')') this.#expect(',')
    }
    this.#expect(')')
    return { name, parameters, expression: this.#expressionText() }
  }

  #parameterType(): ParameterReference {
    const at = this.at
    const type = this.#name('type')
    if (type === 'bytes') throw new Fault(at, 'the type "bytes" has no translation')
    const type_name = `TYPE_NAME_${type.toUpperCase()}`
    if (this.at.text !== '<') return { type_name }
    this.#expect('<')
    const generic_types = [this.#parameterType()]
    this.#expect('>')
    return { type_name, generic_types }
  }

  /** The text between braces. */
  #expressionText(): string {
    const open = this.at
    this.#expect('{')
    for (let depth = 0; depth > 0 || !this.#is('}'); this.#index++) {
      if (this.#is('')) throw new Fault(open, 'the brace is never closed')
      depth += this.#is('{') ? 1 : this.#is('}') ? -1 : 0
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
    if (COMPOSABLE.includes(first.text))
      throw new Fault(first, `"${first.text}": make one schema of it first, with "zed schema compile"`, true)
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
        // `use typechecking` allows types after a permission, which change no answer.
        if (this.#is(':')) {
          do {
            this.#index++
            this.#name('type')
          } while (this.#is('|'))
        }
        this.#expect('=')
        const expression = this.#expression({ depth: 0, level: 0 })
        if (isMixed(expression))
          this.readings.push(`permission "${permission}" of "${name}" is read as ${written(expression)}`)
        permissions.set(permission, expression)
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

  /** Reads `with late`, `with expiration` or `with late and expiration`. Returns the name of the caveat. */
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

  /** Reads the relation after `#`; `type#...` means `type`. */
  #subjectRelation(): string | null {
    if (this.at.text !== '.') return this.#name('relation')
    for (let dots = 0; dots < 3; dots++) this.#expect('.')
    return null
  }

  #expression(at: { readonly depth: number; readonly level: number }): Expression {
    if (at.depth > NESTING_MAX) throw new Fault(this.at, 'the parentheses are nested too deeply')
    const operator = OPERATORS[at.level]
    if (operator === undefined) return this.#operand(at.depth)
    const inner = { ...at, level: at.level + 1 }
    const parts = [this.#expression(inner)]
    while (this.at.text === operator.sign) {
      this.#index++
      parts.push(this.#expression(inner))
    }
    const [first = NOTHING, ...others] = parts
    if (others.length === 0) return first
    if (operator.kind !== 'but not') return { kind: operator.kind, parts }
    // Exclusions are read from the left: (a - b) - c.
    return others.reduce<Expression>((base, part) => ({ kind: 'but not', parts: [base, part] }), first)
  }

  #operand(depth: number): Expression {
    if (this.at.text === '(') {
      this.#index++
      const inner = this.#expression({ depth: depth + 1, level: 0 })
      this.#expect(')')
      // Keeps the parentheses of the text.
      return 'parts' in inner ? { ...inner, inParentheses: true } : inner
    }
    const start = this.at
    const name = this.#name('relation or permission')
    if (name === 'nil') return NOTHING
    const isFunction = this.at.text === '.'
    if (this.at.text !== '->' && !isFunction) return { kind: 'name', name }
    this.#index++
    const call = isFunction ? this.#name('function') : 'any'
    if (call !== 'any') throw new Fault(start, `"${name}.${call}" has no translation; only "any" and "->" have`)
    if (isFunction) this.#expect('(')
    const permission = this.#name('permission')
    if (isFunction) this.#expect(')')
    if (this.at.text === '->' || this.at.text === '.')
      throw new Fault(
        this.at,
        'an arrow behind an arrow has no translation; give the first one a permission of its own',
      )
    return { kind: 'arrow', relation: name, permission }
  }
}

const NOTHING: Expression = { kind: 'nothing' }

/** True if two different operators stand side by side without parentheses. */
function isMixed(expression: Expression): boolean {
  if (!('parts' in expression)) return false
  return expression.parts.some(
    (part) => isMixed(part) || ('parts' in part && part.inParentheses !== true && part.kind !== expression.kind),
  )
}

/** The expression in a schema's form, with all parentheses. */
function written(expression: Expression): string {
  if (expression.kind === 'nothing') return 'nil'
  if (expression.kind === 'name') return expression.name
  if (expression.kind === 'arrow') return `${expression.relation}->${expression.permission}`
  const sign = OPERATORS.find(({ kind }) => kind === expression.kind)?.sign
  return expression.parts.map((part) => ('parts' in part ? `(${written(part)})` : written(part))).join(` ${sign} `)
}
