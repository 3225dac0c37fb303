/**
 * Rules that people run in front of their services, said in our route file. Each file names where the original is; what it says was written again in our
 * words.
 */

/** A request, and the status that must come out. */
export type Played = {
  readonly line: string
  readonly status: number
  /** Claims of the token; null: none is sent. */
  readonly as?: object | null
  readonly fields?: readonly string[]
  readonly body?: string
  readonly host?: string
  /** The field that has the token in place of Authorization. */
  readonly tokenIn?: string
  /** The service that gets it, of those of the file, and its target there; absent: that of the file. */
  readonly at?: readonly [service: string, target: string]
  /** Fields that the service must get; null: must not. */
  readonly gets?: { readonly [name: string]: string | RegExp | null }
}
export type RealFile = {
  readonly from: string
  readonly extra?: string
  /** Names of further services; `AT_NAME` in the routes is where one is. */
  readonly services?: readonly string[]
  readonly routes: string
  /** What alice may do. */
  readonly tuples?: readonly string[]
  /** By the id of the route: one that passes and one that does not. A rule over one object is played by itself: object 1 is alice's, object 3 everybody's. */
  readonly played: { readonly [route: string]: readonly [passes: Played, fails: Played] }
}

const json = (members: object): Pick<Played, 'fields' | 'body'> => ({
  fields: ['Content-Type: application/json'],
  body: JSON.stringify(members),
})
const open = (line: string, otherMethod: string): readonly [Played, Played] => [
  { line, status: 200, as: null },
  { line: `${otherMethod} ${line.split(' ')[1]}`, status: 405 },
]
const signedIn = (line: string): readonly [Played, Played] => [
  { line, status: 200 },
  { line, status: 401, as: null },
]
const LFX = 'guest_organization: lf\nassertion: {header: X-Jwt-Assertion, audience: lfx, keys_file: a.keys}'

/** Lines such as `viewer GET /links/{x}`, below one resource. */
const below = (base: string, object: string, lines: string): string =>
  lines
    .trim()
    .split('\n')
    .map((line) => {
      const [, relation, method, path = ''] = /^\s*(\w+) (\w+)(?: (\S+))?$/.exec(line) ?? []
      const rule = relation === 'anybody' ? 'public: with_identity' : `check: "${relation} ${object}", guests: true`
      return `${method} ${base}${path}: {${rule}}`
    })
    .join('\n')

const COMMITTEES: RealFile = {
  from: 'linuxfoundation/lfx-v2-committee-service charts/lfx-v2-committee-service/templates/ruleset.yaml',
  extra: LFX,
  routes: `GET /_committees/openapi.json: public
GET /_committees/openapi.yaml: public
HEAD /_committees/openapi3.json: public
GET /_committees/openapi3.yaml: public
POST /committees: {check: "writer project:{body.project_uid}", guests: true}
${below('/committees/b2b-org/{uid}/seats', 'b2b_org:{uid}', 'auditor GET\nwriter PUT /{member}/reassign')}
${below(
  '/committees/{uid}',
  'committee:{uid}',
  `viewer GET
  writer PUT
  writer DELETE
  viewer GET /weekly-briefs/current
  writer POST /weekly-briefs/generate
  auditor GET /settings
  writer PUT /settings
  writer POST /members
  viewer GET /members/{member}
  auditor GET /members/{member}/contact
  writer PUT /members/{member}
  writer DELETE /members/{member}
  writer POST /invites
  viewer GET /invites/{invite}
  writer DELETE /invites/{invite}
  anybody POST /invites/{invite}/accept
  anybody POST /invites/{invite}/decline
  viewer GET /applications/{application}
  anybody POST /applications
  writer POST /applications/{application}/approve
  writer POST /applications/{application}/reject
  viewer GET /links
  writer POST /links
  viewer GET /links/{link}
  writer DELETE /links/{link}
  viewer GET /folders
  writer POST /folders
  viewer GET /folders/{folder}
  writer DELETE /folders/{folder}
  writer POST /documents
  viewer GET /documents/{document}
  viewer GET /documents/{document}/download
  writer DELETE /documents/{document}
  anybody POST /join
  anybody DELETE /leave`,
)}`,
  played: {
    'GET /_committees/openapi.json': open('GET /_committees/openapi.json', 'POST'),
    'GET /_committees/openapi.yaml': open('GET /_committees/openapi.yaml', 'PUT'),
    'HEAD /_committees/openapi3.json': open('HEAD /_committees/openapi3.json', 'DELETE'),
    'GET /_committees/openapi3.yaml': open('GET /_committees/openapi3.yaml', 'PATCH'),
    'POST /committees': [
      { line: 'POST /committees', status: 200, ...json({ project_uid: '1' }) },
      { line: 'POST /committees', status: 403, ...json({ project_uid: '2' }) },
    ],
  },
}

