/** Reads the operations of an OpenAPI document (2.0 to 3.1) that a first route file needs. */
import { parse } from 'yaml'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { isJsonObject } from '../../pdp/shared/domain/json.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { MAPPING_KEY } from './coaz.ts'

export type Operation = {
  readonly method: string
  /** The path below the path of its server; parameters are `{name}`. */
  readonly path: string
  /** True: by the document, the operation needs no credentials. */
  readonly isPublic: boolean
  /** The AuthZEN mapping of the operation; undefined: it has no mapping. */
  readonly mapping?: unknown
  /** The path of the answer's only list, such as `$.items[*]`; undefined: the document describes no such list. */
  readonly list?: string
}
export type ApiDescription = {
  readonly operations: readonly Operation[]
  /** The first server's origin; null: its URL has none. */
  readonly origin: string | null
}

/** A made-up host for server URLs that have none. */
const RELATIVE = 'http://relative.invalid'
const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'] as const

/** `path` names the file in errors. Throws ConfigError. */
export function readOpenApi(source: string, path: string): ApiDescription {
  const document = parsed(source, path)
  if (typeof document.openapi !== 'string' && document.swagger !== '2.0')
    throw new ConfigError([`${path} is not an OpenAPI document: it has neither openapi nor swagger: "2.0"`])
  const paths = membersOf(document.paths)
  if (paths === null) throw new ConfigError([`${path} has no paths`])
  const { origin, base } = serverOf(document.servers ?? swaggerServer(document))
  const operations = Object.entries(paths).flatMap(([template, item]) =>
    METHODS.flatMap((method): Operation[] => {
      const members = membersOf(item)
      const operation = membersOf(members?.[method])
      if (operation === null || !template.startsWith('/')) return []
      // An operation's servers replace those of its path, which replace the document's.
      const own = operation.servers ?? members?.servers
      const isPublic = isWithoutCredentials(operation.security ?? document.security)
      const mapping = operation[MAPPING_KEY]
      const list = listOf(operation, document)
      const described = {
        ...(list !== null && { list }),
        method: method.toUpperCase(),
        path: `${own === undefined ? base : serverOf(own).base}${template}`,
        isPublic,
      }
      return [mapping === undefined ? described : { ...described, mapping }]
    }),
  )
  if (operations.length === 0) throw new ConfigError([`${path} has no operations`])
  return { operations, origin }
}

/** The path of the list in a successful JSON answer, if the answer is a list or has exactly one; null otherwise. */
function listOf({ responses }: JsonMembers, document: JsonMembers): string | null {
  const answer = resolved(membersOf(responses)?.['200'], document)
  const schema = answer?.schema ?? membersOf(membersOf(answer?.content)?.['application/json'])?.schema
  const found = resolved(schema, document)
  if (found?.type === 'array') return '$[*]'
  const members = Object.entries(membersOf(found?.properties) ?? {})
  const lists = members.filter(([name, one]) => /^[\w-]+$/.test(name) && resolved(one, document)?.type === 'array')
  return lists.length === 1 ? `$.${lists[0]?.[0]}[*]` : null
}

/** Follows a reference within the document. A chain of references is not followed, since it is hardly worth it. */
function resolved(value: unknown, document: JsonMembers): JsonMembers | null {
  const members = membersOf(value)
  const reference = members?.$ref
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return members
  const names = reference.slice('#/'.length).split('/')
  return membersOf(names.reduce((at: unknown, name) => membersOf(at)?.[name], document))
}

function parsed(source: string, path: string): JsonMembers {
  try {
    return membersOf(jsonOf(source) ?? parse(source)) ?? {}
  } catch (err) {
    throw new ConfigError([`${path} is neither JSON nor YAML: ${messageOf(err)}`])
  }
}

/** JSON is YAML, too, but reading megabytes as YAML takes a quarter of a minute. */
function jsonOf(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch {
    return undefined
  }
}

/** True only for an empty list. A document without `security` does not mean that no credentials are needed. */
const isWithoutCredentials = (security: unknown): boolean => Array.isArray(security) && security.length === 0

/** OpenAPI 2.0 describes its one server by other members. */
function swaggerServer({ host, basePath }: JsonMembers): unknown {
  const origin = typeof host === 'string' ? `https://${host}` : ''
  return [{ url: `${origin}${typeof basePath === 'string' ? basePath : ''}` }]
}

/** The first of the servers, because a sidecar protects only one service. */
function serverOf(servers: unknown): { readonly origin: string | null; readonly base: string } {
  const server = Array.isArray(servers) ? membersOf(servers[0]) : null
  const text = server?.url
  const url = typeof text === 'string' ? URL.parse(withDefaults(text, server?.variables), RELATIVE) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return { origin: null, base: '' }
  const isRelative = url.origin === RELATIVE
  return { origin: isRelative ? null : url.origin, base: url.pathname.replace(/\/$/, '') }
}

/** The URL with the default of each variable (OpenAPI 3.1 section 4.8.6). */
const withDefaults = (url: string, variables: unknown): string =>
  url.replaceAll(/\{([^{}]+)\}/g, (written, name: string) => {
    const { default: value } = membersOf(membersOf(variables)?.[name]) ?? {}
    return typeof value === 'string' ? value : written
  })

const membersOf = (value: unknown): JsonMembers | null => (isJsonObject(value) ? { ...value } : null)
