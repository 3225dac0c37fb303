/** What somebody without a token may send to the endpoints of a PDP, at any size. */
import { filled } from '../../sidecar/growth/inputs.ts'

export type Sent = { readonly line: string; readonly fields?: readonly string[]; readonly body?: string }
type Row = readonly [name: string, most: number, make: (size: number) => Sent]

/** Node reads 16 KiB of a head; the rest of it is ours. */
const HEAD = 15_000
const FORM = 8_000
const BODY = 65_536
const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded'
const part =
  (name: string, unit: string, before = '') =>
  (size: number) =>
    filled(size, unit, { before: `${name}=${before}` })

/** Values that one of our endpoints or the library behind them may look at. */
const VALUES: { readonly [name: string]: (size: number) => string } = {
  'a secret': part('client_id=portal&client_secret', 'a'),
  'an assertion of dots': part(
    'client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion',
    '.',
  ),
  'an assertion of one long part': part(
    'client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion',
    'A',
    'e30.',
  ),
  'a code': part('grant_type=authorization_code&client_id=native&code_verifier=a&code', 'a'),
  scopes: part('client_id=native&scope', 'a+'),
  'blanks of a scope': part('client_id=native&scope', '+'),
  resources: (size) => filled(size, 'resource=https://a.example/&', { before: 'client_id=native&' }),
  'a redirect address': part('client_id=native&response_type=code&redirect_uri', '/..', 'https://a.example'),
  'a request object': part('client_id=native&request', 'a.'),
  claims: part('client_id=native&claims', '[', '{"id_token":'),
  'a hint': part('client_id=native&id_token_hint', 'A', 'e30.'),
  languages: part('client_id=native&ui_locales', 'a-b+'),
  'a token': part('token', 'a.'),
  'parameters again and again': (size) => filled(size, 'a=b&'),
  escapes: part('client_id', '%C3%A9'),
}

const POSTED = [
  '/oauth/token',
  '/oauth/par',
  '/oauth/device_authorization',
  '/oauth/bc-authorize',
  '/oauth/introspect',
  '/oauth/revoke',
]
const ASKED = ['/oauth/authorize', '/oauth/logout', '/console', '/console/callback', '/account/sign-in']
const JSONS: readonly (readonly [line: string, type: string])[] = [
  ['POST /scim/v2/Users', 'application/scim+json'],
  ['PATCH /scim/v2/Users/a', 'application/scim+json'],
  ['POST /scim/v2/Bulk', 'application/scim+json'],
  ['POST /oauth/decisions', 'application/json'],
  ['POST /access/v1/evaluation', 'application/json'],
  ['POST /v1/organizations', 'application/json'],
  ['POST /ssf/streams', 'application/json'],
  ['POST /signals/received/a', 'application/secevent+jwt'],
]
const FIELDS: { readonly [name: string]: (size: number) => readonly string[] } = {
  'a bearer token of dots': (size) => [`Authorization: Bearer ${filled(size, 'a.')}`],
  'a basic secret': (size) => [`Authorization: Basic ${Buffer.from(filled((size * 3) / 4, 'a:')).toString('base64')}`],
  'a proof': (size) => ['Authorization: DPoP a', `DPoP: ${filled(size, 'A', { before: 'e30.e30.' })}`],
  cookies: (size) => [`Cookie: ${filled(size, '_session=a; ')}`],
  'cookies of ours': (size) => [`Cookie: ${filled(size, '__Host-portcullis-console=a; ')}`],
  'many fields': (size) => Array.from({ length: size / 200 }, (_, at) => `X-${at}: a`),
  languages: (size) => [`Accept-Language: ${filled(size, 'a;q=0.1,')}`],
  types: (size) => [`Accept: ${filled(size, 'text/html;q=0,')}`],
  proxies: (size) => [`Forwarded: ${filled(size, 'for=1.1.1.1,')}`],
  tags: (size) => [`If-None-Match: ${filled(size, '"a",')}`],
}
const FIELDED = [
  'GET /openapi.json',
  'GET /oauth/userinfo',
  'GET /scim/v2/Users',
  'GET /v1/organizations',
  'GET /console',
  'GET /account/sign-in',
  'POST /oauth/token',
]