const PROJECTS: RealFile = {
  from: 'linuxfoundation/lfx-v2-project-service charts/lfx-v2-project-service/templates/ruleset.yaml',
  extra: LFX,
  routes: `GET /_projects/openapi.json: public
GET /_projects/openapi3.yaml: public
POST /projects: {check: "writer project:{body.parent_uid}", guests: true}
GET /projects: {public: with_identity}
${below(
  '/projects/{uid}',
  'project:{uid}',
  `viewer GET
  writer PUT
  owner DELETE
  auditor GET /settings
  writer PUT /settings
  writer POST /links
  viewer GET /links
  viewer GET /links/{link}
  writer DELETE /links/{link}
  writer POST /folders
  viewer GET /folders
  viewer GET /folders/{folder}
  writer DELETE /folders/{folder}
  writer POST /documents
  viewer GET /documents/{document}
  viewer GET /documents/{document}/download
  writer DELETE /documents/{document}`,
)}`,
  played: {
    'GET /_projects/openapi.json': open('GET /_projects/openapi.json', 'POST'),
    'GET /_projects/openapi3.yaml': open('GET /_projects/openapi3.yaml', 'POST'),
    'POST /projects': [
      { line: 'POST /projects', status: 200, ...json({ parent_uid: '1' }) },
      { line: 'POST /projects', status: 400, ...json({ project_uid: '1' }) },
    ],
  },
}

const AUTH_PATHS = ['login', 'logout', 'clearCookies', 'email/code', 'email/login', 'totp/validate', 'phone/captcha']
/** In the original, the query may have the token, too. */
const BLINK: RealFile = {
  from: 'GaloyMoney/blink dev/config/ory/oathkeeper_rules.yaml',
  extra: 'assertion: {header: X-Id-Token, audience: "https://api/graphql", keys_file: a.keys, claims: [session_id]}',
  services: ['ACCOUNTS', 'SOCKETS', 'ADMIN'],
  routes: [
    ...AUTH_PATHS.flatMap((path) =>
      ['GET', 'POST'].map((method) => `${method} /auth/${path}: {check: public, upstream: AT_ACCOUNTS}`),
    ),
    'POST /auth/create/device-account: {check: signed_in, issuers: https://as.test, token_from: {header: Appcheck}, upstream: AT_ACCOUNTS}',
    'GET /graphqlws: {check: public, upgrade: [websocket], upstream: {url: AT_SOCKETS, strip_path: /graphqlws, add_path: /graphql}}',
    '"* /graphql": {public: with_identity, token_from: {header: [Oauth2-Token, X-BLINK-KEY]}}',
    '"* /admin/**": {check: signed_in, token_from: {header: Oauth2-Token}, upstream: {url: AT_ADMIN, strip_path: /admin}}',
  ].join('\n'),
  played: {
    ...Object.fromEntries(
      AUTH_PATHS.flatMap((path) =>
        ['GET', 'POST'].map((method) => {
          const line = `${method} /auth/${path}`
          const [passes, fails] = open(line, 'DELETE')
          return [line, [{ ...passes, at: ['ACCOUNTS', `/auth/${path}`] }, fails] as const]
        }),
      ),
    ),
    'POST /auth/create/device-account': [
      {
        ...{ line: 'POST /auth/create/device-account', status: 200, tokenIn: 'Appcheck', gets: { appcheck: null } },
        at: ['ACCOUNTS', '/auth/create/device-account'],
      },
      { line: 'POST /auth/create/device-account', status: 401, tokenIn: 'X-Other' },
    ],
    'GET /graphqlws': [
      { line: 'GET /graphqlws?v=1', status: 200, as: null, at: ['SOCKETS', '/graphql?v=1'] },
      { line: 'GET /graphqlws/', status: 404, as: null },
    ],
    '* /graphql': [
      {
        ...{ line: 'POST /graphql', status: 200, as: { session_id: 's' }, tokenIn: 'X-BLINK-KEY', ...json({}) },
        gets: { 'x-id-token': /^ey/, 'x-blink-key': null },
      },
      { line: 'POST /graphqls', status: 404, as: null, ...json({}) },
    ],
    '* /admin/**': [
      { line: 'POST /admin/graphql', status: 200, tokenIn: 'Oauth2-Token', ...json({}), at: ['ADMIN', '/graphql'] },
      { line: 'POST /admin/graphql', status: 401, as: null, ...json({}) },
    ],
  },
}

