import { describe, expect, test } from 'vitest'
import { parseMasterKey, readConfig } from '../../../../pdp/server/runtime/config.ts'
import { SETTINGS } from '../../../../pdp/server/runtime/settings-help.ts'
import { ConfigError } from '../../../../pdp/shared/process/exit.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
function problems(environment: NodeJS.ProcessEnv): readonly string[] {
  try {
    readConfig(environment)
  } catch (err) {
    if (err instanceof ConfigError) return err.problems
    throw err
  }
  return []
}

describe('readConfig', () => {
  test('gives clients that nobody registered few scopes, and the hosts that are named', () => {
    const read = (more: object) => readConfig({ HOME: '/root', ...more }).clientDocuments
    expect(read({ PORTCULLIS_CLIENT_DOCUMENTS: 'a.example, b.example:8443' })).toEqual({
      hosts: new Set(['a.example', 'b.example:8443']),
      scope: 'openid profile offline_access',
    })
    expect(read({ PORTCULLIS_CLIENT_DOCUMENTS: 'any', PORTCULLIS_CLIENT_DOCUMENTS_SCOPE: 'a b' })).toEqual({
      hosts: 'any',
      scope: 'a b',
    })
  })

  test.each([
    [{ PORTCULLIS_CLIENT_DOCUMENTS: 'https://a.example' }, 'must list host'],
    [{ PORTCULLIS_CLIENT_DOCUMENTS: '*' }, 'must list host'],
    [{ PORTCULLIS_CLIENT_DOCUMENTS_SCOPE: 'openid' }, 'needs PORTCULLIS_CLIENT_DOCUMENTS'],
    [{ PORTCULLIS_CLIENT_DOCUMENTS: 'any', PORTCULLIS_CLIENT_DOCUMENTS_SCOPE: 'a  b' }, 'one space between'],
    [{ PORTCULLIS_CLIENT_DOCUMENTS: 'any', PORTCULLIS_CLIENT_DOCUMENTS_SCOPE: 'decisions:read' }, 'never a person'],
  ])('refuses %j', (settings, message) => {
    expect(() => readConfig({ HOME: '/root', ...settings })).toThrow(message)
  })

  test('needs nothing on loopback', () => {
    expect(readConfig({ HOME: '/root' })).toEqual({
      issuer: 'http://127.0.0.1:8080',
      adminSecret: null,
      masterKey: null,
      nextMasterKey: null,
      http: { host: '127.0.0.1', port: 8080 },
      grpc: { host: '127.0.0.1', port: 9090 },
      grpcTls: null,
      serviceAccounts: null,
      metrics: { host: '127.0.0.1', port: 9091 },
      trustedProxies: [],
      databaseUrl: null,
      databaseConnections: 20,
      databaseSchema: null,
      replication: null,
      lease: null,
      secondFactor: 'offered',
      redisUrl: null,
      entitlementSource: null,
      embedEntitlements: 'claims-mode',
      internalHosts: [],
      proxy: null,
      mail: { folder: `${process.cwd()}/.data/mail` },
      knownPasswordsFile: null,
      branding: {},
      changesKeptDays: null,
      clientDocuments: null,
      console: true,
      decisionsKept: 10_000,
      decisionsKeptDays: 7,
      checkTuplesMax: 100_000,
      dataDirectory: `${process.cwd()}/.data`,
      logLevel: 'info',
      logAllowedOneIn: 1,
      tracing: null,
    })
  })

  test('takes everything that is set', () => {
    const config = readConfig({
      PORTCULLIS_ISSUER: 'https://id.example.com',
      PORTCULLIS_ADMIN_SECRET: 'x'.repeat(16),
      PORTCULLIS_MASTER_KEY: KEY,
      PORTCULLIS_HTTP_LISTEN: ':80',
      PORTCULLIS_GRPC_LISTEN: '[::1]:1',
      PORTCULLIS_METRICS_LISTEN: '0.0.0.0:2',
      PORTCULLIS_TRUSTED_PROXIES: '10.0.3.7, fd00:1::/64,::ffff:192.0.2.0/120',
      PORTCULLIS_EMBED_ENTITLEMENTS: 'off',
      PORTCULLIS_SECOND_FACTOR: 'required',
      PORTCULLIS_REPLICATION: 'synchronous',
      PORTCULLIS_CHANGES_KEPT_DAYS: '90',
      PORTCULLIS_DATABASE_CONNECTIONS: '4',
      PORTCULLIS_SIGNAL_INTERNAL_HOSTS: 'idp.auth.svc, 127.0.0.1:8443',
      PORTCULLIS_SMTP_URL: 'smtps://me:secret@mail.example.com:465',
      PORTCULLIS_MAIL_FROM: 'Example <no-reply@example.com>',
      PORTCULLIS_KNOWN_PASSWORDS_FILE: '/var/lib/known',
      PORTCULLIS_DECISIONS_KEPT: '0',
      PORTCULLIS_DECISIONS_KEPT_DAYS: '30',
      PORTCULLIS_CHECK_TUPLES_MAX: '1000',
      PORTCULLIS_DATA_DIR: '/var/lib/portcullis',
      PORTCULLIS_LOG_LEVEL: 'warn',
      DATABASE_URL: 'postgresql://a:b@db:5432,[::1]:5433,db3/portcullis?target_session_attrs=read-write',
    })
    expect(config).toMatchObject({
      issuer: 'https://id.example.com',
      databaseConnections: 4,
      internalHosts: ['idp.auth.svc', '127.0.0.1:8443'],
      mail: { url: 'smtps://me:secret@mail.example.com:465', from: 'Example <no-reply@example.com>' },
      knownPasswordsFile: '/var/lib/known',
      http: { host: '::', port: 80 },
      trustedProxies: [
        { address: '10.0.3.7', bits: 32 },
        { address: 'fd00:1::', bits: 64 },
        { address: '192.0.2.0', bits: 24 },
      ],
      embedEntitlements: 'off',
      changesKeptDays: 90,
      console: false,
      decisionsKept: 0,
      decisionsKeptDays: 30,
      checkTuplesMax: 1_000,
    })
    expect(config.masterKey).toEqual(Buffer.alloc(32, 7))
  })

  test('takes the parts of the database’s URL, whatever the password has', () => {
    const parts = {
      PORTCULLIS_DATABASE_HOST: 'db-rw',
      PORTCULLIS_DATABASE_USER: 'app',
      PORTCULLIS_DATABASE_PASSWORD: 'p@ss:/?#[]%20 w',
      PORTCULLIS_DATABASE_NAME: 'app',
    }
    const of = (more: object) => new URL(readConfig({ HOME: '/root', ...parts, ...more }).databaseUrl ?? '')
    const url = of({ PORTCULLIS_DATABASE_PORT: '5433', PORTCULLIS_DATABASE_PARAMETERS: 'sslmode=require' })
    expect([url.host, url.pathname, url.search]).toEqual(['db-rw:5433', '/app', '?sslmode=require'])
    expect([url.username, decodeURIComponent(url.password)]).toEqual(['app', 'p@ss:/?#[]%20 w'])
    expect(of({}).host).toBe('db-rw:5432')
    const bad = (more: object) => problems({ ...parts, ...more })
    expect(bad({ DATABASE_URL: 'postgresql://a:b@db/x' })).toEqual([expect.stringMatching(/are both set/)])
    for (const name of Object.keys(parts))
      expect(bad({ [name]: undefined })).toEqual([expect.stringMatching(/must be set together/)])
    for (const host of ['a,b', 'a@b', 'a/b', 'a:1', 'a b', '::1'])
      expect(bad({ PORTCULLIS_DATABASE_HOST: host })).toEqual([expect.stringMatching(/must name one host/)])
    for (const port of ['x', '99999', '1/x'])
      expect(bad({ PORTCULLIS_DATABASE_PORT: port })).toEqual([expect.stringMatching(/PORT/)])
    expect(bad({ PORTCULLIS_DATABASE_PARAMETERS: 'target_session_attrs=any' })).toEqual([
      expect.stringMatching(/target_session_attrs/),
    ])
    expect(bad({ PORTCULLIS_DATABASE_HOST: 'a@hunter2' }).join()).not.toContain('hunter2')
  })

  test('demands issuer, secret and key once others can reach it', () => {
    expect(problems({ PORTCULLIS_HTTP_LISTEN: '0.0.0.0:8080' })).toEqual(
      ['PORTCULLIS_ISSUER', 'PORTCULLIS_ADMIN_SECRET', 'PORTCULLIS_MASTER_KEY'].map(
        (name) => `${name} is required when PORTCULLIS_HTTP_LISTEN is not a loopback address`,
      ),
    )
  })

  test('reports all mistakes together', () => {
    const found = problems({
      PORTCULLIS_HTTP_LISTEN: 'x',
      PORTCULLIS_EMBED_ENTITLEMENTS: 'on',
      PORTCULLIS_LOG_LEVEL: '',
      PORTCULLIS_X: '1',
    })
    expect(found).toHaveLength(4)
  })

  test.each([
    [
      'PORTCULLIS_ISSUER',
      [
        'id.example.com',
        'https://id.example.com/',
        'https://id.example.com/path',
        'http://id.example.com',
        'https://a@b.c',
        'https://ID.example.com',
        'ftp://x',
      ],
    ],
    ['PORTCULLIS_ADMIN_SECRET', ['short', 'x'.repeat(257), 'spaces are not in it']],
    ['PORTCULLIS_MASTER_KEY', ['short', 'x'.repeat(42), 'x'.repeat(64), `${KEY}=`]],
    ['PORTCULLIS_HTTP_LISTEN', ['8080', 'localhost', '127.0.0.1:99999']],
    ['PORTCULLIS_GRPC_LISTEN', ['0.0.0.0:9090', ':9090', 'pdp.example:9090']],
    [
      'DATABASE_URL',
      [
        ...[
          'mysql://x',
          'host=x',
          '',
          'postgres://a,',
          'postgres://,a',
          'postgres://u:p@a:1,:2/x',
          'postgres://a:1,b:x/y',
        ],
        ...['postgres://a/x?target_session_attrs=any', 'postgres://a,b/x?target_session_attrs=standby'],
      ],
    ],
    ['REDIS_URL', ['localhost:6379', 'http://redis:6379', 'redis://', 'redis', '']],
    [
      'PORTCULLIS_ENTITLEMENT_SOURCE_URL',
      [
        'billing.example.com',
        'http://billing.example.com/gates',
        'https://user:word@billing.example.com',
        'https://billing.example.com/#gates',
        'ftp://127.0.0.1/gates',
      ],
    ],
    ['PORTCULLIS_ENTITLEMENT_SOURCE_SECRET', ['']],
    ['PORTCULLIS_SIGNAL_INTERNAL_HOSTS', ['', 'https://idp.example', 'idp.example/x', 'a,,b', 'user@idp', 'idp:99999']],
    ['PORTCULLIS_SMTP_URL', ['', 'mail.example.com', 'https://mail.example.com', 'smtp:', 'smtp://mail.example.com']],
    ['PORTCULLIS_MAIL_FROM', ['', 'nobody', 'a@b\r\nBcc: c@d', 'A <a@b>, C <c@d>', 'a@b,c@d', 'no-reply@example.com']],
    ['PORTCULLIS_CHECK_TUPLES_MAX', ['', '0', '999', '1000001', '1e5', '100,000', '-5000', '5000.5', '٣٣٣٣']],
    ['PORTCULLIS_CHANGES_KEPT_DAYS', ['', '0', '-1', '1.5', '100000', '30d', '٣']],
    [
      'PORTCULLIS_TRUSTED_PROXIES',
      [
        '',
        ',',
        '10.0.0.1,',
        'ingress',
        '0.0.0.0/0',
        '::/0',
        '10.0.0.1/8',
        '10.0.0.0/33',
        '10.0.0.0/08',
        'fe80::1%eth0',
        '10.0.0.1 10.0.0.2',
      ],
    ],
    ['PORTCULLIS_DATABASE_CONNECTIONS', ['', '3', '201', '4.5', '-8', '1e2', 'many']],
    ['PORTCULLIS_LEASE', ['', 'on', 'Sole', 'node', '2000', 'SHARED', 'sole,shared']],
    ['PORTCULLIS_DATA_DIR', ['']],
  ])('refuses a bad %s', (name, values) => {
    for (const value of values) {
      const found = problems({ [name]: value })
      expect([value, found.length, found[0]?.startsWith(name)]).toEqual([value, 1, true])
    }
  })

  test.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ['replication of the embedded PostgreSQL', { PORTCULLIS_REPLICATION: 'synchronous' }, /needs DATABASE_URL/],
    [
      'a shared lease beside synchronous replication',
      { PORTCULLIS_LEASE: 'shared', PORTCULLIS_REPLICATION: 'synchronous', DATABASE_URL: 'postgresql://a@b/c' },
      /PORTCULLIS_LEASE and PORTCULLIS_REPLICATION are both set; set one/,
    ],
    [
      'a lease beside synchronous replication',
      { PORTCULLIS_LEASE: 'sole', PORTCULLIS_REPLICATION: 'synchronous', DATABASE_URL: 'postgresql://a@b/c' },
      /PORTCULLIS_LEASE and PORTCULLIS_REPLICATION are both set; set one/,
    ],
    ['a certificate without a key', { PORTCULLIS_GRPC_TLS_CERT_FILE: 'a' }, /must be set together/],
    ['a key without a certificate', { PORTCULLIS_GRPC_TLS_KEY_FILE: 'a' }, /must be set together/],
    ['a client CA without TLS', { PORTCULLIS_GRPC_CLIENT_CA_FILE: 'a' }, /CLIENT_CA_FILE needs/],
    [
      'an entitlement source without a secret',
      { PORTCULLIS_ENTITLEMENT_SOURCE_URL: 'https://a.example' },
      /must be set together/,
    ],
    ['the secret of no source', { PORTCULLIS_ENTITLEMENT_SOURCE_SECRET: 'x'.repeat(16) }, /must be set together/],
    [
      'a short secret of a source',
      { PORTCULLIS_ENTITLEMENT_SOURCE_URL: 'https://a.example', PORTCULLIS_ENTITLEMENT_SOURCE_SECRET: 'x'.repeat(15) },
      /SECRET must have/,
    ],
    ['a key set of no issuer', { PORTCULLIS_SERVICE_ACCOUNT_JWKS: 'a' }, /JWKS needs/],
    [
      'a cluster without a word whose accounts may call',
      { PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://a' },
      /must be set together/,
    ],
    ['a file of accounts of no cluster', { PORTCULLIS_SERVICE_ACCOUNTS_FILE: 'a' }, /must be set together/],
    ['accounts of no cluster', { PORTCULLIS_SERVICE_ACCOUNTS: 'shop/*' }, /must be set together/],
  ])('refuses %s', (_, environment, message) => {
    expect(problems(environment)).toEqual([expect.stringMatching(message)])
  })

  test.each([
    '*',
    '*/*',
    'shop',
    'shop/',
    '/checkout',
    'shop/*,',
    'shop/a b',
    'Shop/*',
    'shop/check*',
    'a/b/c',
    'shop:*',
  ])('refuses %j as the service accounts that may call', (accounts) => {
    const found = problems({
      PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://a',
      PORTCULLIS_SERVICE_ACCOUNTS: accounts,
    })
    expect(found).toEqual([expect.stringMatching(/^PORTCULLIS_SERVICE_ACCOUNTS must list namespace\/name/)])
  })

  test('takes gRPC with TLS on every address', () => {
    const { grpc, grpcTls, serviceAccounts } = readConfig({
      PORTCULLIS_GRPC_LISTEN: ':9090',
      PORTCULLIS_GRPC_TLS_CERT_FILE: '/tls/tls.crt',
      PORTCULLIS_GRPC_TLS_KEY_FILE: '/tls/tls.key',
      PORTCULLIS_GRPC_CLIENT_CA_FILE: '/tls/ca.crt',
      PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://kubernetes.default.svc.cluster.local',
      PORTCULLIS_SERVICE_ACCOUNTS: 'shop/*, payments/checkout',
    })
    expect({ grpc, grpcTls, serviceAccounts }).toEqual({
      grpc: { host: '::', port: 9090 },
      grpcTls: { certFile: '/tls/tls.crt', keyFile: '/tls/tls.key', clientCaFile: '/tls/ca.crt' },
      serviceAccounts: {
        issuer: 'https://kubernetes.default.svc.cluster.local',
        jwks: null,
        callers: ['shop/*', 'payments/checkout'],
        callersFile: null,
      },
    })
  })

  test('takes an entitlement source and a Redis', () => {
    const { entitlementSource, redisUrl } = readConfig({
      PORTCULLIS_ENTITLEMENT_SOURCE_URL: 'https://billing.example.com/gates?v=1',
      PORTCULLIS_ENTITLEMENT_SOURCE_SECRET: 'x'.repeat(16),
      REDIS_URL: 'rediss://user:word@cache:6379/1',
    })
    expect(entitlementSource).toEqual({ url: 'https://billing.example.com/gates?v=1', secret: 'x'.repeat(16) })
    expect(redisUrl).toBe('rediss://user:word@cache:6379/1')
  })

  test('never repeats what may be a secret', () => {
    const secret = 'hunter2 hunter2!'
    const found = problems({
      PORTCULLIS_ADMIN_SECRET: secret,
      PORTCULLIS_MASTER_KEY: secret,
      DATABASE_URL: `x:${secret}`,
      REDIS_URL: `x:${secret}`,
    })
    expect(found).toHaveLength(4)
    expect(found.join()).not.toContain('hunter2')
  })

  test('is described in full by the help', () => {
    // To the specification of OpenTelemetry an empty variable is one that is not set.
    const names = SETTINGS.map(([name]) => name).filter((name) => !name.startsWith('OTEL_'))
    expect(problems(Object.fromEntries(names.map((name) => [name, '']))).toSorted()).toEqual(
      names.map((name) => `${name} is set but empty`).toSorted(),
    )
  })
})

describe('parseMasterKey', () => {
  test('takes 32 bytes in base64 and base64url', () => {
    const bytes = Buffer.alloc(32, 0xfb)
    expect(parseMasterKey(bytes.toString('base64'))).toEqual(bytes)
    expect(parseMasterKey(bytes.toString('base64url'))).toEqual(bytes)
  })
})
