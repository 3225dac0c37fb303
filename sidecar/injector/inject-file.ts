/** `inject FILE`: changes the manifests of a file as the injector would, so that the result can be reviewed in Git. */
import { parseAllDocuments, stringify } from 'yaml'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import type { InjectorConfig } from './pod/config.ts'
import { inject } from './pod/inject.ts'
import type { Injection, Mode } from './pod/injection.ts'
import { isObject, type Json, type JsonObject, listAt, objectAt } from './pod/json.ts'
import { applyPatch } from './pod/patch.ts'
import { templatePath } from './pod/templates.ts'

const DEPTH_MAX = 20

/** Adds sidecars to objects. Throws ConfigError for a text that is not YAML of objects, ShapeError for one that Kubernetes refuses. */
export function injectFile(
  text: string,
  options: { config: InjectorConfig; mode: Mode },
): {
  /** All documents of the file, with the sidecars that they ask for. */
  readonly yaml: string
  /** One line per object: `Kind/name: what was done`. */
  readonly lines: readonly string[]
  readonly deniedCount: number
} {
  const lines: string[] = []
  let deniedCount = 0
  const documents = parseObjects(text).map((document) => {
    const path = templatePath(document)
    if (path === undefined) {
      if (hasContainers(document))
        lines.push(`${nameOf(document)}: left unchanged: inject does not know how ${document.apiVersion} makes Pods`)
      return document
    }
    const template = path.reduce((parent, part) => objectAt(parent[part], part), document)
    const injection = inject(template, options)
    lines.push(...describe(nameOf(document), injection))
    if (injection.verdict === 'deny') deniedCount += 1
    if (injection.verdict !== 'inject') return document
    return replaceAt(document, path, applyPatch(template, injection.operations))
  })
  return { yaml: documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n'), lines, deniedCount }
}

function nameOf({ kind, metadata }: JsonObject): string {
  const { name, generateName } = objectAt(metadata, 'metadata')
  return `${kind}/${name ?? generateName ?? ''}`
}

/** True if some part of the value looks like a Pod. */
const hasContainers = (value: Json | undefined, depth = 0): boolean =>
  depth <= DEPTH_MAX &&
  (Array.isArray(value)
    ? value.some((item) => hasContainers(item, depth + 1))
    : isObject(value) &&
      (Array.isArray(value.containers) ||
        Array.isArray(value.steps) ||
        (isObject(value.container) && typeof value.container.image === 'string') ||
        Object.values(value).some((item) => hasContainers(item, depth + 1))))

function parseObjects(text: string): readonly JsonObject[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document) => {
    const [error] = document.errors
    if (error !== undefined) throw new ConfigError([error.message])
    const value: unknown = document.toJS()
    if (value === null) return []
    if (!isObject(value)) throw new ConfigError(['each document must be an object'])
    // kubectl prints several objects as one List, so its items count.
    return value.kind === 'List' ? listAt(value.items, 'items').filter(isObject) : [value]
  })
}

function describe(what: string, injection: Injection): readonly string[] {
  if (injection.verdict === 'deny') return [`${what}: denied: ${injection.message} (${injection.code})`]
  const done = injection.verdict === 'skip' ? `skipped (${injection.code})` : describeCount(injection.operations.length)
  return [`${what}: ${done}`, ...injection.warnings.map((warning) => `${what}: warning: ${warning}`)]
}

const describeCount = (count: number): string =>
  count === 0 ? 'has its sidecar already' : `sidecar injected by ${count} changes`

function replaceAt(document: JsonObject, path: readonly string[], value: Json): JsonObject {
  const [part, ...rest] = path
  if (part === undefined) return objectAt(value, 'the Pod')
  return { ...document, [part]: replaceAt(objectAt(document[part], part), rest, value) }
}
