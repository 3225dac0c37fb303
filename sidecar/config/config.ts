/** Reads the sidecar's settings (flags, then environment variables, then defaults) and its route file. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { doesNotExist, fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { oneOf, readEnvironment } from '../../pdp/shared/process/environment.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { ANY_HOST, type ListenAddress, parseListenAddress } from '../../pdp/shared/process/listen.ts'
import { LOG_LEVELS, type LogLevel } from '../../pdp/shared/process/log.ts'
import { readTracing, TRACING_SETTING, type TracingSettings } from '../../pdp/shared/process/tracing/settings.ts'
import { asRedisUrl } from '../../pdp/shared/token/redis.ts'
import { type ParsedRouteFile, parseRouteFile, type RouteFile } from '../route-file/route-file.ts'
import { parseOpened } from '../route-file/words/open-paths.ts'
import type { OpenPath } from '../routes/route.ts'
import { type Certificates, readCertificates } from './certificates.ts'

export type SidecarFlags = {
  readonly file?: string
  readonly listen?: string
  readonly adminListen?: string
  /** Open paths in addition to the route file's, each as `path=peers`. */
  readonly open?: readonly string[]
  readonly platform?: string
}
export type SidecarConfig = {
  readonly filePath: string
  /** The text of the settings that a platform makes for every route file; null: none. */
  readonly platform: string | null
  /** Open paths from the command line, in addition to the route file's. */
  readonly opened: readonly OpenPath[]
  readonly loaded: LoadedConfig
  readonly listen: ListenAddress
  readonly adminListen: ListenAddress
  readonly logLevel: LogLevel
  /** The unix socket for commands; null: there is no socket. */
  readonly controlPath: string | null
  /** URL of a Redis that stores used proofs for all replicas; null: each process stores its own. */
  readonly redisUrl: string | null
  /** The secret that authenticates nonces; null: a random one of this process. */
  readonly nonceSecret: Buffer | null
  /** The collector of trace spans; null: none. */
  readonly tracing: TracingSettings | null
}

/** Environment variables and their meanings, for `--help`. */
export const SETTINGS: readonly (readonly [name: string, meaning: string])[] = [
  ['PORTCULLIS_ROUTE_FILE', 'path of the route file (default: portcullis.yaml)'],
  ['PORTCULLIS_SIDECAR_LISTEN', 'host:port of the data port (default: :15080, IPv6 and IPv4)'],
  ['PORTCULLIS_SIDECAR_ADMIN_LISTEN', 'host:port of /metrics, /startz, /readyz and /livez (default: :15094)'],
  ['PORTCULLIS_SIDECAR_CONTROL', 'path of the Unix socket for `drain` and `withdraw` (default: none)'],
  [
    'PORTCULLIS_DPOP_NONCE_SECRET',
    'or …_FILE: secret for DPoP nonces, the same for all replicas (default: random at each start)',
  ],
  ['REDIS_URL', 'URL of a Redis that stores used DPoP proofs for all replicas (default: each process stores its own)'],
  ['SSL_CERT_FILE', 'PEM file of certificate authorities to trust beside those of the system (as NODE_EXTRA_CA_CERTS)'],
  [
    'HTTPS_PROXY',
    'URL of the proxy through which issuers are asked, but for hosts of NO_PROXY; the PDP and the service are never',
  ],
  ['PORTCULLIS_LOG_LEVEL', `${LOG_LEVELS.join(', ')} (default: info)`],
  TRACING_SETTING,
]

/** Throws ConfigError with one line for each error, including the errors of the route file. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: SidecarFlags): SidecarConfig {
  const settings = readSettings(environment, flags)
  return { ...settings, loaded: loadConfig(settings.filePath, settings) }
}

/** Reads a route file and its certificates. Throws ConfigError. */
export function loadConfig(path: string, { opened = [], platform = null }: Beside = {}): LoadedConfig {
  const source = readRouteText(path)
  const file = withOpened(parseSource(source, path, platform), opened)
  return { file, certificates: readCertificates(file), hash: hashOf(source) }
}

/** The parts of the configuration that only the command line names. */
export type Beside = Partial<Pick<SidecarConfig, 'opened' | 'platform'>>

export const PLATFORM_OPTION = [
  '--platform <file>',
  "what the platform says for every route file (pdp, issuers), from the injector's settings; or the text itself, in braces",
] as const

/** The value of the option for the platform: a file, or the text itself if it begins with a brace. Throws ConfigError. */
export function readPlatform(given: string | undefined): string | null {
  if (given === undefined || given.startsWith('{')) return given ?? null
  try {
    return readFileSync(given, 'utf8')
  } catch (err) {
    throw new ConfigError([`--platform: ${fileProblem(given, err)}`])
  }
}

