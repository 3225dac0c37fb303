/** Reads YAML, JSON and TOML into trees. What cannot be read as a whole is an error. */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml'
import { yamlIssues } from '../../../pdp/shared/base/yaml.ts'
import { isJsonObject } from '../../../pdp/shared/domain/json.ts'
import { UnreadableError } from './source.ts'
import { type Entry, folded, type Scalar, type Tree } from './tree.ts'

const NODES_MAX = 200_000

/** Each document that is not empty. Throws UnreadableError. `firstLine`: of a text that lies inside another file. */
export function readYaml(source: string, file: string, firstLine = 1): readonly Tree[] {
  const lines = new LineCounter()
  const documents = parseAllDocuments(source, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  if (!Array.isArray(documents)) return []
  let count = 0
  return documents.flatMap((document) => {
    const lineOf = (offset: number): number => lines.linePos(offset).line + firstLine - 1
    const [problem] = yamlIssues(document, lines)
    if (problem !== undefined)
      throw new UnreadableError(`${file}:${lineOf(problem.offset)}: this is neither YAML nor JSON: ${problem.message}`)
    const read = (given: Node | null, above: readonly Node[]): Tree => {
      count += 1
      if (count > NODES_MAX) throw new UnreadableError(`${file}: the file has more than ${NODES_MAX} values`)
      const line = lineOf(given?.range?.[0] ?? 0)
      const node = isAlias(given) ? (given.resolve(document) ?? null) : given
      if (node !== null && above.includes(node))
        throw new UnreadableError(`${file}:${line}: the anchor contains itself`)
      const inside = node === null ? above : [...above, node]
      if (isMap<Node, Node | null>(node)) {
        const entries = node.items.map(({ key, value }): Entry => {
          const text = isScalar(key) ? String(key.value) : null
          if (text === null) throw new UnreadableError(`${file}:${line}: the map has a key that is not a string`)
          return { key: text, file, line: lineOf(key.range?.[0] ?? 0), value: read(value, inside) }
        })
        return { kind: 'map', file, line, entries: merged(entries) }
      }
      if (isSeq<Node | null>(node))
        return { kind: 'list', file, line, items: node.items.map((item) => read(item, inside)) }
      const value: unknown = isScalar(node) ? node.value : null
      return { kind: 'scalar', file, line, value: scalar(value) }
    }
    if (document.contents === null) return []
    const tree = read(document.contents, [])
    refuseDoubled(tree, [])
    return [tree]
  })
}

/** Kubernetes, and what reads these maps of its objects, takes keys as they are written. */
const VERBATIM = /^(data|(.+ )?metadata (labels|annotations))$/

/** `path`: the keys from the object of Kubernetes that the tree is in; empty outside one. */
function refuseDoubled(tree: Tree, path: readonly string[]): void {
  if (tree.kind === 'list') for (const item of tree.items) refuseDoubled(item, path)
  if (tree.kind !== 'map') return
  const isObject = ['apiVersion', 'kind'].every((name) => tree.entries.some(({ key }) => key === name))
  const inObject = isObject || path.length > 0
  if (isObject || !VERBATIM.test(path.slice(1).join(' '))) distinct(tree.entries)
  const above = isObject ? ['object'] : path
  for (const { key, value } of tree.entries) refuseDoubled(value, inObject ? [...above, key] : [])
}

/** Gateways take keys of another case, or without underscores, for the same key, and differ in which of the two counts. */
function distinct(entries: readonly Entry[]): readonly Entry[] {
  const known = new Map<string, Entry>()
  for (const entry of entries) {
    const { key, file, line } = entry
    const other = known.get(folded(key))
    if (other !== undefined)
      throw new UnreadableError(
        `${file}:${line}: ${key} and ${other.key} in one map are one key to some readers: keep one`,
      )
    known.set(folded(key), entry)
  }
  return entries
}

/** What `<<` names, below what the map says itself. */
function merged(entries: readonly Entry[]): readonly Entry[] {
  const own = entries.filter(({ key }) => key !== '<<')
  if (own.length === entries.length) return entries
  const known = new Set(own.map(({ key }) => key))
  const others = entries
    .filter(({ key }) => key === '<<')
    .flatMap(({ value }) => (value.kind === 'list' ? value.items : [value]))
    .flatMap((tree) => (tree.kind === 'map' ? tree.entries : []))
  return [...own, ...others.filter(({ key }) => !known.has(key) && known.add(key).size > 0)]
}

const scalar = (value: unknown): Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null
    ? value
    : String(value)

type Draft = { readonly line: number; readonly members: Map<string, { line: number; value: Draft | Draft[] | Scalar }> }

/** Throws UnreadableError. */
export function readToml(source: string, file: string): Tree {
  try {
    return tomlTree(source, file)
  } catch (err) {
    throw err instanceof RangeError ? new UnreadableError(`${file}: the file is nested too deeply`) : err
  }
}

function tomlTree(source: string, file: string): Tree {
  const program = parsedToml(source, file)
  const [top] = program.body
  const root: Draft = { line: 1, members: new Map() }
  for (const item of top.body) {
    if (item.type === 'TOMLKeyValue') put(root, item)
    else {
      const table = tableAt(root, item.resolvedKey, item.loc.start.line)
      for (const pair of item.body) put(table, pair)
    }
  }
  return treeOf(root, file)
}

function parsedToml(source: string, file: string): AST.TOMLProgram {
  try {
    return parseTOML(source)
  } catch (err) {
    if (!(err instanceof ParseError)) throw err
    throw new UnreadableError(`${file}:${err.lineNumber}: this is not TOML: ${err.message}`)
  }
}

/** The parser gives an element of `[[a.b]]` its index as the last part of the key. */
function tableAt(root: Draft, path: readonly (string | number)[], line: number): Draft {
  let table = root
  for (const [i, part] of path.entries()) {
    if (typeof part === 'number') continue
    const index = path[i + 1]
    const member = table.members.get(part)
    if (typeof index === 'number') {
      const list = Array.isArray(member?.value) ? member.value : []
      const element = list[index] ?? { line, members: new Map() }
      list[index] = element
      table.members.set(part, { line: member?.line ?? line, value: list })
      table = element
      continue
    }
    const known = member?.value
    const next: Draft = isDraft(known) ? known : { line, members: new Map() }
    table.members.set(part, { line: member?.line ?? line, value: next })
    table = next
  }
  return table
}

const isDraft = (value: unknown): value is Draft => isJsonObject(value) && 'members' in value

function put(table: Draft, { key, value }: AST.TOMLKeyValue): void {
  const names = key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value))
  const last = names.pop() ?? ''
  const { line } = key.loc.start
  tableAt(table, names, line).members.set(last, { line, value: contentOf(value) })
}