export const ENDPOINT_ROWS: readonly Row[] = [
  ...POSTED.flatMap((path) =>
    Object.entries(VALUES).map(
      ([name, make]): Row => [
        `${name} at POST ${path}`,
        FORM,
        (size) => ({ line: `POST ${path}`, fields: [FORM_TYPE], body: make(size) }),
      ],
    ),
  ),
  ...ASKED.flatMap((path) =>
    Object.entries(VALUES).map(
      ([name, make]): Row => [
        `${name} at GET ${path}`,
        HEAD,
        (size) => ({ line: `GET ${path}?${make(size).replaceAll(/["[{]/g, encodeURIComponent)}` }),
      ],
    ),
  ),
  ...JSONS.flatMap(([line, type]) =>
    ['[', '{"a":', '"\\u0000",', 'a.', '1,'].map(
      (unit): Row => [
        `a body of ${unit} at ${line}`,
        BODY,
        (size) => ({
          line,
          fields: [`Content-Type: ${type}`, 'Authorization: Bearer a'],
          body: filled(size, unit, { before: '[' }),
        }),
      ],
    ),
  ),
  ...FIELDED.flatMap((line) =>
    Object.entries(FIELDS).map(
      ([name, make]): Row => [`${name} at ${line}`, HEAD, (size) => ({ line, fields: make(size) })],
    ),
  ),
  ...['/a', '%2F', 'a', '..%2F'].map(
    (unit): Row => [`a path of ${unit}`, HEAD, (size) => ({ line: `GET ${filled(size, unit, { before: '/' })}` })],
  ),
  ['a filter of SCIM', HEAD, (size) => ({ line: `GET /scim/v2/Users?filter=${filled(size, 'not%20(')}` })],
  [
    'a page of sign-in with a long name',
    FORM,
    (size) => ({ line: 'POST /account/sign-in', fields: [FORM_TYPE], body: part('email', 'a@')(size) }),
  ],
]

/** Requests that are sent many at once. */
export const PIPELINED = [
  'GET /openapi.json',
  'GET /oauth/authorize',
  'POST /oauth/token',
  'GET /console',
  'GET /account/sign-in',
  'POST /oauth/decisions',
] as const

/** Exported functions that these requests run, for the tidy check. */
export const RUN = [
  'pdp/server/serve/http/bodies.ts:addBodyParsers',
  'pdp/server/serve/http/bodies.ts:addBodyTimeout',
  'pdp/server/serve/http/deadline.ts:addDeadline',
  'pdp/server/serve/http/conditions.ts:sendConstant',
  'pdp/server/serve/http/text-guard.ts:addMessageGuard',
  'pdp/server/serve/http/problem-response.ts:asError',
  'pdp/server/serve/http/problem-response.ts:asHttpProblem',
  'pdp/server/serve/http/problem-response.ts:problemOf',
  'pdp/server/serve/http/problem-response.ts:sendProblem',
  'pdp/server/serve/http/problem-response.ts:answerClientError',
  'pdp/server/serve/http/public-pages.ts:answerBrowser',
  'pdp/server/serve/http/status.ts:asRequestProblem',
  'pdp/server/serve/http/text-guard.ts:addTextGuard',
  'pdp/server/serve/authentication/credentials.ts:presentedToken',
  'pdp/server/serve/authentication/credentials.ts:provesKey',
  'pdp/server/serve/authentication/credentials.ts:invalidToken',
  'pdp/server/serve/authentication/authenticate.ts:authenticateManagementClient',
  'pdp/identity/oauth/forms.ts:isCrossSite',
] as const
