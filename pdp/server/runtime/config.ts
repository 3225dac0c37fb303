/** The PDP's settings from environment variables, read once. All issues are reported together. */
import { join, resolve } from 'node:path'
import { TUPLES_PER_CHECK_MAX } from '../../engine/decide/search/search.ts'
import { assertDatabaseUrl } from '../../engine/store/postgres/connection/hosts.ts'
import { isSchemaName } from '../../engine/store/postgres/migrate.ts'
import { isServiceScope } from '../../identity/oauth/scopes.ts'
import { isMailAddress } from '../../identity/people/mail/mail.ts'
import type { ClientDocumentSettings } from '../../identity/provider/client-documents.ts'
import type { Network } from '../../shared/base/addresses.ts'
import { parseNetworks } from '../../shared/base/client-address.ts'
import { messageOf } from '../../shared/base/error-message.ts'
import { type Branding, parseBranding } from '../../shared/pages/brand.ts'
import { type ProxySettings, proxyOf } from '../../shared/process/egress.ts'
import { type EnvironmentReader, oneOf, readEnvironment } from '../../shared/process/environment.ts'
import type { KeyPairFiles } from '../../shared/process/key-pair-files.ts'
import {
  formatAddress,
  isLoopback,
  type ListenAddress,
  parseListenAddress,
  urlHost,
} from '../../shared/process/listen.ts'
import { LOG_LEVELS, type LogLevel } from '../../shared/process/log.ts'
import { readTracing, type TracingSettings } from '../../shared/process/tracing/settings.ts'
import { asRedisUrl } from '../../shared/token/redis.ts'
import { isCaller, type ServiceAccountSettings } from '../serve/authentication/service-account.ts'

export const EMBED_ENTITLEMENTS = ['off', 'claims-mode'] as const
const REPLICATION = ['synchronous'] as const
const LEASE = ['sole', 'shared'] as const
const SECOND_FACTOR = ['offered', 'required'] as const
const SWITCH = ['on', 'off'] as const
const DECISIONS_KEPT_DAYS = 7
const DECISIONS_KEPT = 10_000
const SECRET_CHARACTERS_MIN = 16
const MASTER_KEY_BYTES = 32

/** `folder`: mails are written there, to try things out. */
export type MailSettings = { readonly url: string; readonly from: string } | { readonly folder: string }

export type PdpConfig = {
  /** The origin at which users reach the identity service; `iss` of every token. */
  readonly issuer: string
  /** The secret of the client `admin` when it is created; null: it is generated into the data directory. */
  readonly adminSecret: string | null
  /** Encrypts private keys at rest; null: generated into the data directory. */
  readonly masterKey: Buffer | null
  /** The next master key, during a rotation; null: no rotation. */
  readonly nextMasterKey: Buffer | null
  readonly http: ListenAddress
  readonly grpc: ListenAddress
  /** The files of certificate and key; null: plain text, which is only allowed on loopback. */
  readonly grpcTls: KeyPairFiles | null
  /** Kubernetes ServiceAccounts that may call over gRPC; null: no account may. */
  readonly serviceAccounts: ServiceAccountSettings | null
  readonly metrics: ListenAddress
  /** Proxies whose Forwarded and X-Forwarded-For fields are trusted. */
  readonly trustedProxies: readonly Network[]
  /** The URL of the database; null: an embedded PostgreSQL in the data directory. */
  readonly databaseUrl: string | null
  /** How many connections are open at most: half of them for reads, half for transactions. */
  readonly databaseConnections: number
  /** The schema of our tables; null: the first one of the connection's `search_path`. */
  readonly databaseSchema: string | null
  /** Whether commits wait for a standby; null: unknown, or there is no standby. */
  readonly replication: 'synchronous' | null
  /** Whether this process answers from memory while it alone writes; null: each question asks the database. */
  readonly lease: 'sole' | 'shared' | null
  /** `host` or `host:port` that may be called for security events although its addresses are internal. */
  readonly internalHosts: readonly string[]
  /** The proxy for https calls to hosts outside; null: no proxy. */
  readonly proxy: ProxySettings | null
  /** Settings for clients that have only a document, no registration; null: there are no such clients. */
  readonly clientDocuments: ClientDocumentSettings | null
  /** The server or folder for mail; null: no mail is sent. */
  readonly mail: MailSettings | null
  /** A file with digests of forbidden passwords; null: only the built-in list counts. */
  readonly knownPasswordsFile: string | null
  /** The Redis in which replicas share entitlement values and used proofs; null: they share nothing. */
  readonly redisUrl: string | null
  /** The external system that owns the entitlements; null: the store does. */
  readonly entitlementSource: { readonly url: string; readonly secret: string } | null
  readonly secondFactor: (typeof SECOND_FACTOR)[number]
  readonly embedEntitlements: (typeof EMBED_ENTITLEMENTS)[number]
  /** True if people may use the console at /console. */
  readonly console: boolean
  /** How many of the latest decisions the console can show; they are kept in memory. */
  readonly decisionsKept: number
  /** The days for which all PDPs' decisions are kept in the database; 0: they are not kept. */
  readonly decisionsKeptDays: number
  /** The brand of the pages of the identity service. */
  readonly branding: Branding
  /** The days for which journal entries are kept; null: for ever. */
  readonly changesKeptDays: number | null
  /** How many tuples a check may visit; beyond that the check is an error. */
  readonly checkTuplesMax: number
  /** The data directory's absolute path. */
  readonly dataDirectory: string
  readonly logLevel: LogLevel
  /** The sampling of log lines: one of so many questions with only allowed parts is logged. */
  readonly logAllowedOneIn: number
  /** The collector of traces; null: no traces. */
  readonly tracing: TracingSettings | null
}