const PERSON = { email: 'ann@example.com', email_verified: true, groups: ['ml', 'admins'] }
const FORGED = ['kubeflow-userid: root@example.com', 'kubeflow-groups: admins']
const KUBEFLOW: RealFile = {
  from: 'kubeflow/manifests common/oauth2-proxy (oauth2_proxy.cfg, requestauthentication.dex-jwt.yaml)',
  extra: 'identity_headers: {kubeflow-userid: {claims.email}, kubeflow-groups: {claims.groups}}\nforward_token: true',
  routes: `"* /dex/**": public
"* /pipeline/apis/**": {check: signed_in, sign_in: false}
"* /ml_metadata/**": {check: signed_in, sign_in: false}
"* /**": signed_in`,
  played: {
    '* /dex/**': [
      { line: 'GET /dex/keys', status: 200, as: null, fields: FORGED, gets: { 'kubeflow-userid': null } },
      { line: 'GET /dex/../pipeline', status: 400, as: null },
    ],
    '* /pipeline/apis/**': [
      {
        ...{ line: 'GET /pipeline/apis/v2beta1/runs', status: 200, as: PERSON, fields: FORGED },
        gets: { 'kubeflow-userid': 'ann@example.com', 'kubeflow-groups': 'ml,admins', authorization: /^Bearer ey/ },
      },
      { line: 'GET /pipeline/apis/v2beta1/runs', status: 401, as: null, fields: FORGED },
    ],
    '* /ml_metadata/**': signedIn('POST /ml_metadata/x'),
    '* /**': [
      {
        ...{ line: 'GET /jupyter/', status: 200, as: { ...PERSON, email_verified: false }, fields: FORGED },
        gets: { 'kubeflow-userid': null, 'kubeflow-groups': 'ml,admins' },
      },
      { line: 'GET /jupyter/', status: 401, as: null },
    ],
  },
}

const WITH_GROUPS =
  '{any: [{equals: {claims.email: user@example.com}}, {equals: {claims.groups: admins}}, {equals: {claims.groups: developers}}]}'
