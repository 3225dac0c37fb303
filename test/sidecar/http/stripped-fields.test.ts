import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { COMMONLY_TRUSTED_FIELDS } from '../../../sidecar/http/stripped-fields.ts'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { ask, openSession } from '../support/http2-client.ts'
import { fieldOf } from '../support/upstream.ts'

/** What documentation of servers, frameworks, gateways and platforms names: sent by a client, each is a lie. */
const LIES = [
  ...[
    'SCRIPT_NAME',
    'PATH_INFO',
    'script-name',
    'X-Script-Name',
    'X-Url-Scheme',
    'X-Scheme',
    'Front-End-Https',
    'Https',
  ],
  ...['REMOTE_USER', 'Remote-User', 'Remote-Groups', 'AUTH_TYPE', 'HTTP_X_FORWARDED_FOR', 'wsgi.url_scheme', 'HTTPS'],
  ...['X-Consumer-Username', 'X-Consumer-ID', 'X-Credential-Identifier', 'X-Anonymous-Consumer', 'X-Userinfo'],
  ...['X-Pomerium-Jwt-Assertion', 'X-Pomerium-Claim-Email', 'X-Vouch-User', 'X-Webauth-User', 'X-WEBAUTH-ROLE'],
  ...['Tailscale-User-Login', 'OIDC_CLAIM_sub', 'OIDC-Claim-Email', 'X-Authentik-Username', 'X-authentik-groups'],
  ...[
    'Client-Cert',
    'Client-Cert-Chain',
    'X-Client-Cert',
    'SSL_CLIENT_S_DN',
    'ssl-client-subject-dn',
    'X-SSL-Client-DN',
  ],
  ...['Impersonate-User', 'Impersonate-Group', 'Impersonate-Extra-scopes', 'X-Remote-User', 'X-Remote-Group'],
  ...['X-Apigateway-Api-Userinfo', 'X-Apigateway-Event', 'X-Endpoint-Api-UserInfo', 'X-Serverless-Authorization'],
  ...['X-Invoke-Path', 'X-Invoke-Query', 'X-Matched-Path', 'X-Middleware-Subrequest', 'Next-Action'],
  ...['x-now-route-matches', 'RSC-Action-Id', 'X-QRL', 'X-Single-Flight'],
  ...['X-MS-CLIENT-PRINCIPAL', 'X-MS-TOKEN-AAD-ID-TOKEN', 'X-ARR-ClientCert', 'X-WAWS-Unencoded-URL', 'Disguised-Host'],
  ...['MS-ASPNETCORE-CLIENTCERT', 'X-Goog-IAP-JWT-Assertion', 'X-Goog-Authenticated-User-Email', 'X-Appengine-User-Id'],
  ...[
    'X-Amzn-Oidc-Data',
    'X-Amzn-Mtls-Clientcert',
    'X-Amzn-Request-Context',
    'Cf-Access-Jwt-Assertion',
    'CF-Connecting-IP',
  ],
  ...['X-Forwarded-Client-Cert', 'X-Forwarded-Tls-Client-Cert', 'X-Forwarded-Prefix', 'Forwarded', 'X-Original-URL'],
  ...['X-Rewrite-Url', 'X-HTTP-Method-Override', 'X-Method-Override', 'X-Sendfile-Type', 'X-Accel-Mapping', 'Proxy'],
  ...['X-Spiffe-Id', 'l5d-client-id', 'x-envoy-original-path', 'x-istio-attributes', 'dapr-app-id', 'X-Tyk-User'],
  ...[
    'X-Authenticated-UserId',
    'Authenticated-User',
    'X-User-Id',
    'SM_USER',
    'iv-user',
    'Shib-Session-ID',
    'X-Scope-OrgID',
  ],
  ...['X-Spinnaker-User', 'X-Spinnaker-Accounts', 'Argocd-Username', 'X-Wcpay-Platform-Checkout-User', 'X-User-Role'],
  ...['Eo-Client-Ip', 'Do-Connecting-Ip', 'X-Trino-Original-User', 'X-Mtls-Subject', 'X-Request-Uri', 'X-Permissions'],
  ...['X-Identity', 'X-Internal', 'X-Trusted', 'X_Identity', 'X-Remote', 'X-SSO', 'X-Principal', 'Impersonate'],
  ...['Ngrok-Auth-User-Email', 'zrok-auth-email', 'X-ExeDev-Email', 'X-Authelia-Username', 'X-OIDC-Email'],
  ...['X-ProxiedEntitiesChain', 'X-WebObjects-Remote-User', 'X-SP-UserId', 'X-Alfresco-Remote-User', 'X-AKHQ-User'],
  ...['X-HA-Ingress', 'Grpc-Metadata-X-Auth-Subject', 'Grpcgateway-Authorization', 'X-Grafana-User', 'Lm-Remote-User'],
  ...['Auth-Groups', 'WebAuth-User', 'X-Tobira-Username', 'X-Msisdn', 'X-3GPP-Asserted-Identity', 'Real-IP'],
  ...['X-True-Client-IP', 'X-Originally-Forwarded-For', 'Cluster-Client-IP', 'Cdn-Src-Ip', 'X-Tomcat-DocRoot'],
  ...['X-RStudio-Username', 'X-RSConnect-User', 'X-Streamlit-User', 'Plotly-User-Data', 'X-OpenWebUI-User-Email'],
  ...['X-Kratos-Authenticated-Identity-Id', 'X-Qlik-User', 'Gitlab-Workhorse-Api-Request', 'X-Graylog-Server-URL'],
  ...[
    'X-Zitadel-Public-Host',
    'X-Kuma-Tags',
    'X-Fc-Account-Id',
    'X-Authz-User',
    'X-Authn-Subject',
    'X-Authorized-User',
  ],
  ...['X-User-Uid', 'X-User-Tenant-Id', 'X-User-Org', 'X-User-Is-Admin', 'X-Principal-Id', 'X-User-Attributes'],
  ...['x_plain', 'x.plain', 'x!plain', "x'plain", 'x`plain', 'x|plain', 'x+plain', 'x^plain', '_', '$wsra'],
]
/** What clients need, and nobody takes for more than the client's word. */
const HARMLESS = [
  ...[
    'Accept',
    'Accept-Language',
    'Cookie',
    'User-Agent',
    'Referer',
    'Origin',
    'Range',
    'If-None-Match',
    'Cache-Control',
  ],
  ...[
    'traceparent',
    'tracestate',
    'b3',
    'X-B3-TraceId',
    'X-Amzn-Trace-Id',
    'X-Requested-With',
    'X-API-Key',
    'X-CSRF-Token',
  ],
  ...['Sec-Fetch-Mode', 'Idempotency-Key', 'X-Client-Version', 'X-User-Agent', 'Grpc-Timeout', 'Depth', 'X-Role'],
]