/** Throws ConfigError with one line for each issue. */
export function readConfig(environment: NodeJS.ProcessEnv): PdpConfig {
  return readEnvironment(environment, (reader) => {
    const http = reader.parsed('PORTCULLIS_HTTP_LISTEN', parseListenAddress) ?? { host: '127.0.0.1', port: 8080 }
    const issuer = reader.parsed('PORTCULLIS_ISSUER', parseIssuer)
    const secrets = readSecrets(reader)
    const hasConsole =
      (reader.parsed('PORTCULLIS_CONSOLE', oneOf(SWITCH)) ?? (isLoopback(http.host) ? 'on' : 'off')) === 'on'
    const dataDirectory = resolve(reader.text('PORTCULLIS_DATA_DIR') ?? '.data')
    if (!isLoopback(http.host)) requireExplicit(reader, { ...secrets, issuer })
    return {
      issuer: issuer ?? `http://${formatAddress(http)}`,
      ...secrets,
      http,
      ...readGrpc(reader),
      metrics: reader.parsed('PORTCULLIS_METRICS_LISTEN', parseListenAddress) ?? { host: '127.0.0.1', port: 9091 },
      trustedProxies: reader.parsed('PORTCULLIS_TRUSTED_PROXIES', parseNetworks) ?? [],
      ...readDatabase(reader),
      databaseSchema: reader.parsed('PORTCULLIS_DATABASE_SCHEMA', parseSchema),
      internalHosts: reader.parsed('PORTCULLIS_SIGNAL_INTERNAL_HOSTS', parseHosts) ?? [],
      proxy: proxyOf(environment),
      clientDocuments: readClientDocuments(reader),
      // Without an SMTP server, a PDP on loopback writes mail into its data directory.
      mail: readMail(reader) ?? (isLoopback(http.host) ? { folder: join(dataDirectory, 'mail') } : null),
      knownPasswordsFile: reader.text('PORTCULLIS_KNOWN_PASSWORDS_FILE'),
      redisUrl: reader.parsed('REDIS_URL', asRedisUrl),
      entitlementSource: readEntitlementSource(reader),
      embedEntitlements: reader.parsed('PORTCULLIS_EMBED_ENTITLEMENTS', oneOf(EMBED_ENTITLEMENTS)) ?? 'claims-mode',
      secondFactor: reader.parsed('PORTCULLIS_SECOND_FACTOR', oneOf(SECOND_FACTOR)) ?? 'offered',
      console: hasConsole,
      branding: reader.parsed('PORTCULLIS_BRANDING', parseBranding) ?? {},
      decisionsKept: reader.parsed('PORTCULLIS_DECISIONS_KEPT', countWithin(0, 1_000_000)) ?? DECISIONS_KEPT,
      decisionsKeptDays:
        reader.parsed('PORTCULLIS_DECISIONS_KEPT_DAYS', countWithin(0, 365)) ?? (hasConsole ? DECISIONS_KEPT_DAYS : 0),
      changesKeptDays: reader.parsed('PORTCULLIS_CHANGES_KEPT_DAYS', parseDays),
      checkTuplesMax:
        reader.parsed('PORTCULLIS_CHECK_TUPLES_MAX', countWithin(1_000, 1_000_000)) ?? TUPLES_PER_CHECK_MAX,
      dataDirectory,
      logLevel: reader.parsed('PORTCULLIS_LOG_LEVEL', oneOf(LOG_LEVELS)) ?? 'info',
      logAllowedOneIn: reader.parsed('PORTCULLIS_LOG_ALLOWED_ONE_IN', countWithin(1, 1_000_000)) ?? 1,
      tracing: readTracing(environment, { service: 'portcullis-pdp', report: reader.report }),
    }
  })
}