function contentOf(node: AST.TOMLContentNode): Draft | Draft[] | Scalar {
  if (node.type === 'TOMLValue') return scalar(node.value instanceof Date ? node.value.toISOString() : node.value)
  const draft: Draft = { line: node.loc.start.line, members: new Map() }
  if (node.type === 'TOMLInlineTable') {
    for (const pair of node.body) put(draft, pair)
    return draft
  }
  return node.elements.map((element) => {
    const value = contentOf(element)
    return isDraft(value) ? value : { line: element.loc.start.line, members: new Map([['', { line: 0, value }]]) }
  })
}

/** A list element that is no table has its value under an empty name. */
function treeOf(draft: Draft, file: string): Tree {
  const { line } = draft
  const bare = draft.members.get('')
  if (bare !== undefined && draft.members.size === 1 && bare.line === 0) return valueTree(bare.value, { file, line })
  const entries = [...draft.members].map(([key, member]) => ({
    ...{ key, file, line: member.line },
    value: valueTree(member.value, { file, line: member.line }),
  }))
  return { kind: 'map', file, line, entries: distinct(entries) }
}

function valueTree(value: Draft | Draft[] | Scalar, place: { file: string; line: number }): Tree {
  if (Array.isArray(value)) return { kind: 'list', ...place, items: value.map((item) => treeOf(item, place.file)) }
  return isDraft(value) ? treeOf(value, place.file) : { kind: 'scalar', ...place, value }
}
