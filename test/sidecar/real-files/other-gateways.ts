/** Rules as people have them in front of other gateways, said in ours, and requests that must pass and must not. */
import { external, type Kind, play } from './rule-kinds.ts'

const STAFF = { groups: ['staff', 'dev'], email: 'ann@corp.test', email_verified: true, preferred_username: 'ann' }

export const GATEWAYS: { readonly [name: string]: Kind } = {
  'oauth2-proxy: paths without sign-in, groups, and fields for the application': {
    routes: 'GET /ping: public\nGET /static/**: public\nGET /static: public\n"* /**": {equals: {claims.groups: staff}}',
    extra:
      'identity_headers: {X-Forwarded-User: "{claims.preferred_username}", X-Forwarded-Email: "{claims.email}", X-Forwarded-Groups: "{claims.groups}"}',
    plays: [
      ...['/ping', '/static/a.css', '/static'].map((path) => play(`GET ${path}`, 200, { as: null })),
      play('POST /ping', 405, { as: null }),
      play('GET /', 401, { as: null }),
      play('GET /', 403, { as: { groups: ['staffing'] } }),
      play('DELETE /x/y', 200, {
        as: STAFF,
        fields: ['X-Forwarded-User: root', 'X-Forwarded-Email: root@corp.test', 'X_Forwarded_Groups: admin'],
        gets: {
          'x-forwarded-user': 'ann',
          'x-forwarded-email': 'ann@corp.test',
          'x-forwarded-groups': 'staff,dev',
          x_forwarded_groups: null,
        },
      }),
      ...['/static/../x', '/static%2f..%2fx'].map((path) => play(`GET ${path}`, 400, { as: null })),
      ...['/Static/x', '/ping/', '/ping.json'].map((path) => play(`GET ${path}`, 401, { as: null })),
    ],
  },
  'Pomerium: a domain of addresses, or one address, by method': {
    routes:
      'GET /**: {all: [{equals: {claims.email_verified: true}}, {any: [{ends_with: {claims.email: "@corp.test"}}, {equals: {claims.email: guest@other.test}}]}]}\nPOST /**: {equals: {claims.department: ops}}',
    plays: [
      play('GET /x', 200, { as: { email: 'a@corp.test', email_verified: true } }),
      play('GET /x', 200, { as: { email: 'guest@other.test', email_verified: true } }),
      play('GET /x', 403, { as: { email: 'a@corp.test', email_verified: false } }),
      play('GET /x', 403, { as: { email: 'a@corp.test' } }),
      play('GET /x', 403, { as: { email: 'a@corp.test.evil', email_verified: true } }),
      play('GET /x', 403, { as: { email: 'a@evilcorp.test', email_verified: true } }),
      play('GET /x', 403, { as: { email: ['A@CORP.TEST'], email_verified: true } }),
      ...[play('POST /x', 200, { as: { department: 'ops' } }), play('POST /x', 403, { as: { department: 'Ops' } })],
      play('PUT /x', 405, { as: { department: 'ops' } }),
    ],
  },
  'Spring Security, OPA: everybody has what is their own': {
    routes:
      'GET /users/{id}: {equals: {claims.sub: "{id}"}}\nGET /users/{id}/orders: {any: [{equals: {claims.sub: "{id}"}}, scope orders:all]}\nPOST /transfers: {equals: {claims.accounts: "{body.from}"}}\nGET /reports: {equals: {claims.tenant: "{query.tenant}"}}',
    plays: [
      ...[play('GET /users/alice', 200), play('GET /users/bob', 403), play('GET /users/Alice', 403)],
      ...[play('GET /users/alice', 401, { as: null }), play('GET /users/bob', 200, { as: { sub: 'bob' } })],
      ...[play('GET /users/bob/orders', 403), play('GET /users/bob/orders', 200, { as: { scope: 'orders:all' } })],
      ...[play('GET /users/alice/orders', 200), play('GET /users/alice/', 404), play('GET /users/%61lice', 400)],
      play('GET /users/alice?id=bob', 400),
      play('POST /transfers', 200, { as: { accounts: ['a', 'b'] }, body: { from: 'b' } }),
      ...['c', 'A', ''].map((from) => play('POST /transfers', 403, { as: { accounts: ['a', ''] }, body: { from } })),
      ...[{}, { from: ['a'] }, { from: null }, { from: 'a', From: 'c' }].map((body) =>
        play('POST /transfers', 400, { as: { accounts: ['a'] }, body }),
      ),
      play('GET /reports?tenant=t1', 200, { as: { tenant: 't1' } }),
      play('GET /reports?tenant=7', 200, { as: { tenant: 7 } }),
      ...[play('GET /reports?tenant=', 403, { as: { tenant: '' } }), play('GET /reports?tenant=t1', 403)],
      // A service may read the full-width letter as a.
      play('POST /transfers', 403, { as: { accounts: ['\uff41'] }, body: { from: '\uff41' } }),
      play('GET /reports?tenant=%EF%BC%97', 403, { as: { tenant: '\uff17' } }),
      ...[play('GET /reports', 400, { as: { tenant: 't1' } }), play('GET /reports?tenant=t1&tenant=t2', 400)],
      ...[null, {}, [], ['t2'], { t1: 't1' }].map((tenant) => play('GET /reports?tenant=t1', 403, { as: { tenant } })),
    ],
  },
  'MCP gateways: calls about what is one’s own, and lists that need no argument': {
    routes:
      'MCP /mcp:\n  tools: {mine: {equals: {claims.sub: "{arguments.user}"}}}\n  resources: {"crm://people/{id}": {equals: {claims.sub: "{id}"}}}',
    plays: [
      ...['alice', 'bob'].map((user) =>
        play('POST /mcp', 200, {
          body: message('tools/call', { name: 'mine', arguments: { user } }),
          reaches: user === 'alice',
        }),
      ),
      play('POST /mcp', 200, { body: message('tools/list', {}), reaches: true }),
      play('POST /mcp', 200, { body: message('resources/read', { uri: 'crm://people/alice' }), reaches: true }),
      play('POST /mcp', 200, { body: message('resources/read', { uri: 'crm://people/bob' }), reaches: false }),
    ],
  },
  'Heimdall, Kong: the customer of the host is that of the token': {
    routes: 'GET {tenant}.app.test/x: {equals: {claims.tenants: "{tenant}"}}',
    plays: [
      play('GET /x', 200, { host: 'acme.app.test', as: { tenants: ['acme', 'b'] } }),
      play('GET /x', 200, { host: 'ACME.app.test:80', as: { tenants: 'acme' } }),
      play('GET /x', 403, { host: 'evil.app.test', as: { tenants: ['acme'] } }),
      play('GET /x', 403, { host: 'acme.app.test', as: {} }),
      play('GET /x', 421, { host: 'acme.b.app.test', as: { tenants: ['acme'] } }),
    ],
  },
  'Envoy, Cloud Run: a bearer token in a field of another name': {
    routes: 'GET /x: {check: signed_in, token_from: {header: [X-Serverless-Authorization, X-Goog-IAP-JWT-Assertion]}}',
    plays: [
      ...[
        'X-Serverless-Authorization: Bearer TOKEN',
        'x-serverless-authorization: bearer  TOKEN',
        'X-Goog-IAP-JWT-Assertion: TOKEN',
      ].map((put) => play('GET /x', 200, { put: [put], gets: { 'x-serverless-authorization': null } })),
      ...['Bearer', 'Bearer ', 'BearerTOKEN', 'Bearer x.y.z'].map((value) =>
        play('GET /x', 401, { put: [`X-Serverless-Authorization: ${value}`] }),
      ),
      ...['', 'Basic TOKEN', 'Bearer TOKEN TOKEN', 'Bearer Bearer TOKEN', 'TOKEN,TOKEN'].map((value) =>
        play('GET /x', 400, { put: [`X-Serverless-Authorization: ${value}`] }),
      ),
      ...['X-Serverless-Authorization: TOKEN', 'Authorization: Bearer TOKEN', 'X-Goog-IAP-JWT-Assertion: TOKEN'].map(
        (second) => play('GET /x', 400, { put: ['X-Goog-IAP-JWT-Assertion: TOKEN', second] }),
      ),
    ],
  },
  'Cloudflare Access: tokens without scope, for the application’s own audience': {
    routes: 'GET /x: {check: {ends_with: {claims.email: "@corp.test"}}, token_from: {header: Cf-Access-Jwt-Assertion}}',
    change: (text) =>
      text.replace(
        /issuers: .*/,
        'issuers: [{issuer: https://as.test, external: {subject_prefix: "p:", organizations: [acme], audience: aud-tag, workloads: true, claims: {client: sub}}}]',
      ),
    plays: [
      play('GET /x', 200, { as: access('ann@corp.test'), put: ['Cf-Access-Jwt-Assertion: TOKEN'] }),
      play('GET /x', 403, { as: access('ann@corp.test.evil'), put: ['Cf-Access-Jwt-Assertion: TOKEN'] }),
      play('GET /x', 401, { as: { email: 'ann@corp.test' }, put: ['Cf-Access-Jwt-Assertion: TOKEN'] }),
      play('GET /x', 401, { put: ['Cf-Access-Jwt-Assertion: x.y.z'] }),
      play('GET /x', 401, { as: access('ann@corp.test'), put: ['Cf_Access_Jwt_Assertion: TOKEN'] }),
    ],
  },
  'Authelia: networks, factors and methods of one path': {
    routes:
      'GET /x: {check: {any: [{equals: {client.address: 10.0.0.0/8}}, {equals: {claims.groups: admins}}]}, guests: true}\nPOST /x: {check: {equals: {claims.groups: admins}}, step_up: {acr_values: [mfa]}}',
    extra: 'trusted_proxies: [127.0.0.1]',
    plays: [
      play('GET /x', 200, { as: null, fields: ['X-Forwarded-For: 10.1.2.3'] }),
      play('GET /x', 401, { as: null, fields: ['X-Forwarded-For: 11.1.2.3'] }),
      play('GET /x', 401, { as: null, fields: ['X-Forwarded-For: 10.1.2.3, 11.1.2.3'] }),
      play('GET /x', 200, { as: { groups: ['admins'] }, fields: ['X-Forwarded-For: 11.1.2.3'] }),
      play('GET /x', 403, { as: { groups: ['users'] }, fields: ['X-Forwarded-For: 11.1.2.3'] }),
      play('POST /x', 401, { as: { groups: ['admins'] }, fields: ['X-Forwarded-For: 10.1.2.3'] }),
    ],
  },
  'Authentik, Traefik: an application below a path, and its own routes first': {
    routes:
      '"* /outpost/**": public\nGET /wiki/**: {check: signed_in, upstream: {url: "UPSTREAM", strip_path: /wiki}}\nGET /wiki/admin/**: {check: {equals: {claims.groups: admins}}, upstream: {url: "UPSTREAM", strip_path: /wiki}}',
    change: (text) => text.replace(/^upstream: .*/m, 'upstream: http://127.0.0.1:9'),
    plays: [
      ...[play('GET /wiki/a', 200), play('GET /wiki/admin/a', 403), play('GET /wiki/', 200)],
      play('GET /wiki/admin/a', 200, { as: { groups: ['admins'] } }),
      ...['/wiki/x/../admin/a', '/wiki//admin/a', '/wiki/ADMIN/a', '/wiki/%61dmin/a', '/wiki/admin'].map((path) =>
        play(`GET ${path}`, 400),
      ),
      play('GET /wiki/a', 401, { as: null }),
    ],
  },
  'Oathkeeper: identifiers and endings as a rule has them': {
    routes:
      'GET /api/users/{id}: viewer issue:{id}\nGET /api/files/{name}.pdf: signed_in\n"* /api/public/**": {public: with_identity}\nGET /api/public: {public: with_identity}',
    plays: [
      ...[play('GET /api/users/5', 200), play('GET /api/users/6', 403), play('GET /api/users/5/x', 404)],
      ...[play('GET /api/files/a.pdf', 200), play('GET /api/files/a.PDF', 404), play('GET /api/files/.pdf', 404)],
      play('PATCH /api/public/x', 200, { as: null, gets: { 'x-auth-subject': null } }),
      play('PATCH /api/public/x', 200, { gets: { 'x-auth-subject': 'alice' } }),
      play('GET /api/public/../users/6', 400),
    ],
  },
  'Istio: paths, methods, hosts and claims of one rule': {
    routes:
      'GET app.test/info*: public\nGET app.test/api/v1/**: {all: [{equals: {claims.iss: https://as.test}}, {any: [{equals: {claims.groups: a}}, {equals: {claims.groups: b}}]}]}',
    change: (text) => text.replace('GET app.test/info*: public', 'GET app.test/info: public'),
    plays: [
      ...[play('GET /info', 200, { as: null }), play('GET /info2', 404, { as: null })],
      play('GET /api/v1/x', 200, { as: { groups: ['b'] } }),
      ...[play('GET /api/v1/x', 403), play('GET /api/v1/x', 403, { as: { groups: 'ab' } })],
      play('GET /api/v1/x', 421, { host: 'other.test', as: { groups: ['a'] } }),
    ],
  },
  'API gateways of clouds: a scope for each method, and sizes of bodies': {
    routes:
      'GET /pets: scope pets:read\nPOST /pets: {check: {all: [scope pets:read, scope pets:write]}, body_bytes_max: 20}\nDELETE /pets/{id}: {all: [scope pets:write, "viewer issue:{id}"]}',
    plays: [
      ...[play('GET /pets', 200, { as: { scope: 'pets:read' } }), play('GET /pets', 403, { as: { scope: 'pets' } })],
      play('POST /pets', 200, { as: { scope: 'pets:write pets:read' }, body: { a: 1 } }),
      play('POST /pets', 403, { as: { scope: 'pets:write' }, body: { a: 1 } }),
      play('DELETE /pets/5', 200, { as: { scope: 'pets:write' } }),
      ...[play('DELETE /pets/6', 403, { as: { scope: 'pets:write' } }), play('DELETE /pets/5', 403)],
      play('PUT /pets', 405),
    ],
  },
  'nginx: addresses or a sign-in, and a path of the proxy itself': {
    routes:
      'GET /**: {check: {any: [{equals: {client.address: 127.0.0.1}}, signed_in]}, guests: true}\nGET /nginx_status: {check: {equals: {client.address: "::1"}}, guests: true}',
    plays: [
      ...[play('GET /a', 200, { as: null }), play('GET /nginx_status', 401, { as: null })],
      play('GET /nginx_status', 403),
      ...['/nginx_status/', '/NGINX_STATUS', '/nginx%5fstatus'].map((path) => play(`GET ${path}`, 400, { as: null })),
    ],
  },
  'Kubernetes dashboards: who may impersonate whom': {
    routes: '"* /**": {equals: {claims.groups: ops}}',
    extra: 'identity_headers: {Impersonate-User: "{claims.email}", Impersonate-Group: "{claims.groups}"}',
    plays: [
      play('GET /api', 200, {
        as: { ...STAFF, groups: ['ops'] },
        fields: ['Impersonate-User: system:admin', 'Impersonate-Group: system:masters', 'Impersonate_User: root'],
        gets: { 'impersonate-user': 'ann@corp.test', 'impersonate-group': 'ops', impersonate_user: null },
      }),
      play('GET /api', 200, {
        as: { groups: ['ops', 'system:masters'], email: 'x@corp.test', email_verified: false },
        gets: { 'impersonate-user': null, 'impersonate-group': 'ops,system:masters' },
      }),
    ],
  },
  'CI systems: branches of one repository': {
    routes:
      'POST /deploy: {all: [{starts_with: {claims.sub: "~p:repo:acme/shop:"}}, {equals: {claims.ref: refs/heads/main}}]}',
    change: (text) =>
      text.replace(
        /issuers: .*/,
        'issuers: [{issuer: https://as.test, external: {subject_prefix: "p:", organizations: [acme], audience: api-new, workloads: true, claims: {client: azp}}}]',
      ),
    plays: [
      play('POST /deploy', 200, { as: ci('repo:acme/shop:ref:refs/heads/main', 'refs/heads/main') }),
      play('POST /deploy', 403, { as: ci('repo:acme/shop:ref:refs/heads/x', 'refs/heads/x') }),
      play('POST /deploy', 403, { as: ci('repo:acme/shop-evil:ref:refs/heads/main', 'refs/heads/main') }),
      play('POST /deploy', 403, { as: ci('repo:evil/acme/shop:x', 'refs/heads/main') }),
    ],
  },
}

function message(method: string, params: object): object {
  return { jsonrpc: '2.0', id: 1, method, params }
}

function access(email: string): object {
  return external({ aud: 'aud-tag', sub: 'u1', email, scope: undefined }, 'u1')
}

function ci(sub: string, ref: string): object {
  return external({ sub, ref }, sub)
}