function readDatabase(
  reader: EnvironmentReader,
): Pick<PdpConfig, 'databaseUrl' | 'replication' | 'lease' | 'databaseConnections'> {
  const databaseUrl = readDatabaseUrl(reader)
  const replication = reader.parsed('PORTCULLIS_REPLICATION', oneOf(REPLICATION))
  if (replication !== null && databaseUrl === null && reader.text('DATABASE_URL') === null)
    reader.report('PORTCULLIS_REPLICATION needs DATABASE_URL: the embedded PostgreSQL has no standby')
  const lease = reader.parsed('PORTCULLIS_LEASE', oneOf(LEASE))
  if (lease !== null && replication !== null)
    reader.report('PORTCULLIS_LEASE and PORTCULLIS_REPLICATION are both set; set one')
  const databaseConnections = reader.parsed('PORTCULLIS_DATABASE_CONNECTIONS', countWithin(4, 200)) ?? 20
  return { databaseUrl, replication, lease, databaseConnections }
}

const DATABASE_PARTS = ['HOST', 'USER', 'PASSWORD', 'NAME'] as const

/** The URL from one variable, or from its parts as in a database operator's Secret: then the password may contain any character. */
function readDatabaseUrl(reader: EnvironmentReader): string | null {
  const part = (name: string): string | null => reader.text(`PORTCULLIS_DATABASE_${name}`)
  const [host, user, password, name] = DATABASE_PARTS.map(part)
  const [port, parameters] = [part('PORT'), part('PARAMETERS')]
  const whole = reader.parsed('DATABASE_URL', parseDatabaseUrl)
  if (!host && !user && !password && !name && !port && !parameters) return whole
  if (whole !== null) reader.report('DATABASE_URL and PORTCULLIS_DATABASE_HOST are both set; set one')
  if (!host || !user || !password || !name) {
    reader.report(`${DATABASE_PARTS.map((one) => `PORTCULLIS_DATABASE_${one}`).join(', ')} must be set together`)
    return null
  }
  const account = [user, password].map(encodeURIComponent).join(':')
  const url = `postgresql://${account}@${host}:${port ?? 5432}/${encodeURIComponent(name)}?${parameters ?? ''}`
  try {
    if (!/^\d{0,5}$/.test(port ?? '')) throw new Error('must have a port')
    if (!/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/.test(host)) throw new Error('must name one host')
    return parseDatabaseUrl(url)
  } catch (err) {
    reader.report(`PORTCULLIS_DATABASE_HOST, its PORT and PARAMETERS: the URL of them ${messageOf(err)}`)
    return null
  }
}

function parseDatabaseUrl(text: string): string {
  assertDatabaseUrl(text)
  return text
}

function parseSchema(text: string): string {
  if (isSchemaName(text)) return text
  throw new Error('is not a name of small letters, digits and _')
}

function readGrpc(reader: EnvironmentReader): Pick<PdpConfig, 'grpc' | 'grpcTls' | 'serviceAccounts'> {
  const grpc = reader.parsed('PORTCULLIS_GRPC_LISTEN', parseListenAddress) ?? { host: '127.0.0.1', port: 9090 }
  const certFile = reader.text('PORTCULLIS_GRPC_TLS_CERT_FILE')
  const keyFile = reader.text('PORTCULLIS_GRPC_TLS_KEY_FILE')
  const clientCaFile = reader.text('PORTCULLIS_GRPC_CLIENT_CA_FILE')
  if ((certFile === null) !== (keyFile === null))
    reader.report('PORTCULLIS_GRPC_TLS_CERT_FILE and PORTCULLIS_GRPC_TLS_KEY_FILE must be set together')
  const grpcTls = certFile === null || keyFile === null ? null : { certFile, keyFile, clientCaFile }
  if (certFile === null && keyFile === null) {
    if (clientCaFile !== null) reader.report('PORTCULLIS_GRPC_CLIENT_CA_FILE needs PORTCULLIS_GRPC_TLS_CERT_FILE')
    if (!isLoopback(grpc.host))
      reader.report(
        'PORTCULLIS_GRPC_LISTEN is not a loopback address, so PORTCULLIS_GRPC_TLS_CERT_FILE and PORTCULLIS_GRPC_TLS_KEY_FILE are required',
      )
  }
  return { grpc, grpcTls, serviceAccounts: readServiceAccounts(reader) }
}

