/** Reads a YAML document into typed values, and collects every error with its line and column. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Scalar } from 'yaml'
import { nearestName } from '../../../pdp/shared/base/nearest.ts'
import { parseDocument, yamlIssues } from '../../../pdp/shared/base/yaml.ts'
import { type Bounds, type Member, NAMES_MAX } from './schema.ts'

export type FileIssue = { readonly line: number; readonly column: number; readonly message: string }
export type Entry = { readonly key: string; readonly keyNode: Node | null; readonly value: Node | null }

/** Never throws. Invalid YAML is reported like any other error, and each method reports what it cannot read. */
export class YamlReader {
  readonly issues: FileIssue[] = []
  readonly root: Node | null
  /** True: the text is not valid YAML, so its content would be misread. */
  readonly isBroken: boolean
  readonly #lines = new LineCounter()
  readonly #document: Document.Parsed

  constructor(source: string) {
    this.#document = parseDocument(source, this.#lines)
    for (const { offset, message } of yamlIssues(this.#document, this.#lines)) this.#note(offset, message)
    this.isBroken = this.#document.errors.length > 0
    this.root = this.#document.contents
  }

  /** Reports an error at the node; null: at the start of the file. */
  report(node: Node | null, message: string): void {
    this.#note(node?.range?.[0] ?? 0, message)
  }

  lineOf(node: Node | null): number {
    return this.#lines.linePos(node?.range?.[0] ?? 0).line
  }

  /** The node itself, or the node to which an alias refers. */
  resolve(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.#document) ?? null) : node
  }

  /** Entries of a map in the order of the file. Of a repeated key, reported already, only the first entry. Null: the node is no map. */
  entries(given: Node | null, what: string): readonly Entry[] | null {
    const node = this.resolve(given)
    if (!isMap<Node, Node | null>(node)) {
      const isEmpty = node === null || (isScalar(node) && node.value === null)
      this.report(given, isEmpty ? `${what} is empty: it must be a map of keys and values` : `${what} must be a map`)
      return null
    }
    const found = new Map<string, Entry>()
    for (const { key, value } of node.items) {
      if (!isScalar(key) || typeof key.value !== 'string') this.report(key, `${what} has a key that is not a string`)
      else if (!found.has(key.value)) found.set(key.value, { key: key.value, keyNode: key, value })
    }
    return [...found.values()]
  }

  /** The values by name; null for an absent one. Reports unknown and missing names. Null: the node is no map. */
  members<Name extends string>(
    node: Node | null,
    what: string,
    keys: { readonly [key in Name]: Member },
  ): { readonly [key in Name]: Node | null } | null {
    const found = this.entries(node, what)
    if (found === null) return null
    const known: { [key: string]: Node | null } = {}
    for (const name of Object.keys(keys)) known[name] = null
    const missing = new Set(Object.keys(keys).filter((name) => !found.some(({ key }) => key === name)))
    for (const { key, keyNode, value } of found) {
      const name = Object.hasOwn(keys, key) ? key : nearestName(key, missing)
      if (name !== key) this.report(keyNode, unknownKey(what, key, name ?? knownAs(key, Object.keys(keys))))
      else if (value === null || isNull(value)) this.report(keyNode, `${key} must not be empty`)
      // Goes on with a misspelt key as if it were right, so that one typo is reported once only.
      if (name === null) continue
      missing.delete(name)
      if (value !== null && !isNull(value)) known[name] = value
    }
    for (const [name, { need, form }] of Object.entries<Member>(keys)) {
      const value = 'const' in form ? `: ${form.const}` : ''
      if (need === 'required' && missing.has(name)) this.report(node, `${what} needs ${name}${value}`)
    }
    // Every name of `keys` was set above, at least to null.
    return known as { [key in Name]: Node | null }
  }

  items(given: Node | null, what: string): readonly (Node | null)[] | null {
    const node = this.resolve(given)
    if (isSeq<Node | null>(node)) return node.items
    this.report(given, `${what} must be a list`)
    return null
  }

  /** The items that `read` accepts. An empty list is an error. Null: the node is null. */
  list<T>(node: Node | null, what: string, read: (reader: YamlReader, item: Node | null) => T | null): T[] | null {
    if (node === null) return null
    const items = this.items(node, what)
    if (items === null) return []
    if (items.length === 0) this.report(node, `${what} must have at least one item`)
    return items.map((item) => read(this, item)).filter((item): item is Awaited<T> & T => item !== null)
  }

  /** A text or a list of different texts. Null: no text is valid. */
  texts(node: Node | null, what: string): readonly [string, ...string[]] | null {
    const given = this.resolve(node)
    const items = isSeq(given) ? this.list(node, what, (_, item) => this.text(item, what)) : [this.text(node, what)]
    if (items !== null && items.length > NAMES_MAX) this.report(node, `${what} has more than ${NAMES_MAX} items`)
    const [first, ...others] = new Set(items?.filter((item) => item !== null))
    return first === undefined ? null : [first, ...others]
  }

  text(node: Node | null, what: string): string | null {
    return this.#scalar(node, isText, `${what} must be a string`)
  }

  boolean(node: Node | null, what: string): boolean | null {
    return this.#scalar(node, isBoolean, `${what} must be true or false`)
  }

  choice<Option extends string>(node: Node | null, what: string, options: readonly Option[]): Option | null {
    const text = this.text(node, what)
    const chosen = options.find((option) => option === text)
    if (text !== null && chosen === undefined) this.report(node, `${what} must be ${alternatives(options)}`)
    return chosen ?? null
  }

  /** A whole number within the bounds. */
  count(node: Node | null, what: string, { min, max }: Bounds): number | null {
    const within = (value: unknown): value is number =>
      Number.isInteger(value) && Number(value) >= min && Number(value) <= max
    return this.#scalar(node, within, `${what} must be a whole number from ${min} to ${max}`)
  }

  #scalar<T>(given: Node | null, accept: (value: unknown) => value is T, message: string): T | null {
    const node = this.resolve(given)
    if (isScalar(node) && accept(node.value)) return node.value
    this.report(given, message)
    return null
  }

  #note(offset: number, message: string): void {
    const { line, col } = this.#lines.linePos(offset)
    this.issues.push({ line: Math.max(1, line), column: Math.max(1, col), message })
  }
}

