/** Parses filters and paths of SCIM (RFC 7644 sections 3.4.2.2 and 3.5.2) into a tree. */
import { textIssue } from '../../../shared/domain/json.ts'
import { ScimError, type ScimType } from './errors.ts'

export const FILTER_CHARACTERS_MAX = 2_000
const DEPTH_MAX = 20
const TERMS_MAX = 100

export const COMPARISONS = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'lt', 'ge', 'le'] as const
export type Comparison = (typeof COMPARISONS)[number]
export type FilterValue = string | number | boolean | null
/** Names in lower case: SCIM compares them without case. `schema`: the URN that stood before the attribute. */
export type AttributePath = { readonly schema: string | null; readonly attribute: string; readonly sub: string | null }
export type Filter =
  | { readonly kind: 'present'; readonly path: AttributePath }
  | { readonly kind: 'compare'; readonly path: AttributePath; readonly op: Comparison; readonly value: FilterValue }
  | { readonly kind: 'and' | 'or'; readonly left: Filter; readonly right: Filter }
  | { readonly kind: 'not'; readonly of: Filter }
  /** True if some value of the attribute satisfies the whole filter. */
  | { readonly kind: 'some'; readonly path: AttributePath; readonly of: Filter }
/** `filter` selects values of the attribute; null: all of them. */
export type PatchPath = { readonly path: AttributePath; readonly filter: Filter | null }

type Token = { readonly kind: 'word' | 'text' | 'mark'; readonly text: string; readonly at: number }

const TOKEN = /[ \t]*(?:([()[\]])|("(?:[^"\\]|\\.)*")|([^ \t()[\]"]+))/y
// Names of RFC 7644 figure 1, with the URN that may stand before an attribute.
const NAME = '[A-Za-z$][A-Za-z0-9_-]*'
const PATH = new RegExp(`^(?:(urn:[A-Za-z0-9:._-]+):)?(${NAME})(?:\\.(${NAME}))?$`, 'i')
const SUB = new RegExp(`^\\.(${NAME})$`)
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const WORDS: ReadonlyMap<string, FilterValue> = new Map<string, FilterValue>([
  ['true', true],
  ['false', false],
  ['null', null],
])

/** Parses a filter. Throws ScimError `invalidFilter`. */
export function parseFilter(text: string): Filter {
  const reader = new Reader(text, 'invalidFilter')
  const filter = reader.disjunction(0)
  reader.end()
  return filter
}

/** Parses `attribute`, `attribute.sub`, `attribute[filter]` or `attribute[filter].sub`. Throws ScimError `invalidPath`. */
export function parsePatchPath(text: string): PatchPath {
  const reader = new Reader(text, 'invalidPath')
  const found = reader.patchPath()
  reader.end()
  return found
}

/** How many comparisons a filter has: each is made for every value. */
export function termsIn(filter: Filter): number {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return termsIn(filter.left) + termsIn(filter.right)
    case 'not':
    case 'some':
      return termsIn(filter.of)
    default:
      return 1
  }
}

/** Parses the path of an attribute. Throws ScimError. */
export function parseAttributePath(text: string, type: ScimType): AttributePath {
  const [, schema = null, attribute, sub = null] = PATH.exec(text) ?? []
  if (attribute === undefined) throw new ScimError(type, `${quoted(text)} is not the path of an attribute`)
  return {
    schema: schema?.toLowerCase() ?? null,
    attribute: attribute.toLowerCase(),
    sub: sub?.toLowerCase() ?? null,
  }
}

class Reader {
  readonly #tokens: readonly Token[]
  readonly #type: ScimType
  #next = 0
  #terms = 0

  constructor(text: string, type: ScimType) {
    this.#type = type
    if (text.length > FILTER_CHARACTERS_MAX) throw this.#refusal(`is longer than ${FILTER_CHARACTERS_MAX} characters`)
    this.#tokens = this.#split(text)
  }