function readServiceAccounts(reader: EnvironmentReader): ServiceAccountSettings | null {
  const issuer = reader.text('PORTCULLIS_SERVICE_ACCOUNT_ISSUER')
  const jwks = reader.text('PORTCULLIS_SERVICE_ACCOUNT_JWKS')
  const listed = reader.parsed('PORTCULLIS_SERVICE_ACCOUNTS', splitCallers)
  const callersFile = reader.text('PORTCULLIS_SERVICE_ACCOUNTS_FILE')
  const odd = listed?.find((caller) => !isCaller(caller))
  if (odd !== undefined)
    reader.report(
      `PORTCULLIS_SERVICE_ACCOUNTS must list namespace/name or namespace/*, separated by commas, not ${JSON.stringify(odd)}`,
    )
  if (issuer === null && jwks !== null)
    reader.report('PORTCULLIS_SERVICE_ACCOUNT_JWKS needs PORTCULLIS_SERVICE_ACCOUNT_ISSUER')
  if ((issuer === null) !== (listed === null && callersFile === null))
    reader.report(
      'PORTCULLIS_SERVICE_ACCOUNT_ISSUER and PORTCULLIS_SERVICE_ACCOUNTS, or its _FILE, must be set together',
    )
  return issuer === null ? null : { issuer, jwks, callers: listed ?? [], callersFile }
}

const splitCallers = (text: string): readonly string[] => text.split(',').map((caller) => caller.trim())

function readEntitlementSource(reader: EnvironmentReader): PdpConfig['entitlementSource'] {
  const url = reader.parsed('PORTCULLIS_ENTITLEMENT_SOURCE_URL', parseSourceUrl)
  const secret = reader.secret('PORTCULLIS_ENTITLEMENT_SOURCE_SECRET')
  if (secret !== null && !/^[\x21-\x7e]{16,1024}$/.test(secret)) {
    reader.report(
      `PORTCULLIS_ENTITLEMENT_SOURCE_SECRET must have ${SECRET_CHARACTERS_MIN} to 1024 visible ASCII characters`,
    )
  }
  if ((url === null) !== (secret === null))
    reader.report('PORTCULLIS_ENTITLEMENT_SOURCE_URL and PORTCULLIS_ENTITLEMENT_SOURCE_SECRET must be set together')
  return url === null || secret === null ? null : { url, secret }
}

function readMail(reader: EnvironmentReader): Extract<MailSettings, { url: string }> | null {
  const url = reader.secret('PORTCULLIS_SMTP_URL')
  const from = reader.parsed('PORTCULLIS_MAIL_FROM', parseSender)
  if (url !== null && !isSmtpUrl(url))
    reader.report('PORTCULLIS_SMTP_URL must be a URL such as smtps://user:password@mail.example.com:465')
  else if (url !== null && from === null) reader.report('PORTCULLIS_SMTP_URL needs PORTCULLIS_MAIL_FROM')
  if (url === null && from !== null) reader.report('PORTCULLIS_MAIL_FROM needs PORTCULLIS_SMTP_URL')
  return url === null || from === null ? null : { url, from }
}

const isSmtpUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && ['smtp:', 'smtps:'].includes(url.protocol) && url.hostname !== ''
}

