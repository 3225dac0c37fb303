/** Rules of kinds that people have in front of their services, with the words of other proxies said in ours, and requests for each. */

/** A request, and what must come out. */
export type Play = {
  readonly line: string
  readonly status: number
  /** Claims of the token; null: none is sent. */
  readonly as?: object | null
  readonly fields?: readonly string[]
  readonly body?: unknown
  /** Fields in which the token stands for TOKEN. */
  readonly put?: readonly string[]
  readonly host?: string
  /** Whether the service gets it; absent: with 200 alone. */
  readonly reaches?: boolean
  /** Fields that the service must get; null: must not. */
  readonly gets?: { readonly [name: string]: string | null }
  /** Members of its line in the log, and texts that no line has. */
  readonly logs?: object
  readonly hides?: string
  /** Fields of the answer; null: must not be there. */
  readonly answers?: { readonly [name: string]: string | null }
}
export type Kind = {
  readonly routes: string
  readonly extra?: string
  /** In place of members that every other file here has. */
  readonly change?: (text: string) => string
  readonly plays: readonly Play[]
}

export const play = (line: string, status: number, more: Omit<Play, 'line' | 'status'> = {}): Play => ({
  line,
  status,
  ...more,
})
/** What the PDP allows. */
export const ALLOWED = [
  ...[
    'alice member project:1',
    'alice viewer issue:5',
    'alice viewer y:1',
    'alice sender chain:1',
    'alice owner bucket:1',
  ],
  ...[
    'alice viewer preview:pr-7',
    '* viewer page:9',
    'alice editor op:1',
    'alice viewer org:acme',
    'alice viewer top:5',
  ],
]