const POMERIUM_ROUTES: RealFile = {
  from: 'pomerium/documentation content/examples/config/route.example.yaml.md',
  extra: 'hosts: [app.test]',
  services: ['VERIFY', 'EXTERNAL', 'WEIRDLY', 'HELLO'],
  routes: `"* verify.test/**": {check: {equals: {claims.hd: pomerium.io}}, upstream: AT_VERIFY, upstream_headers_ms: 30000, cors: {origins: ["https://a.test"], preflight: pass}}
"* external.test/**": {check: {equals: {claims.hd: gmail.com}}, upstream: AT_EXTERNAL}
"* weirdly.test/**": {check: ${WITH_GROUPS}, upstream: AT_WEIRDLY}
"* hello.test/**": {check: {equals: {claims.groups: "admins@pomerium.io"}}, upstream: AT_HELLO}`,
  played: {
    '* verify.test/**': [
      { line: 'GET /x', host: 'verify.test', status: 200, as: { hd: 'pomerium.io' }, at: ['VERIFY', '/x'] },
      { line: 'GET /x', host: 'verify.test', status: 403, as: { hd: 'pomerium.io.evil.test' } },
    ],
    '* external.test/**': [
      { line: 'GET /x', host: 'external.test', status: 200, as: { hd: 'gmail.com' }, at: ['EXTERNAL', '/x'] },
      { line: 'GET /x', host: 'external.test', status: 403, as: { hd: 'pomerium.io' } },
    ],
    '* weirdly.test/**': [
      {
        ...{ line: 'GET /x', host: 'weirdly.test', status: 200, at: ['WEIRDLY', '/x'] },
        as: { email: 'a@b.test', groups: ['x', 'developers'] },
      },
      { line: 'GET /x', host: 'weirdly.test', status: 403, as: { email: 'a@b.test', groups: ['admins@pomerium.io'] } },
    ],
    '* hello.test/**': [
      { line: 'GET /x', host: 'hello.test', status: 200, as: { groups: ['admins@pomerium.io'] }, at: ['HELLO', '/x'] },
      { line: 'GET /x', host: 'hello.test', status: 403, as: { groups: ['admins'] } },
    ],
  },
}

const POMERIUM_GRAFANA: RealFile = {
  from: 'pomerium/documentation content/examples/guides/grafana/config.yaml',
  extra: 'assertion: {header: X-Pomerium-Jwt-Assertion, audience: grafana.test, keys_file: a.keys, claims: [email]}',
  routes: '"* /**": {equals: {claims.email: you@example.com}}',
  played: {
    '* /**': [
      {
        ...{ line: 'GET /d/1', status: 200, as: { email: 'you@example.com', email_verified: true } },
        ...{ fields: ['X-Pomerium-Jwt-Assertion: forged'], gets: { 'x-pomerium-jwt-assertion': /^ey/ } },
      },
      { line: 'GET /d/1', status: 403, as: { email: 'You@example.com' } },
    ],
  },
}

/** The original also denies whose address begins in a certain way; a check of ours allows, and nothing else does. */
const POMERIUM_ADVANCED: RealFile = {
  from: 'pomerium/documentation content/examples/fundamentals/advanced-policies.md',
  routes: `"* /verify/**": {any: [{ends_with: {claims.email: "@example.com"}}, {equals: {claims.name: Ann}}]}
"* /grafana/**": {all: [{ends_with: {claims.email: "@example.com"}}, "viewer app:grafana"]}`,
  tuples: ['alice viewer app:grafana'],
  played: {
    '* /verify/**': [
      { line: 'GET /verify/x', status: 200, as: { name: 'Ann' } },
      { line: 'GET /verify/x', status: 403, as: { name: 'Bob', email: 'bob@example.com.else.test' } },
    ],
    '* /grafana/**': [
      { line: 'GET /grafana/x', status: 200, as: { email: 'ann@example.com' } },
      { line: 'GET /grafana/x', status: 403, as: { email: 'ann@example.com', sub: 'admin' } },
    ],
  },
}

const POMERIUM_DEX: RealFile = {
  from: 'pomerium/pomerium docs/docs/identity-providers/readme.md (Dex and FreeIPA)',
  routes: '"* /**": {equals: {claims.groups: devops}}',
  played: {
    '* /**': [
      { line: 'GET /', status: 200, as: { groups: ['devops'] } },
      { line: 'GET /', status: 403, as: { groups: ['devops2', 'dev'] } },
    ],
  },
}

export const REAL_FILES: readonly RealFile[] = [
  ...[COMMITTEES, PROJECTS, BLINK, KUBEFLOW],
  ...[POMERIUM_ROUTES, POMERIUM_GRAFANA, POMERIUM_ADVANCED, POMERIUM_DEX],
]
