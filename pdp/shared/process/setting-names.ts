/** The names of all programs' environment variables, and the message about an unknown one. */
import { nearestName } from '../base/nearest.ts'

const PREFIX = 'PORTCULLIS_'
// Kubernetes injects these into every pod beside a Service named `portcullis` or `portcullis-…` (service links).
const SERVICE_LINK =
  /^PORTCULLIS_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
// Matches a link to a Service. `PORTCULLIS_PORT=8080` is none, but a mistaken setting.
const LINKED_PORT = { name: /^PORTCULLIS_(?:[A-Z0-9_]+_)?PORT$/, value: /^(?:tcp|udp|sctp):\/\// }

/** The settings of all programs together: one that is meant for another program in the same environment is no error. */
export const ALL_SETTINGS: ReadonlySet<string> = new Set([
  'PORTCULLIS_ADMIN_SECRET',
  'PORTCULLIS_BRANDING',
  'PORTCULLIS_CHANGES_KEPT_DAYS',
  'PORTCULLIS_CHECK_TUPLES_MAX',
  'PORTCULLIS_CLIENT_ID',
  'PORTCULLIS_CLIENT_SECRET',
  'PORTCULLIS_CLIENT_DOCUMENTS',
  'PORTCULLIS_CLIENT_DOCUMENTS_SCOPE',
  'PORTCULLIS_CONSOLE',
  'PORTCULLIS_DATABASE_CONNECTIONS',
  'PORTCULLIS_DATABASE_HOST',
  'PORTCULLIS_DATABASE_NAME',
  'PORTCULLIS_DATABASE_PARAMETERS',
  'PORTCULLIS_DATABASE_PASSWORD',
  'PORTCULLIS_DATABASE_PORT',
  'PORTCULLIS_DATABASE_SCHEMA',
  'PORTCULLIS_DATABASE_USER',
  'PORTCULLIS_DATA_DIR',
  'PORTCULLIS_DECISIONS_KEPT',
  'PORTCULLIS_DECISIONS_KEPT_DAYS',
  'PORTCULLIS_DPOP_NONCE_SECRET',
  'PORTCULLIS_EMBED_ENTITLEMENTS',
  'PORTCULLIS_ENTITLEMENT_SOURCE_SECRET',
  'PORTCULLIS_ENTITLEMENT_SOURCE_URL',
  'PORTCULLIS_GRPC_CLIENT_CA_FILE',
  'PORTCULLIS_GRPC_LISTEN',
  'PORTCULLIS_GRPC_TLS_CERT_FILE',
  'PORTCULLIS_GRPC_TLS_KEY_FILE',
  'PORTCULLIS_HTTP_LISTEN',
  'PORTCULLIS_ISSUER',
  'PORTCULLIS_KNOWN_PASSWORDS_FILE',
  'PORTCULLIS_LEASE',
  'PORTCULLIS_LOG_ALLOWED_ONE_IN',
  'PORTCULLIS_LOG_LEVEL',
  'PORTCULLIS_MAIL_FROM',
  'PORTCULLIS_MASTER_KEY',
  'PORTCULLIS_METRICS_LISTEN',
  'PORTCULLIS_NEXT_MASTER_KEY',
  'PORTCULLIS_REPLICATION',
  'PORTCULLIS_ROUTE_FILE',
  'PORTCULLIS_SECOND_FACTOR',
  'PORTCULLIS_SERVICE_ACCOUNTS',
  'PORTCULLIS_SERVICE_ACCOUNTS_FILE',
  'PORTCULLIS_SERVICE_ACCOUNT_ISSUER',
  'PORTCULLIS_SERVICE_ACCOUNT_JWKS',
  'PORTCULLIS_SIDECAR_ADMIN_LISTEN',
  'PORTCULLIS_SIDECAR_CONTROL',
  'PORTCULLIS_SIDECAR_LISTEN',
  'PORTCULLIS_SIGNAL_INTERNAL_HOSTS',
  'PORTCULLIS_SMTP_URL',
  'PORTCULLIS_TOKEN',
  'PORTCULLIS_TRUSTED_PROXIES',
  'PORTCULLIS_URL',
])

/** All settings, with `…_FILE` for those whose value may come from a file. */
const settingNames = (): readonly string[] =>
  [...ALL_SETTINGS].flatMap((name) => (/_(?:SECRET|KEY|TOKEN|URL)$/.test(name) ? [name, `${name}_FILE`] : [name]))

const KNOWN: ReadonlySet<string> = new Set(settingNames())

/** Names with our prefix that are no setting of any program. */
export const unknownSettings = (environment: NodeJS.ProcessEnv): readonly string[] =>
  Object.entries(environment).flatMap(([name, value = '']) => {
    const isLink = SERVICE_LINK.test(name) || (LINKED_PORT.name.test(name) && LINKED_PORT.value.test(value))
    return name.startsWith(PREFIX) && !KNOWN.has(name) && !isLink ? [name] : []
  })

/** A suggestion for an unknown setting. The prefix is not compared, since all names have it. */
export function didYouMeanSetting(name: string): string {
  const bare = (one: string): string => one.slice(PREFIX.length)
  const near = nearestName(bare(name), settingNames().map(bare))
  return near === null ? '' : `; did you mean "${PREFIX}${near}"?`
}
