/** The injector's settings: a YAML file that the chart writes, and that no Pod can change. */

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'
import { LOG_LEVELS, type LogLevel } from '../../../pdp/shared/process/log.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import { DEFAULT_PORT, readFirstPort } from './ports.ts'
import { type Bounds, quantityOf } from './resources.ts'

/** A key of a Secret in the Pod's namespace. Without it the sidecar does not start. */
export type SecretKey = { readonly name: string; readonly key: string }
export type InjectorConfig = {
  /** The image of the sidecar's container. */
  readonly image: string
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  /** The first port of sidecars, from which the others follow. */
  readonly port: number
  /** True from Kubernetes 1.32 on: only then can Services use the named ports of native sidecars. */
  readonly nativeSidecars: boolean
  /** The sidecar's user; null: the platform chooses it, as OpenShift does. */
  readonly runAsUser: number | null
  readonly resources: JsonObject
  /** Bounds of the annotations cpu and memory. */
  readonly resourceBounds: Bounds
  /** Addresses and CIDR blocks that may read the paths of portcullis.dev/scrape without a token; empty: no address may. */
  readonly scrapers: readonly string[]
  /** ConfigMap of the Pod's namespace with the PDP's authorities; null: the system's. */
  readonly authorities: string | null
  /** URL of the Redis that remembers DPoP proofs for all replicas; null: each sidecar remembers its own. */
  readonly redis: SecretKey | null
  /** The key that seals DPoP nonces, the same for all replicas; null: each sidecar makes its own. */
  readonly dpopNonces: SecretKey | null
  /** Secrets in the Pod's namespace for pulling the sidecar's image. */
  readonly imagePullSecrets: readonly string[]
  readonly logLevel: LogLevel
  /** URL of an OpenTelemetry collector; null: the sidecar sends no traces. */
  readonly tracesEndpoint: string | null
  /** The proxy through which sidecars reach issuers; null: none. */
  readonly egressProxy: EgressProxy | null
  /** The text that replaces `pdp` and `issuers` in all route files, in the sidecar's form; null: no replacement. */
  readonly platform: string | null
}
export type EgressProxy = { readonly url: string; readonly noProxy: string }

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'] as const
// Matches an image with a tag or a digest: without either, the last pushed image would run.
const IMAGE = /^[a-z0-9][a-z0-9._/:-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})$/
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const ENDPOINT = /^https?:\/\/[^\s'"\\]+$/
// Matches a proxy exception list without networks, since a sidecar does not start with a network in it.
const NO_PROXY = /^[A-Za-z0-9.,:*[\]_-]{0,4096}$/
const KEY = /^[-._A-Za-z0-9]{1,253}$/
const PULL_SECRETS_COUNT_MAX = 8
const SCRAPERS_COUNT_MAX = 16
const DEFAULT_BOUNDS: Bounds = { cpu: { min: '10m', max: '2' }, memory: { min: '64Mi', max: '1Gi' } }
const READERS = {
  image: (value) =>
    typeof value === 'string' && IMAGE.test(value) ? value : fail('must be an image with tag or digest'),
  imagePullPolicy: (value) =>
    PULL_POLICIES.find((policy) => policy === (value ?? 'IfNotPresent')) ?? fail(`must be ${PULL_POLICIES.join(', ')}`),
  port: (value) => readFirstPort(value ?? DEFAULT_PORT),
  nativeSidecars: (value) => (typeof value === 'boolean' ? value : fail('must be true or false')),
  runAsUser: (value) =>
    value === null || value === undefined || (typeof value === 'number' && Number.isInteger(value) && value > 0)
      ? (value ?? null)
      : fail('must be a user id above 0, or null'),
  resources: (value) => (isObject(value) ? value : fail('must be an object')),
  resourceBounds: readBounds,
  scrapers: readScrapers,
  authorities: (value) => readName(value, 'ConfigMap'),
  redis: readSecretKey,
  dpopNonces: readSecretKey,
  imagePullSecrets: (value) => readNames(value ?? []),
  logLevel: (value) =>
    LOG_LEVELS.find((level) => level === (value ?? 'info')) ?? fail(`must be ${LOG_LEVELS.join(', ')}`),
  tracesEndpoint: (value) =>
    value === null || value === undefined || (typeof value === 'string' && ENDPOINT.test(value))
      ? (value ?? null)
      : fail('must be an http or https URL, or null'),
  egressProxy: readEgressProxy,
  platform: readPlatform,
} satisfies { readonly [name in keyof InjectorConfig]: (value: Json | undefined) => InjectorConfig[name] }

/** Throws ConfigError with one line for each issue. */
export function loadInjectorConfig(path: string): InjectorConfig {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([`the injector's settings: ${fileProblem(path, err)}`])
  }
  return parseInjectorConfig(text, path)
}