/** The file with these open paths. Throws ConfigError if it has doors, since the sidecar does not know the peers of a gateway. */
export function withOpened(file: RouteFile, opened: readonly OpenPath[]): RouteFile {
  if (opened.length > 0 && file.doors.length > 0) throw new ConfigError(['--open cannot be used with doors'])
  return opened.length === 0 ? file : { ...file, openPaths: [...file.openPaths, ...opened] }
}

export const hashOf = (source: Buffer): string => createHash('sha256').update(source).digest('hex')

function readSettings(environment: NodeJS.ProcessEnv, flags: SidecarFlags) {
  return readEnvironment(environment, (reader) => {
    // Refuses a setting that makes Node accept any certificate from PDP and issuers.
    if (environment.NODE_TLS_REJECT_UNAUTHORIZED === '0')
      reader.report('NODE_TLS_REJECT_UNAUTHORIZED=0 disables all certificate checks; unset it')
    const address = (flag: string | undefined, option: string, name: string): ListenAddress | null => {
      const fromEnvironment = reader.parsed(name, parseListenAddress)
      if (flag === undefined) return fromEnvironment
      try {
        return parseListenAddress(flag)
      } catch (err) {
        reader.report(`${option} ${messageOf(err)}`)
        return null
      }
    }
    const filePath = reader.text('PORTCULLIS_ROUTE_FILE')
    const listen = address(flags.listen, '--listen', 'PORTCULLIS_SIDECAR_LISTEN')
    const adminListen = address(flags.adminListen, '--admin-listen', 'PORTCULLIS_SIDECAR_ADMIN_LISTEN')
    const redisUrl = reader.parsed('REDIS_URL', asRedisUrl)
    const secret = reader.secret('PORTCULLIS_DPOP_NONCE_SECRET')
    if (secret !== null && secret.length < 32)
      reader.report('PORTCULLIS_DPOP_NONCE_SECRET must have at least 32 characters')
    const { report } = reader
    const opened = (flags.open ?? []).flatMap((text) => parseOpened(text) ?? [])
    if (opened.length < (flags.open ?? []).length)
      reader.report('--open must be a path and its peers, such as /metrics=10.0.0.0/8,192.0.2.7')
    return {
      opened,
      tracing: readTracing(environment, { service: 'portcullis-sidecar', report }),
      redisUrl,
      nonceSecret: secret === null ? null : createHash('sha256').update(secret).digest(),
      controlPath: reader.text('PORTCULLIS_SIDECAR_CONTROL'),
      filePath: flags.file ?? filePath ?? 'portcullis.yaml',
      platform: readPlatform(flags.platform),
      listen: listen ?? { host: ANY_HOST, port: 15_080 },
      adminListen: adminListen ?? { host: ANY_HOST, port: 15_094 },
      logLevel: reader.parsed('PORTCULLIS_LOG_LEVEL', oneOf(LOG_LEVELS)) ?? 'info',
    }
  })
}

/** Throws ConfigError: `path:line:column: message` for each error. */
export const loadRouteFile = (path: string, platform: string | null = null): RouteFile =>
  parseSource(readRouteText(path), path, platform)

const parseSource = (source: Buffer, path: string, platform: string | null): RouteFile =>
  fileOf(parseRouteFile(source.toString('utf8'), platform), path)

/** Throws ConfigError: `path:line:column: message` for each error. */
export function fileOf({ file, issues }: ParsedRouteFile, path: string): RouteFile {
  if (file !== null) return file
  throw new ConfigError(issues.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`))
}

const FIRST = '; portcullis-sidecar init writes a first one'

/** The error for a key that a ConfigMap lacks. Null: the folder is no mounted ConfigMap, which would have its keys behind a link. */
function missingKey(path: string): string | null {
  try {
    const names = readdirSync(dirname(path))
    const keys = names.filter((name) => !name.startsWith('..'))
    if (!names.includes('..data')) return null
    return `: the ConfigMap in ${dirname(path)} has no key ${basename(path)}; its keys are ${keys.join(', ') || 'none'}`
  } catch {
    return null
  }
}

/** More bytes than the longest route file needs. */
const TEXT_BYTES_MAX = 2 * 1024 * 1024

/** Throws ConfigError, with a cause where the file could not be read. */
export function readRouteText(path: string): Buffer {
  let text: Buffer
  try {
    text = readFileSync(path)
  } catch (err) {
    const first = doesNotExist(err) ? (missingKey(path) ?? FIRST) : ''
    throw new ConfigError([`The route file ${fileProblem(path, err)}${first}`], { cause: err })
  }
  if (text.length > TEXT_BYTES_MAX) throw new ConfigError([`The route file ${path} is longer than 2 MiB`])
  return text
}

export type LoadedConfig = {
  readonly file: RouteFile
  readonly certificates: Certificates
  /** SHA-256 of the route file in hexadecimal. */
  readonly hash: string
}