let h: Harness
let token: string
beforeAll(async () => {
  const routes =
    'GET /public: public\nPOST /public: public\nGET /checked: scope invoices:read\nGET /socket: {check: public, upgrade: [websocket]}'
  const extra = 'pass_headers: [x_tenant, X-Access-Token]\nstrip_headers: [X-Acme-*]'
  h = await startHarness({ routes, extra, script: tuples([]) })
  token = await h.issuer.token()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.onUpgrade = null
})

const reachedNames = (): string[] =>
  (h.upstream.reached[0]?.rawHeaders ?? []).filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
const reachedLies = (): boolean => JSON.stringify(h.upstream.reached).includes('a-lie')
/** No request has room for all at once. */
const groups = <T>(items: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / 40) }, (_, at) => items.slice(40 * at, 40 * at + 40))
/** One name for each line of the table. */
const TABLE = COMMONLY_TRUSTED_FIELDS.map((name) => (name.endsWith('*') ? `${name.slice(0, -1)}x` : name)).filter(
  // The file lets it pass.
  (name) => name !== 'x-access-token',
)

describe.each(['/public', '/checked'])('on %s, what a client may not say', (path) => {
  test.each(groups([...LIES, ...TABLE]))('does not reach the upstream: %s and its neighbours', async (...names) => {
    const fields = names.map((name) => `${name}: a-lie`)
    expect((await h.send(`GET ${path}`, { token, fields })).status).toBe(200)
    expect(h.upstream.reached).toHaveLength(1)
    expect(reachedLies()).toBe(false)
  })

  test.each(groups([...LIES, ...TABLE]))('does not reach it over HTTP/2: %s and its neighbours', async (...names) => {
    const session = openSession(h.port)
    const own = new Set(['host', 'proxy-connection'])
    const sent = names.map((name) => name.toLowerCase()).filter((name) => !own.has(name))
    const headers = { authorization: `Bearer ${token}`, ...Object.fromEntries(sent.map((name) => [name, 'a-lie'])) }
    const answer = await ask(session, `GET ${path}`, { headers })
    session.destroy()
    expect(answer.status).toBe(200)
    expect(h.upstream.reached).toHaveLength(1)
    expect(reachedLies()).toBe(false)
  })

  test('is not what it needs to say', async () => {
    const fields = HARMLESS.map((name) => `${name}: ${name === 'Origin' ? 'https://app.test' : 'x'}`)
    expect((await h.send(`GET ${path}`, { token, fields })).status).toBe(200)
    expect(reachedNames()).toEqual(expect.arrayContaining(HARMLESS.map((name) => name.toLowerCase())))
  })
})

test('what the route file names passes, and what it strips by a prefix does not', async () => {
  const fields = ['X_Tenant: acme', 'X-Access-Token: t', 'x_tenants: a-lie', 'X-Acme-Role: a-lie', 'x_acme_role: a-lie']
  expect((await h.send('GET /public', { token, fields })).status).toBe(200)
  expect([fieldOf(h.upstream.reached[0], 'x_tenant'), fieldOf(h.upstream.reached[0], 'x-access-token')]).toEqual([
    'acme',
    't',
  ])
  expect(reachedLies()).toBe(false)
})

test('the same holds of a WebSocket handshake', async () => {
  h.upstream.onUpgrade = (_req, socket) =>
    socket.end(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n',
    )
  const lines = [
    ...['GET /socket HTTP/1.1', 'Host: app.test', 'Connection: Upgrade', 'Upgrade: websocket'],
    ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', 'SCRIPT_NAME: a-lie'],
    ...['X-Consumer-Username: a-lie', 'Path_Info: a-lie', 'x_tenant: acme'],
  ]
  expect((await sendRaw(h.port, `${lines.join('\r\n')}\r\n\r\n`)).status).toBe(101)
  expect(fieldOf(h.upstream.reached[0], 'x_tenant')).toBe('acme')
  expect(reachedLies()).toBe(false)
})

test('the same holds of trailers', async () => {
  let trailers: readonly string[] = []
  h.upstream.handle = (req, res) => {
    trailers = req.rawTrailers
    res.end()
  }
  const names = ['SCRIPT_NAME', 'path_info', 'x-consumer-username', 'x.role', 'x-checksum', 'x_tenant']
  const head = `POST /public HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\nTrailer: ${names.join(', ')}`
  const tail = names.map((name) => `${name}: said`).join('\r\n')
  expect((await sendRaw(h.port, `${head}\r\n\r\n1\r\na\r\n0\r\n${tail}\r\n\r\n`)).status).toBe(200)
  h.upstream.handle = null
  expect(trailers).toEqual(['x-checksum', 'said', 'x_tenant', 'said'])
})