export const KINDS: { readonly [name: string]: Kind } = {
  'W: lists of a kind beside one issue': {
    routes: 'GET /projects/{id}/{kind}/mine: member project:{id}\nGET /projects/{id}/issues/{iid}: viewer issue:{iid}',
    plays: [
      play('GET /projects/1/labels/mine', 200),
      play('GET /projects/2/labels/mine', 403),
      play('GET /projects/1/issues/5', 200),
      play('GET /projects/1/issues/mine', 400),
    ],
  },
  'W: another method at the path of both': {
    routes: 'POST /{a}/x: signed_in\nGET /y/{b}: viewer y:{b}',
    plays: [
      ...[play('GET /y/1', 200), play('POST /a/x', 200), play('GET /a/x', 405)],
      ...[play('POST /y/x', 400), play('GET /y/x', 400)],
    ],
  },
  'W: three that agree': {
    routes: 'GET /a/{x}/**: signed_in\nGET /{y}/b/**: signed_in\nGET /{y}/{z}/c: signed_in',
    plays: [
      play('GET /a/b/c', 200),
      play('GET /a/b/c', 401, { as: null }),
      play('GET /a/b/', 200),
      play('GET /q/r/s', 404),
    ],
  },
  'B: methods of JSON-RPC': {
    routes:
      'POST /rpc: {any: [{all: [{equals: {body.method: eth_call}}, signed_in]}, {all: [{equals: {body.method: eth_send}}, "sender chain:{body.chain}"]}]}',
    plays: [
      play('POST /rpc', 200, { body: { method: 'eth_call' } }),
      play('POST /rpc', 200, { body: { method: 'eth_send', chain: 1 } }),
      play('POST /rpc', 403, { body: { method: 'eth_send', chain: 2 } }),
      play('POST /rpc', 403, { body: { method: 'eth_sign', chain: 1 } }),
      play('POST /rpc', 400, { body: { chain: 1 } }),
      play('POST /rpc', 400, { body: [{ method: 'eth_call' }] }),
      play('POST /rpc', 400, { body: { method: 'eth_call', Method: 'eth_send' } }),
    ],
  },
  'B: operations that a field names': {
    routes:
      'POST /: {any: [{all: [{equals: {header.x-amz-target: DB.Get}}, scope read]}, {all: [{equals: {header.x-amz-target: DB.Put}}, scope write]}]}',
    plays: [
      play('POST /', 200, { as: { scope: 'read' }, fields: ['X-Amz-Target: DB.Get'] }),
      play('POST /', 403, { as: { scope: 'read' }, fields: ['X-Amz-Target: DB.Put'] }),
      play('POST /', 403, { as: { scope: 'read' }, fields: ['X-Amz-Target: db.get'] }),
      play('POST /', 400, { as: { scope: 'read' } }),
      play('POST /', 400, { as: { scope: 'read' }, fields: ['X-Amz-Target: DB.Get', 'X-Amz-Target: DB.Put'] }),
    ],
  },
  'B: parts of an object that the query names': {
    routes:
      'GET /{bucket}/{key}: {any: [{all: [{equals: {query.acl: ""}}, "owner bucket:{bucket}"]}, {all: [{equals: {query.list-type: "2"}}, signed_in]}]}',
    plays: [
      ...[play('GET /1/k?acl', 200), play('GET /2/k?acl', 403), play('GET /2/k?list-type=2', 200)],
      ...[play('GET /1/k', 400), play('GET /1/k?acl&acl', 400), play('GET /1/k?ACL', 400)],
    ],
  },
  'B: true and false of a body': {
    routes:
      'POST /create: {any: [{all: [{equals: {body.Host.Privileged: false}}, signed_in]}, {all: [{equals: {body.Host.Privileged: true}}, scope admin]}]}',
    plays: [
      play('POST /create', 200, { body: { Host: { Privileged: false } } }),
      play('POST /create', 403, { body: { Host: { Privileged: true } } }),
      play('POST /create', 200, { body: { Host: { Privileged: true } }, as: { scope: 'admin' } }),
      ...['false', '', 0, null, [], {}].map((value) =>
        play('POST /create', 400, { body: { Host: { Privileged: value } } }),
      ),
      play('POST /create', 400, { body: { Host: {} } }),
      play('POST /create', 400, { body: { Host: { Privileged: false, privileged: true } } }),
    ],
  },
  'B: names of queries with brackets and signs': {
    routes: 'GET /list: viewer org:{query.filter[org]}\nGET /odata: viewer top:{query.$top}',
    plays: [
      ...[play('GET /list?filter[org]=acme', 200), play('GET /list?filter%5Borg%5D=acme', 200)],
      ...[play('GET /list?filter[org]=b', 403), play('GET /list?filter.org=acme', 400), play('GET /list', 400)],
      ...[play('GET /list?filter[org]=acme&filter[Org]=b', 400), play('GET /list?filter[org]=acme&filter=b', 400)],
      ...[play('GET /odata?$top=5', 200), play('GET /odata?$top=5&top=6', 400), play('GET /odata?top=5', 400)],
    ],
  },
  'G: names of people, archives and methods after a colon': {
    routes:
      'GET /@{user}: public\nGET /~{user}/**: public\nGET /{f}.tar.gz: public\nPOST /v1/op/{id}:archive: editor op:{id}\nPOST /v1/op:batchGet: signed_in',
    plays: [
      ...[
        play('GET /@ada', 200, { as: null }),
        play('GET /@', 404),
        play('GET /~ada/x', 200),
        play('GET /ada.tar.gz', 200),
      ],
      ...[play('GET /ada.tar', 404), play('GET /.tar.gz', 404), play('POST /v1/op/1:archive', 200)],
      ...[play('POST /v1/op/2:archive', 403), play('POST /v1/op/1:Archive', 404), play('POST /v1/op:batchGet', 200)],
      ...[play('POST /v1/op/1%3Aarchive', 404), play('POST /v1/op/:archive', 404)],
    ],
  },
  'E: networks or a sign-in': {
    routes:
      'GET /in: {check: {any: [{equals: {client.address: 127.0.0.0/8}}, {equals: {client.address: "fd00::/8"}}, signed_in]}, guests: true}\nGET /out: {check: {any: [{equals: {client.address: 10.0.0.0/8}}, signed_in]}, guests: true}',
    plays: [
      ...[play('GET /in', 200, { as: null }), play('GET /out', 401, { as: null }), play('GET /out', 200)],
      play('GET /out', 401, { as: null, fields: ['X-Forwarded-For: 10.0.0.1'] }),
    ],
  },
  'E: pages of everybody': {
    routes: 'GET /pages/{id}: {check: "viewer page:{id}", guests: true}\nGET /feed: {public: with_identity}',
    extra: 'guest_organization: acme',
    plays: [
      ...[
        play('GET /pages/9', 200, { as: null, gets: { 'x-auth-subject': null } }),
        play('GET /pages/8', 401, { as: null }),
      ],
      play('GET /pages/8', 403),
      play('GET /feed', 200, { gets: { 'x-auth-subject': 'alice' } }),
      play('GET /feed', 200, { as: null, fields: ['X-Auth-Subject: root'], gets: { 'x-auth-subject': null } }),
      play('GET /feed', 200, { as: { exp: 1 }, gets: { 'x-auth-subject': null } }),
    ],
  },
  'F: a host for each preview': {
    routes: 'GET {preview}.preview.test/x: viewer preview:{preview}\nGET /x: signed_in',
    extra: 'probe_paths: [/healthz]',
    plays: [
      ...[play('GET /x', 200, { host: 'pr-7.preview.test' }), play('GET /x', 403, { host: 'pr-8.preview.test' })],
      ...[play('GET /x', 200, { host: 'PR-7.Preview.Test' }), play('GET /x', 421, { host: 'a.pr-7.preview.test' })],
      ...[play('GET /x', 421, { host: 'preview.test' }), play('GET /x', 400, { host: '*.preview.test' })],
      ...[play('GET /x', 421, { host: '10.1.2.3:8080' }), play('GET /healthz', 200, { host: '[::1]:8080', as: null })],
    ],
  },
  'A: pages of every preview': {
    routes: 'GET /x: signed_in\nPUT /x: signed_in',
    extra: 'cors: {origins: ["https://*.preview.test", "https://app.test:8443"], credentials: true}',
    plays: [
      ...['https://pr-7.preview.test', 'https://app.test:8443'].map((origin) =>
        play('GET /x', 401, {
          as: null,
          fields: [`Origin: ${origin}`],
          answers: {
            'access-control-allow-origin': origin,
            'access-control-allow-credentials': 'true',
            vary: 'Origin',
          },
        }),
      ),
      ...[
        ...['https://preview.test', 'https://a.b.preview.test', 'http://a.preview.test', 'https://a.preview.test:444'],
        ...[
          'https://a.preview.test.evil.test',
          'https://apreview.test',
          'https://*.preview.test',
          'https://.preview.test',
        ],
        ...['null', 'https://a/.preview.test', 'https://a@b.preview.test', 'https://evil.test#.preview.test'],
      ].map((origin) =>
        play('GET /x', 200, { fields: [`Origin: ${origin}`], answers: { 'access-control-allow-origin': null } }),
      ),
      play('OPTIONS /x', 204, {
        as: null,
        fields: ['Origin: https://b.preview.test', 'Access-Control-Request-Method: PUT'],
        answers: { 'access-control-allow-origin': 'https://b.preview.test' },
      }),
    ],
  },
  'O: connections of pages of every preview': {
    routes:
      'GET /ws: {check: signed_in, upgrade: [websocket], origins: ["https://*.preview.test"], token_from: {subprotocol: true}}\nGET /events: {check: signed_in, origins: ["https://*.preview.test"], token_from: {cookie: __Host-t}}',
    plays: [
      play('GET /ws', 403, { fields: ['Origin: https://preview.test', ...upgrade()] }),
      play('GET /ws', 403, { fields: ['Origin: https://a.b.preview.test', ...upgrade()] }),
      play('GET /ws', 401, { as: null, fields: ['Origin: https://a.preview.test', ...upgrade()] }),
      play('GET /ws', 400, {
        fields: ['Origin: https://a.preview.test', 'Sec-WebSocket-Protocol: graphql-ws, bearer, x', ...upgrade()],
      }),
      play('GET /events', 403, {
        as: null,
        fields: ['Accept: text/event-stream', 'Cookie: __Host-t=x', 'Origin: https://evil.test'],
      }),
      play('GET /events', 401, {
        as: null,
        fields: ['Accept: text/event-stream', 'Cookie: __Host-t=x', 'Origin: https://a.preview.test'],
      }),
    ],
  },
  'C: claims that issuers name by URLs, in name spaces and with dots': {
    routes: `GET /k8s: {equals: {claims.kubernetes.io.namespace: prod}}
GET /url: {equals: {"claims.https://app.test/roles": admin}}
GET /space: {equals: {"claims.cognito:groups": admin}}
GET /org: viewer org:{claims.https://app.test/org}
GET /mfa: {equals: {claims.mfa: true}}`,
    plays: [
      ...[play('GET /k8s', 200, { as: { 'kubernetes.io': { namespace: 'prod' } } }), play('GET /k8s', 403)],
      play('GET /k8s', 403, {
        as: { 'kubernetes.io': { namespace: 'prod' }, kubernetes: { io: { namespace: 'dev' } } },
      }),
      play('GET /url', 200, { as: { 'https://app.test/roles': ['user', 'admin'] } }),
      play('GET /url', 403, { as: { 'https://app.test/roles': 'administrator' } }),
      play('GET /url', 403, { as: { https: { '//app': { test: { '/roles': 'admin' } } } } }),
      play('GET /space', 200, { as: { 'cognito:groups': ['admin'] } }),
      play('GET /space', 403, { as: { cognito: { groups: ['admin'] } } }),
      ...[play('GET /org', 200, { as: { 'https://app.test/org': 'acme' } }), play('GET /org', 403)],
      play('GET /org', 403, { as: { 'https://app.test/org': ['acme'] } }),
      play('GET /mfa', 200, { as: { mfa: true } }),
      ...[false, 1, null, {}, []].map((mfa) => play('GET /mfa', 403, { as: { mfa } })),
    ],
  },
  'N: fields of applications': {
    routes: 'GET /x: signed_in',
    extra:
      'identity_headers: {X-WEBAUTH-ROLE: {claims.https://app.test/role}, Remote-Groups: {claims.groups}, X-Goog-Authenticated-User-Email: "accounts.google.com:{claims.email}"}\nassertion: {header: Cf-Access-Jwt-Assertion, audience: a, keys_file: k}',
    plays: [
      play('GET /x', 200, {
        as: { 'https://app.test/role': 'Admin', groups: ['a', 'b c'], email: 'a@b.test', email_verified: true },
        fields: ['X-WebAuth-Role: Root', 'X_WEBAUTH_ROLE: Root', 'Remote_Groups: root', 'Cf_Access_Jwt_Assertion: x'],
        gets: {
          'x-webauth-role': 'Admin',
          ...{ x_webauth_role: null, remote_groups: null, cf_access_jwt_assertion: null, 'remote-groups': 'a,b c' },
          'x-goog-authenticated-user-email': 'accounts.google.com:a@b.test',
        },
      }),
      play('GET /x', 200, {
        as: { 'https://app.test/role': 'a\r\nX: y', groups: ['a,b'], email: 'a@b.test' },
        fields: ['X-Goog-Authenticated-User-Email: accounts.google.com:root'],
        gets: { 'x-webauth-role': null, 'remote-groups': null, 'x-goog-authenticated-user-email': null },
      }),
    ],
  },
  'P: paths as browsers send them': {
    routes: 'GET /**: public\nGET /admin: scope admin',
    plays: [
      ...['/a[1]', '/a|b', '/a^b', '/[x]/y'].map((path) => play(`GET ${path}`, 200, { as: null })),
      ...['/a"b', '/a<b', '/a`b', '/a{b}', '/%61', '/a%', '/a%00', '/a\\b', '/a//b'].map((path) =>
        play(`GET ${path}`, 400, { as: null }),
      ),
      ...['/ADMIN', '/admin/', '/admin%20', '/admin.'].map((path) => play(`GET ${path}`, 400, { as: null })),
    ],
  },
  'H: a resource and its former name': {
    routes: 'GET /x: signed_in\nGET /new: {check: signed_in, audience: https://app.test}',
    change: (text) => text.replace(/resource: .*/, 'resource: [https://app.test, https://old.test, "urn:older"]'),
    plays: [
      ...['https://app.test', 'https://old.test', 'urn:older', ['x', 'urn:older']].map((aud) =>
        play('GET /x', 200, { as: { aud } }),
      ),
      ...['https://app.test/', 'https://older.test', ['x'], []].map((aud) => play('GET /x', 401, { as: { aud } })),
      play('GET /new', 200, { as: { aud: ['https://old.test', 'https://app.test'] } }),
      play('GET /new', 401, { as: { aud: 'https://old.test' } }),
    ],
  },
  'H: audiences of an identity provider, and its subjects': {
    routes: 'GET /x: signed_in',
    change: (text) =>
      text.replace(
        /issuers: .*/,
        'issuers: [{issuer: https://as.test, external: {subject_prefix: "p:", organizations: [acme], audience: [api-old, api-new], claims: {client: azp}}}]',
      ),
    plays: [
      ...['api-old', 'api-new'].map((aud) => play('GET /x', 200, { as: external({ aud }, 'alice') })),
      ...['https://app.test', 'api'].map((aud) => play('GET /x', 401, { as: external({ aud }, 'alice') })),
      ...[
        ['auth0|5f', 'auth0|5f'],
        ['CN=Ann Lee,O=Acme', 'CN=Ann%20Lee,O=Acme'],
        ['Ann%20Lee', 'Ann%2520Lee'],
        ['zoë', 'zo%C3%AB'],
        ['a#b', 'a%23b'],
        ['*', '*'],
      ].map(([sub = '', id = '']) =>
        play('GET /x', 200, { as: external({ sub }, id), gets: { 'x-auth-subject': `~p:${id}` } }),
      ),
      ...['', 42, null, ['alice'], 'a'.repeat(300)].map((sub) =>
        play('GET /x', 401, { as: external({ sub }, 'alice') }),
      ),
    ],
  },
  'M: a line that says what was asked': {
    routes: 'GET /issues/{id}: viewer issue:{id}',
    plays: [
      play('GET /issues/5?token=secret', 200, {
        fields: ['User-Agent: probe/1'],
        logs: {
          decision: 'allow',
          path: '/issues/5',
          host: 'app.test',
          status: 200,
          user_agent: 'probe/1',
          asks: ['viewer issue:5'],
        },
        hides: 'secret',
      }),
      play('GET /issues/6?token=secret', 403, {
        logs: { decision: 'deny', status: 403, asks: ['viewer issue:6'] },
        hides: 'secret',
      }),
    ],
  },
  'M: a line without paths and ids': {
    routes: 'GET /issues/{id}: viewer issue:{id}',
    extra: 'log: {path: omitted}',
    plays: [play('GET /issues/5?a', 200, { hides: 'issue:5' }), play('GET /issues/6', 403, { hides: '/issues/6' })],
  },
  'R: a service with another name, and tokens of one audience': {
    routes:
      'GET /x: {check: signed_in, upstream: {url: "UPSTREAM", host: inner.test:81}}\nGET /y: {check: signed_in, issuers: https://as.test}',
    plays: [
      play('GET /x', 200, { gets: { host: 'inner.test:81', 'x-forwarded-host': 'app.test' } }),
      play('GET /x', 200, {
        fields: ['X-Forwarded-Host: evil.test'],
        gets: { host: 'inner.test:81', 'x-forwarded-host': 'app.test' },
      }),
      play('GET /y', 200),
    ],
  },
  'P: a token that is too long': {
    routes: 'GET /x: signed_in',
    plays: [
      play('GET /x', 200, { as: { pad: 'x'.repeat(8_000) } }),
      play('GET /x', 401, { as: { pad: 'x'.repeat(16_000) } }),
    ],
  },
}

/** `id`: how the PDP knows the subject. */
export function external(claims: object, id: string): object {
  return { aud: 'api-new', azp: 'web', known_as: `~p:${id}`, ...claims }
}

function upgrade(): readonly string[] {
  return [
    ...['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'],
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
}
