/** The sidecar's settings: flags over environment variables over defaults, and the route file that they name. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { oneOf, readEnvironment } from '../../pdp/process/environment.ts'
import { ConfigError } from '../../pdp/process/exit.ts'
import { ANY_HOST, type ListenAddress, parseListenAddress } from '../../pdp/process/listen.ts'
import { LOG_LEVELS, type LogLevel } from '../../pdp/process/log.ts'
import { parseRouteFile, type RouteFile } from '../route-file/route-file.ts'
import { type Certificates, readCertificates } from './certificates.ts'

export type SidecarFlags = { readonly file?: string; readonly listen?: string; readonly adminListen?: string }
export type SidecarConfig = {
  readonly filePath: string
  readonly loaded: LoadedConfig
  readonly listen: ListenAddress
  readonly adminListen: ListenAddress
  readonly logLevel: LogLevel
  /** Of the unix socket for commands; null: none. */
  readonly controlPath: string | null
  /** Of a Redis that remembers proofs for all replicas; null: this process remembers its own. */
  readonly redisUrl: string | null
  /** Seals nonces; null: made at start, and known to this process only. */
  readonly nonceSecret: Buffer | null
}

/** What `--help` says about each variable. */
export const SETTINGS: readonly (readonly [name: string, meaning: string])[] = [
  ['PORTCULLIS_ROUTE_FILE', 'the route file (portcullis.yaml)'],
  ['PORTCULLIS_SIDECAR_LISTEN', 'host:port of the data port (:15080, IPv6 and IPv4)'],
  ['PORTCULLIS_SIDECAR_ADMIN_LISTEN', 'host:port of /metrics, /startz, /readyz and /livez (:15090)'],
  ['PORTCULLIS_SIDECAR_CONTROL', 'path of the unix socket that `drain` speaks to (none)'],
  ['PORTCULLIS_DPOP_NONCE_SECRET', 'or …_FILE: seals DPoP nonces, the same for all replicas (made at start)'],
  ['REDIS_URL', 'a Redis that remembers DPoP proofs for all replicas (each process remembers its own)'],
  ['PORTCULLIS_LOG_LEVEL', `${LOG_LEVELS.join(', ')} (info)`],
]

/** Throws ConfigError with one line for each mistake, those of the route file included. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: SidecarFlags): SidecarConfig {
  const settings = readSettings(environment, flags)
  return { ...settings, loaded: loadConfig(settings.filePath) }
}

/** The route file and the certificates that it names. Throws ConfigError. */
export function loadConfig(path: string): LoadedConfig {
  const source = readText(path, 'The route file')
  const file = parseSource(source, path)
  return { file, certificates: readCertificates(file), hash: createHash('sha256').update(source).digest('hex') }
}

function readSettings(environment: NodeJS.ProcessEnv, flags: SidecarFlags) {
  return readEnvironment(environment, (reader) => {
    // Node would then believe any certificate of the PDP and of the issuers.
    if (environment.NODE_TLS_REJECT_UNAUTHORIZED === '0')
      reader.report('NODE_TLS_REJECT_UNAUTHORIZED=0 turns all certificate checks off; unset it')
    const address = (flag: string | undefined, option: string, name: string): ListenAddress | null => {
      const fromEnvironment = reader.parsed(name, parseListenAddress)
      if (flag === undefined) return fromEnvironment
      try {
        return parseListenAddress(flag)
      } catch (err) {
        reader.report(`${option} ${err instanceof Error ? err.message : 'is not valid'}`)
        return null
      }
    }
    const filePath = reader.text('PORTCULLIS_ROUTE_FILE')
    const listen = address(flags.listen, '--listen', 'PORTCULLIS_SIDECAR_LISTEN')
    const adminListen = address(flags.adminListen, '--admin-listen', 'PORTCULLIS_SIDECAR_ADMIN_LISTEN')
    const redisUrl = environment.REDIS_URL ?? null
    if (redisUrl !== null && !/^rediss?:\/\/\S+$/.test(redisUrl)) reader.report('REDIS_URL is not a redis URL')
    const secret = reader.secret('PORTCULLIS_DPOP_NONCE_SECRET')
    if (secret !== null && secret.length < 32)
      reader.report('PORTCULLIS_DPOP_NONCE_SECRET has fewer than 32 characters')
    return {
      redisUrl,
      nonceSecret: secret === null ? null : createHash('sha256').update(secret).digest(),
      controlPath: reader.text('PORTCULLIS_SIDECAR_CONTROL'),
      filePath: flags.file ?? filePath ?? 'portcullis.yaml',
      listen: listen ?? { host: ANY_HOST, port: 15_080 },
      adminListen: adminListen ?? { host: ANY_HOST, port: 15_090 },
      logLevel: reader.parsed('PORTCULLIS_LOG_LEVEL', oneOf(LOG_LEVELS)) ?? 'info',
    }
  })
}

/** Throws ConfigError: `path:line:column: message` for each mistake. */
export const loadRouteFile = (path: string): RouteFile => parseSource(readText(path, 'The route file'), path)

function parseSource(source: Buffer, path: string): RouteFile {
  const { file, issues } = parseRouteFile(source.toString('utf8'))
  if (file !== null) return file
  throw new ConfigError(issues.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`))
}

function readText(path: string, what: string): Buffer {
  try {
    return readFileSync(path)
  } catch (err) {
    throw new ConfigError([`${what} cannot be read: ${err instanceof Error ? err.message : path}`])
  }
}

export type LoadedConfig = {
  readonly file: RouteFile
  readonly certificates: Certificates
  /** SHA-256 of the route file in hexadecimal. */
  readonly hash: string
}
