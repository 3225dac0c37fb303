/** The PDP's settings, as `--help` lists them. */
import { LOG_LEVELS } from '../../shared/process/log.ts'
import { TRACING_SETTING } from '../../shared/process/tracing/settings.ts'

/** The help text of each variable. */
export const SETTINGS: readonly (readonly [name: string, meaning: string])[] = [
  ['PORTCULLIS_ISSUER', 'origin of the identity service, the iss of its tokens, such as https://id.example.com'],
  ['PORTCULLIS_ADMIN_SECRET', 'secret of the client admin, which the first start creates; 16 to 256 characters'],
  [
    'PORTCULLIS_MASTER_KEY',
    'key that encrypts stored secrets: 32 bytes in base64, such as from: openssl rand -base64 32',
  ],
  [
    'PORTCULLIS_NEXT_MASTER_KEY',
    'the key that follows, while rotate-master-key goes from one to the other; both decrypt (none)',
  ],
  ['PORTCULLIS_HTTP_LISTEN', 'host:port of HTTP (127.0.0.1:8080)'],
  ['PORTCULLIS_GRPC_LISTEN', 'host:port of gRPC; needs TLS unless it is a loopback address (127.0.0.1:9090)'],
  ['PORTCULLIS_GRPC_TLS_CERT_FILE', 'PEM file with the certificate chain; reloaded when it changes'],
  ['PORTCULLIS_GRPC_TLS_KEY_FILE', 'PEM file with its private key'],
  ['PORTCULLIS_GRPC_CLIENT_CA_FILE', 'PEM file with a CA; clients with its certificates may call'],
  [
    'PORTCULLIS_SERVICE_ACCOUNT_ISSUER',
    'issuer of a Kubernetes cluster whose ServiceAccount tokens (audience portcullis-pdp) may call',
  ],
  ['PORTCULLIS_SERVICE_ACCOUNTS', 'the accounts that may call: namespace/name or namespace/*, separated by commas'],
  ['PORTCULLIS_SERVICE_ACCOUNTS_FILE', 'a file with more of them, one a line, read again when it changes'],
  ['PORTCULLIS_SERVICE_ACCOUNT_JWKS', 'URL or file of the key set of that issuer; by default the one in its metadata'],
  ['PORTCULLIS_METRICS_LISTEN', 'host:port of /metrics, /livez and /readyz (127.0.0.1:9091)'],
  [
    'PORTCULLIS_TRUSTED_PROXIES',
    'addresses or CIDR blocks of proxies whose X-Forwarded-For or Forwarded field is trusted (none)',
  ],
  [
    'PORTCULLIS_EMBED_ENTITLEMENTS',
    'claims-mode: tokens carry entitlements with enforcement Claims; off: never (claims-mode)',
  ],
  [
    'PORTCULLIS_SECOND_FACTOR',
    'offered: people may add one; required: each sign-in needs one, and people without one add it first (offered)',
  ],
  [
    'PORTCULLIS_CLIENT_DOCUMENTS',
    'host or host:port, separated by commas, or any: a client whose id is the https URL of a document there needs no registration (none)',
  ],
  [
    'PORTCULLIS_CLIENT_DOCUMENTS_SCOPE',
    'scopes that such a client may ask people for, separated by spaces (openid profile offline_access)',
  ],
  ['PORTCULLIS_ENTITLEMENT_SOURCE_URL', 'URL of the system that owns the entitlements (the database owns them)'],
  ['PORTCULLIS_ENTITLEMENT_SOURCE_SECRET', 'bearer token for requests to that system, also as …_FILE'],
  [
    'PORTCULLIS_SIGNAL_INTERNAL_HOSTS',
    'host or host:port, separated by commas, that may be called for security events and logout tokens although its addresses are internal, also by http (none)',
  ],
  [
    'PORTCULLIS_SMTP_URL',
    'server for mail to people, such as smtps://user:password@mail.example.com:465, also as …_FILE',
  ],
  ['PORTCULLIS_MAIL_FROM', 'sender of that mail, such as Example <no-reply@example.com>'],
  [
    'PORTCULLIS_KNOWN_PASSWORDS_FILE',
    'file of SHA-1 digests, sorted, of passwords that nobody may choose (a short built-in list)',
  ],
  ['PORTCULLIS_CHANGES_KEPT_DAYS', 'days after which entries of the log of changes are deleted (never)'],
  ['PORTCULLIS_CONSOLE', 'on, off: the console for people at /console (on when HTTP listens on loopback only)'],
  [
    'PORTCULLIS_BRANDING',
    'name, logo, color, terms, privacy and support of the pages that people see, as a JSON object (none)',
  ],
  [
    'PORTCULLIS_DECISIONS_KEPT',
    'how many of the latest decisions the console can show, in memory; 0 to 1000000 (10000)',
  ],
  [
    'PORTCULLIS_DECISIONS_KEPT_DAYS',
    'days after which denials and counts of decisions, which all PDPs keep in the database, are deleted; 0: none are kept; up to 365 (7 with the console, else 0)',
  ],
  [
    'PORTCULLIS_CHECK_TUPLES_MAX',
    'most relationships that one check may visit; a check that needs more is an error, never an allow; 1000 to 1000000 (100000)',
  ],
  ['PORTCULLIS_DATA_DIR', 'directory of generated secrets and of the embedded PostgreSQL (.data)'],
  ['PORTCULLIS_LOG_LEVEL', `${LOG_LEVELS.join(', ')} (info)`],
  [
    'PORTCULLIS_LOG_ALLOWED_ONE_IN',
    'one in this many allowed decisions is logged, 1 to 1000000; every denial is logged (1)',
  ],
  [
    'PORTCULLIS_DATABASE_CONNECTIONS',
    'most connections to PostgreSQL at once, 4 to 200: half for reads, half for transactions; a heartbeat needs one more, and so does a shared lease (20)',
  ],
  [
    'PORTCULLIS_DATABASE_SCHEMA',
    'schema of the tables in that database, created if need be (the first of its search_path)',
  ],
  [
    'PORTCULLIS_LEASE',
    'sole: while no other process writes, this one answers from memory, without asking PostgreSQL; any other write waits up to 2.5 s. shared: the same for several processes; every write waits for all of them, and needs one connection more each (off)',
  ],
  [
    'PORTCULLIS_REPLICATION',
    'synchronous: the primary of DATABASE_URL acknowledges no commit before a standby has it; then a former primary gives no answer after a failover (not assumed)',
  ],
  ...(
    [
      ['HOST', 'in place of DATABASE_URL, its parts: the host'],
      ['PORT', 'its port (5432)'],
      ['USER', 'its user'],
      ['PASSWORD', 'its password, as it is'],
      ['NAME', 'its database'],
      ['PARAMETERS', 'its parameters, such as sslmode=verify-full (none)'],
    ] as const
  ).map(([part, meaning]) => [`PORTCULLIS_DATABASE_${part}`, meaning] as const),
  ['DATABASE_URL', 'URL of PostgreSQL; without it an embedded PostgreSQL runs in the data directory'],
  [
    'REDIS_URL',
    'URL of a Redis in which replicas share entitlement values and DPoP proofs (each process keeps its own)',
  ],
  TRACING_SETTING,
]
