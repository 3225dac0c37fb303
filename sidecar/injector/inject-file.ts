/** `inject FILE`: changes the manifests of a file as the injector would, so that the result can be reviewed in Git. */
import { parseAllDocuments, stringify } from 'yaml'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import type { InjectorConfig } from './pod/config.ts'
import { inject } from './pod/inject.ts'
import type { Injection, Mode } from './pod/injection.ts'
import { isObject, type Json, type JsonObject, listAt, objectAt } from './pod/json.ts'
import { applyPatch } from './pod/patch.ts'

/** Where each kind keeps its Pod; the kinds that are not here pass through. */
const TEMPLATES: { readonly [kind: string]: readonly string[] } = {
  Pod: [],
  Deployment: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
}

export type FileReport = {
  /** All documents, injected where asked. */
  readonly yaml: string
  /** `Kind/name: what was done`. */
  readonly lines: readonly string[]
  readonly deniedCount: number
}

/** Throws ConfigError when the text is not YAML of objects, ShapeError when one is not as Kubernetes has it. */
export function injectFile(text: string, options: { config: InjectorConfig; mode: Mode }): FileReport {
  const lines: string[] = []
  let deniedCount = 0
  const documents = parseObjects(text).map((document) => {
    const path = TEMPLATES[String(document.kind)]
    if (path === undefined) return document
    const template = path.reduce((parent, part) => objectAt(parent[part], part), document)
    const injection = inject(template, options)
    const { name, generateName } = objectAt(document.metadata, 'metadata')
    lines.push(...describe(`${document.kind}/${name ?? generateName ?? ''}`, injection))
    if (injection.verdict === 'deny') deniedCount += 1
    if (injection.verdict !== 'inject') return document
    return replaceAt(document, path, applyPatch(template, injection.operations))
  })
  return { yaml: documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n'), lines, deniedCount }
}

function parseObjects(text: string): readonly JsonObject[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document) => {
    const [error] = document.errors
    if (error !== undefined) throw new ConfigError([error.message])
    const value: unknown = document.toJS()
    if (value === null) return []
    if (!isObject(value)) throw new ConfigError(['each document must be an object'])
    // The form in which kubectl prints several objects.
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