const alternatives = (options: readonly string[]): string =>
  options.length > 2 ? `one of ${options.join(', ')}` : options.join(' or ')

const isText = (value: unknown): value is string => typeof value === 'string'
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isNull = (node: Node): node is Scalar<null> => isScalar(node) && node.value === null

const REWRITES = Object.fromEntries(
  ['rewrite', 'rewrite_target', 'prefix_rewrite', 'regex_rewrite', 'base_path'].map((key) => [
    key,
    ['add_path', 'upstream'],
  ]),
)

/** Our names for members of other proxies. */
const ELSEWHERE: { readonly [key: string]: string | readonly string[] } = {
  headers: 'identity_headers',
  set_headers: 'identity_headers',
  set_request_headers: 'identity_headers',
  timeout: 'upstream_headers_ms',
  to: 'upstream',
  service: 'upstream',
  backend: 'upstream',
  strip_path: 'upstream',
  add_path: 'upstream',
  assertion_audience: 'upstream',
  strip_prefix: ['strip_path', 'upstream'],
  ...REWRITES,
  audiences: 'audience',
  allowed_origins: 'origins',
}

function knownAs(key: string, names: readonly string[]): string | null {
  const ours = Object.hasOwn(ELSEWHERE, key) ? [ELSEWHERE[key]].flat() : []
  return ours.find((name) => name !== undefined && names.includes(name)) ?? nearestName(key, names)
}

const ONLY_ALLOWS =
  'checks only allow: say who may, by a relation with "but not" in its model or by comparisons in any, and give a narrower path or another method a route of its own'
const COMPARE = 'a check compares claims: {equals: {claims.groups: admin}}'
const AUTHORITY = 'ca_file names the authority of its certificate'

/** The reason for which a member does not exist, for names that people look for. */
const ABSENT: { readonly [key: string]: string } = {
  ...Object.fromEntries(
    ['not', 'none', 'nor', 'not_equals', 'deny', 'forbid', 'except', 'unless'].map((key) => [key, ONLY_ALLOWS]),
  ),
  ...Object.fromEntries(['tls_skip_verify', 'insecure_skip_verify', 'verify'].map((key) => [key, AUTHORITY])),
  ...Object.fromEntries(['and', 'allOf', 'all_of'].map((key) => [key, 'did you mean all?'])),
  ...Object.fromEntries(['or', 'anyOf', 'any_of', 'oneOf'].map((key) => [key, 'did you mean any?'])),
  ...Object.fromEntries(
    ['claims', 'groups', 'roles', 'role', 'allowed_groups', 'emails', 'email'].map((key) => [key, COMPARE]),
  ),
  scopes: 'a check is scope NAME, or {all: [scope a, scope b]}',
  ...Object.fromEntries(
    ['ip', 'ips', 'networks', 'allow_ips', 'ip_allow'].map((key) => [
      key,
      'a check is {equals: {client.address: 10.0.0.0/8}}',
    ]),
  ),
  ...Object.fromEntries(
    ['allow_missing', 'allow_anonymous'].map((key) => [key, 'did you mean public: with_identity?']),
  ),
  ...Object.fromEntries(
    ['rate_limit', 'retries', 'redirect', 'error_pages', 'response_headers', 'respond', 'csrf'].map((key) => [
      key,
      'that is of a gateway in front, or of the service',
    ]),
  ),
  in: 'any has an equals for each value',
  contains: 'equals holds for a list that has the value',
  matches: 'there are no expressions: equals, starts_with and ends_with compare claims',
  regex: 'there are no expressions: equals, starts_with and ends_with compare claims',
  methods: 'the method stands before the path, as in POST /x',
  allow_methods: 'pages may use the methods that have routes',
}

export const whyAbsent = (key: string): string | null => (Object.hasOwn(ABSENT, key) ? (ABSENT[key] ?? null) : null)

function unknownKey(what: string, key: string, near: string | null): string {
  const why = whyAbsent(key) ?? (near === null ? null : `did you mean ${near}?`)
  return `${what} has the unknown key ${JSON.stringify(key)}${why === null ? '' : `; ${why}`}`
}