function parseSender(text: string): string {
  const address = /^(?:[^<>"\r\n]{1,100} )?<([^<>]+)>$/.exec(text)?.[1] ?? text
  if (isMailAddress(address)) return text
  throw new Error(`must be an address, or Name <address>, not ${JSON.stringify(text)}`)
}

type Secrets = Pick<PdpConfig, 'adminSecret' | 'masterKey' | 'nextMasterKey'>

function readSecrets(reader: EnvironmentReader): Secrets {
  const adminSecret = reader.secret('PORTCULLIS_ADMIN_SECRET')
  if (adminSecret !== null && !/^[\x21-\x7e]{16,256}$/.test(adminSecret)) {
    reader.report(`PORTCULLIS_ADMIN_SECRET must have ${SECRET_CHARACTERS_MIN} to 256 visible ASCII characters`)
  }
  const masterKey = readMasterKey(reader, 'PORTCULLIS_MASTER_KEY')
  const nextMasterKey = readMasterKey(reader, 'PORTCULLIS_NEXT_MASTER_KEY')
  if (masterKey !== null && nextMasterKey?.equals(masterKey))
    reader.report('PORTCULLIS_NEXT_MASTER_KEY is the same as PORTCULLIS_MASTER_KEY: make another key')
  return { adminSecret, masterKey, nextMasterKey }
}

function readMasterKey(reader: EnvironmentReader, name: string): Buffer | null {
  const text = reader.secret(name)
  const key = text === null ? null : parseMasterKey(text)
  if (text !== null && key === null)
    reader.report(`${name} must be ${MASTER_KEY_BYTES} bytes in base64, such as from: openssl rand -base64 32`)
  return key
}

/** The key in a text of exactly 32 bytes in base64 or base64url; else null. */
export function parseMasterKey(text: string): Buffer | null {
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return null
  const key = Buffer.from(text, 'base64')
  return key.length === MASTER_KEY_BYTES ? key : null
}

// Generated values exist on one machine only, so a server that other machines use needs explicit ones.
function requireExplicit(reader: EnvironmentReader, given: Secrets & { readonly issuer: string | null }): void {
  const needed = [
    ['PORTCULLIS_ISSUER', given.issuer],
    ['PORTCULLIS_ADMIN_SECRET', given.adminSecret],
    ['PORTCULLIS_MASTER_KEY', given.masterKey],
  ] as const
  for (const [name, value] of needed) {
    if (value === null) reader.report(`${name} is required when PORTCULLIS_HTTP_LISTEN is not a loopback address`)
  }
}

function parseHosts(text: string): readonly string[] {
  const hosts = text.split(',').map((host) => host.trim().toLowerCase())
  const odd = hosts.find((host) => host.includes('*') || URL.parse(`https://${host}`)?.host !== host)
  if (odd !== undefined) throw new Error(`must list host or host:port, not ${JSON.stringify(odd)}`)
  return hosts
}

function readClientDocuments(reader: EnvironmentReader): ClientDocumentSettings | null {
  const hosts = reader.parsed('PORTCULLIS_CLIENT_DOCUMENTS', (text) => (text === 'any' ? text : parseHosts(text)))
  const scope = reader.parsed('PORTCULLIS_CLIENT_DOCUMENTS_SCOPE', parsePersonScope)
  if (hosts === null && scope !== null)
    reader.report('PORTCULLIS_CLIENT_DOCUMENTS_SCOPE needs PORTCULLIS_CLIENT_DOCUMENTS')
  if (hosts === null) return null
  return { hosts: hosts === 'any' ? hosts : new Set(hosts), scope: scope ?? 'openid profile offline_access' }
}

/** Scopes in the form of RFC 6749 section 3.3. */
function parsePersonScope(text: string): string {
  const scopes = text.split(' ')
  if (!scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/.test(scope)))
    throw new Error(`must list scopes with one space between them, not ${JSON.stringify(text)}`)
  const service = scopes.find(isServiceScope)
  if (service !== undefined) throw new Error(`names ${service}, which only a client of its own has, never a person`)
  return text
}

function parseDays(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new Error('must be a number of days from 1 to 99999')
  return Number(text)
}

function countWithin(least: number, most: number): (text: string) => number {
  return (text) => {
    if (/^(?:0|[1-9]\d{0,6})$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new Error(`must be a number from ${least} to ${most}`)
  }
}

function parseIssuer(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.origin !== text)
    throw new Error(`must be an origin without a path, such as https://id.example.com, not ${JSON.stringify(text)}`)
  if (url.protocol === 'https:') return text
  const host = urlHost(url)
  if (url.protocol !== 'http:' || !isLoopback(host))
    throw new Error('must use https, unless its host is a loopback address')
  return text
}

/** Requests to this URL carry a secret, so they must be encrypted. */
function parseSourceUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '')
    throw new Error('must be a URL without a user or a fragment, such as https://billing.example.com/entitlements')
  const host = urlHost(url)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(host)))
    throw new Error('must use https, unless its host is a loopback address')
  return url.href
}