/** Throws ConfigError with one line for each issue. */
export function parseInjectorConfig(text: string, path: string): InjectorConfig {
  const problems: string[] = []
  const document = parseYaml(text, path)
  for (const name of Object.keys(document))
    if (!Object.hasOwn(READERS, name)) problems.push(`${path}: ${name} is unknown`)
  function read<Name extends keyof InjectorConfig>(name: Name): ReturnType<(typeof READERS)[Name]> | null {
    try {
      return READERS[name](document[name]) as ReturnType<(typeof READERS)[Name]>
    } catch (err) {
      problems.push(`${path}: ${name} ${messageOf(err)}`)
      return null
    }
  }
  const config = {
    image: read('image') ?? '',
    imagePullPolicy: read('imagePullPolicy') ?? 'IfNotPresent',
    port: read('port') ?? DEFAULT_PORT,
    nativeSidecars: read('nativeSidecars') ?? false,
    runAsUser: read('runAsUser'),
    resources: read('resources') ?? {},
    resourceBounds: read('resourceBounds') ?? DEFAULT_BOUNDS,
    scrapers: read('scrapers') ?? [],
    authorities: read('authorities'),
    redis: read('redis'),
    dpopNonces: read('dpopNonces'),
    imagePullSecrets: read('imagePullSecrets') ?? [],
    logLevel: read('logLevel') ?? 'info',
    tracesEndpoint: read('tracesEndpoint'),
    egressProxy: read('egressProxy'),
    platform: read('platform'),
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function parseYaml(text: string, path: string): JsonObject {
  let document: unknown
  try {
    document = parse(text)
  } catch (err) {
    throw new ConfigError([`${path} is not YAML: ${messageOf(err)}`])
  }
  if (!isObject(document)) throw new ConfigError([`${path} must hold an object`])
  return document
}

function readName(value: Json | undefined, kind: string): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'string' && NAME.test(value) ? value : fail(`must be the name of a ${kind}, or null`)
}

function readSecretKey(value: Json | undefined): SecretKey | null {
  if (value === null || value === undefined) return null
  const { name, key, ...rest } = isObject(value) ? value : {}
  if (typeof name !== 'string' || typeof key !== 'string' || Object.keys(rest).length > 0)
    return fail('must be an object with name and key of a Secret, or null')
  return NAME.test(name) && KEY.test(key) ? { name, key } : fail('must name a Secret and a key in it, or be null')
}

function readNames(value: Json): readonly string[] {
  const given: readonly Json[] = Array.isArray(value) ? value : [null]
  const names = given.flatMap((name) => (typeof name === 'string' && NAME.test(name) ? [name] : []))
  if (names.length !== given.length || names.length > PULL_SECRETS_COUNT_MAX)
    return fail(`must be a list of at most ${PULL_SECRETS_COUNT_MAX} names of Secrets`)
  return names
}

function readBounds(value: Json | undefined): Bounds {
  if (value === undefined) return DEFAULT_BOUNDS
  const { cpu, memory, ...rest } = isObject(value) ? value : {}
  const of = (given: Json | undefined): Bounds['cpu'] | null => {
    const { min, max } = isObject(given) ? given : {}
    const [least, most] = [quantityOf(min), quantityOf(max)]
    return least === null || most === null || least > most ? null : { min: String(min), max: String(max) }
  }
  const bounds = { cpu: of(cpu), memory: of(memory) }
  if (bounds.cpu === null || bounds.memory === null || Object.keys(rest).length > 0)
    return fail('must be {cpu: {min, max}, memory: {min, max}} of quantities such as 50m and 64Mi')
  return { cpu: bounds.cpu, memory: bounds.memory }
}

function readEgressProxy(value: Json | undefined): EgressProxy | null {
  if (value === null || value === undefined) return null
  const { url, noProxy = '', ...rest } = isObject(value) ? value : {}
  const isUsable = typeof url === 'string' && ENDPOINT.test(url) && Object.keys(rest).length === 0
  if (!isUsable || typeof noProxy !== 'string' || !NO_PROXY.test(noProxy))
    return fail('must be an object with the url of the proxy and noProxy, its exceptions by name and address, or null')
  return { url, noProxy }
}

const PLATFORM_CHARACTERS_MAX = 16_384

/** The text of the platform. Kubernetes would replace $(NAME) in an argument, and the policy for Pods has the text as a literal. */
function readPlatform(value: Json | undefined): string | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string' && /^\{[^'\\$]*\}$/.test(value) && value.length <= PLATFORM_CHARACTERS_MAX) return value
  return fail(`must be JSON of an object, at most ${PLATFORM_CHARACTERS_MAX} characters, none of which is $, ' or \\`)
}

function readScrapers(value: Json | undefined): readonly string[] {
  const given: readonly Json[] = Array.isArray(value ?? []) ? ((value ?? []) as readonly Json[]) : [null]
  const networks = given.filter((text) => typeof text === 'string' && isNetwork(text)).map(String)
  if (networks.length === given.length && networks.length <= SCRAPERS_COUNT_MAX) return networks
  return fail(`must be a list of at most ${SCRAPERS_COUNT_MAX} addresses and CIDR blocks`)
}

function isNetwork(text: string): boolean {
  try {
    parseNetwork(text)
    return true
  } catch {
    return false
  }
}

function fail(message: string): never {
  throw new Error(message)
}
