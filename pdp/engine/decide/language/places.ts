/** Finds the position of a part of a model in its text, as `line:column` from 1. Searches only when there is an issue. */
import { createRequire } from 'node:module'
import type Yaml from 'yaml'
import { isJsonModel } from './document.ts'

/** A part of a model: a condition, or a type and perhaps its relation, and the word in it that an issue is about. */
export type Spot = {
  readonly type?: string
  readonly relation?: string
  readonly condition?: string
  readonly word?: string
}
export type PlaceOf = (spot: Spot) => string

const require = createRequire(import.meta.url)
/** Loads the YAML library at the first issue in a JSON model, since most processes never need it. */
const loadYaml = (): typeof Yaml => require('yaml')

export const START = '1:1'
/** Stands for the line with the schema version, where other spots have a word to search for. */
const SCHEMA = 'schema'

export function placesIn(text: string): PlaceOf {
  let known: PlaceOf | null = null
  return (spot) => {
    known ??= isJsonModel(text) ? inJson(text) : inLanguage(text)
    return known(spot)
  }
}

const BEGINS = /^(\s*)(?:(?:extend\s+)?(type)|(define)|(condition)|(schema))\s+([^\s:(#]+)/

/** Places in the language: a declaration reaches to the next one. Of two with the same name, the first counts, except for types. */
function inLanguage(text: string): PlaceOf {
  const lines = text.split('\n')
  const starts = new Map<string, number>()
  const begins = new Set<number>()
  let type = ''
  for (const [at, line] of lines.entries()) {
    const [, , isType, isRelation, isCondition, isSchema, name = ''] = BEGINS.exec(line) ?? []
    if (name === '') continue
    begins.add(at)
    if (isType !== undefined) type = name
    const [of = name] = [isRelation && `${type}#${name}`, isCondition && `with ${name}`, isSchema && SCHEMA].filter(
      (key) => key !== undefined,
    )
    if (isType !== undefined || !starts.has(of)) starts.set(of, at)
  }
  return ({ type: named, relation, condition, word }) => {
    if (named === undefined && condition === undefined && word !== SCHEMA) return START
    const key = condition !== undefined ? `with ${condition}` : relation === undefined ? named : `${named}#${relation}`
    const start = starts.get(key ?? SCHEMA)
    if (start === undefined) return START
    const [first = ''] = lines.slice(start, start + 1)
    const indent = first.length - first.trimStart().length
    if (word === undefined || relation === undefined) return `${start + 1}:${indent + 1}`
    const pattern = new RegExp(`(?<![\\w-])${word.replace(/[^\w]/g, '\\$&')}(?![\\w-])`)
    for (let at = start; at < lines.length && (at === start || !begins.has(at)); at++) {
      const from = at === start ? first.indexOf(':') + 1 : 0
      const found = (lines[at] ?? '').slice(from).search(pattern)
      if (found >= 0) return `${at + 1}:${from + found + 1}`
    }
    return `${start + 1}:${indent + 1}`
  }
}

function inJson(text: string): PlaceOf {
  const { isMap, isScalar, isSeq, LineCounter, parseDocument } = loadYaml()
  const textOf = (node: unknown): unknown => (isScalar(node) ? node.value : null)
  const memberOf = (node: unknown, name: string): { readonly key: unknown; readonly value: unknown } | undefined =>
    isMap(node) ? node.items.find(({ key }) => textOf(key) === name) : undefined
  const counter = new LineCounter()
  const root = parseDocument(text, { lineCounter: counter, uniqueKeys: false }).contents
  const at = (node: unknown): string => {
    const { line, col } = counter.linePos((node as Yaml.Node | null)?.range?.[0] ?? 0)
    return `${Math.max(1, line)}:${Math.max(1, col)}`
  }
  const definitions = memberOf(root, 'type_definitions')?.value
  const types = isSeq(definitions) ? definitions.items : []
  return ({ type, relation, condition, word }) => {
    if (condition !== undefined) return at(memberOf(memberOf(root, 'conditions')?.value, condition)?.key ?? root)
    const definition = types.findLast((one) => textOf(memberOf(one, 'type')?.value) === type)
    if (definition === undefined) return at(word === SCHEMA ? (memberOf(root, 'schema_version')?.key ?? root) : root)
    if (relation === undefined) return at(memberOf(definition, 'type')?.key)
    return at(memberOf(memberOf(definition, 'relations')?.value, relation)?.key ?? definition)
  }
}