  disjunction(depth: number): Filter {
    let left = this.#conjunction(depth)
    while (this.#take('or')) left = { kind: 'or', left, right: this.#conjunction(depth) }
    return left
  }

  patchPath(): PatchPath {
    const path = this.#path()
    if (!this.#take('[')) return { path, filter: null }
    if (path.sub !== null) throw this.#refusal('has a filter after a sub-attribute')
    const filter = this.disjunction(1)
    this.#require(']')
    return { path: { ...path, sub: this.#trailingSub() }, filter }
  }

  end(): void {
    const left = this.#tokens[this.#next]
    if (left !== undefined) throw this.#refusal(`has ${quoted(left.text)} where it should end`)
  }

  /** `and` binds more tightly than `or`. */
  #conjunction(depth: number): Filter {
    let left = this.#term(depth)
    while (this.#take('and')) left = { kind: 'and', left, right: this.#term(depth) }
    return left
  }

  #term(depth: number): Filter {
    if (depth >= DEPTH_MAX) throw this.#refusal(`is nested deeper than ${DEPTH_MAX} levels`)
    this.#terms += 1
    if (this.#terms > TERMS_MAX) throw this.#refusal(`has more than ${TERMS_MAX} terms`)
    const negated = this.#peek('not') && this.#tokens[this.#next + 1]?.text === '('
    if (negated) this.#next += 1
    if (this.#take('(')) {
      const inner = this.disjunction(depth + 1)
      this.#require(')')
      return negated ? { kind: 'not', of: inner } : inner
    }
    return this.#expression(depth)
  }

  #expression(depth: number): Filter {
    const path = this.#path()
    if (this.#take('[')) {
      if (path.sub !== null) throw this.#refusal('has a filter after a sub-attribute')
      const of = this.disjunction(depth + 1)
      this.#require(']')
      return this.#ofSome({ kind: 'some', path, of })
    }
    return this.#comparison(path)
  }

  /** Reads `emails[type eq "work"].value eq "x"`, which some clients send: it compares a sub-attribute of the values that were selected. */
  #ofSome(some: Filter & { kind: 'some' }): Filter {
    const sub = this.#trailingSub()
    if (sub === null) return some
    const right = this.#comparison({ schema: null, attribute: sub, sub: null })
    return { ...some, of: { kind: 'and', left: some.of, right } }
  }

  #comparison(path: AttributePath): Filter {
    const word = this.#word('an operator').toLowerCase()
    if (word === 'pr') return { kind: 'present', path }
    const op = COMPARISONS.find((known) => known === word)
    if (op === undefined) throw this.#refusal(`has ${quoted(word)} instead of an operator`)
    return { kind: 'compare', path, op, value: this.#value() }
  }

  #trailingSub(): string | null {
    const [, sub] = SUB.exec(this.#tokens[this.#next]?.text ?? '') ?? []
    if (sub === undefined) return null
    this.#next += 1
    return sub.toLowerCase()
  }

  #path(): AttributePath {
    return parseAttributePath(this.#word('an attribute'), this.#type)
  }

  #value(): FilterValue {
    const token = this.#tokens[this.#next++]
    if (token?.kind === 'text') return this.#string(token.text)
    if (token?.kind === 'word') {
      const word = WORDS.get(token.text.toLowerCase())
      if (word !== undefined) return word
      if (NUMBER.test(token.text)) return Number(token.text)
    }
    throw this.#refusal(`has ${quoted(token?.text ?? 'its end')} instead of a value; a text needs double quotes`)
  }

  #string(text: string): string {
    let value: string
    try {
      value = JSON.parse(text)
    } catch {
      throw this.#refusal(`has ${quoted(text)}, which is not a JSON string`)
    }
    // Refused, since such a value cannot be stored and so cannot match.
    if (textIssue(value) !== null) throw this.#refusal(`has ${quoted(text)}, in which a character cannot be`)
    return value
  }

  #word(what: string): string {
    const token = this.#tokens[this.#next++]
    if (token?.kind === 'word') return token.text
    throw this.#refusal(`has ${quoted(token?.text ?? 'its end')} instead of ${what}`)
  }

  #peek(word: string): boolean {
    const token = this.#tokens[this.#next]
    return token !== undefined && token.kind !== 'text' && token.text.toLowerCase() === word
  }

  #take(word: string): boolean {
    if (!this.#peek(word)) return false
    this.#next += 1
    return true
  }

  #require(mark: string): void {
    if (!this.#take(mark)) throw this.#refusal(`lacks a ${mark}`)
  }

  #split(given: string): readonly Token[] {
    const text = given.replace(/[ \t]+$/, '')
    const tokens: Token[] = []
    const end = text.length
    TOKEN.lastIndex = 0
    let at = 0
    while (at < end) {
      TOKEN.lastIndex = at
      const found = TOKEN.exec(text)
      if (found === null) throw this.#refusal(`cannot be read from character ${at + 1}`)
      const [all, mark, quoted, word = ''] = found
      if (mark !== undefined) tokens.push({ kind: 'mark', text: mark, at })
      else if (quoted !== undefined) tokens.push({ kind: 'text', text: quoted, at })
      else tokens.push({ kind: 'word', text: word, at })
      at += all.length
    }
    return tokens
  }

  #refusal(message: string): ScimError {
    return new ScimError(this.#type, `the ${this.#type === 'invalidPath' ? 'path' : 'filter'} ${message}`)
  }
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 80))
