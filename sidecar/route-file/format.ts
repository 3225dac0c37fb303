/**
 * The format of a route file: each member, whether it is required, its form and its meaning. The readers take keys, choices
 * and bounds from here; `route-file.schema.json` is this table for editors, and a test compares the two.
 */
import { TEXT_PARTS } from '../routes/checks.ts'
import { VALUE_TYPES } from '../routes/context.ts'
import { CONSTANTS_MAX, PARAMETER, PARAMETERS_MAX } from './context.ts'
import { EXTERNAL, ISSUER } from './issuer-format.ts'
import { LIMIT_MEMBERS, TIME } from './limits.ts'
import { SIGN_IN } from './sign-in-format.ts'
import { ANSWER } from './words/answer.ts'
import { ASSERTION } from './words/assertion.ts'
import { CORS } from './words/cors.ts'
import { IDENTITY_HEADERS } from './words/identity-headers.ts'
import { MCP_SESSIONS } from './words/mcp-sessions.ts'
import { DOOR, HTTP_URL, PDP, TLS, UPSTREAM } from './words/peer-format.ts'
import {
  count,
  definition,
  FLAG,
  type Form,
  HEADER,
  listOf,
  type Members,
  mapOf,
  oneOf,
  oneOrMore,
  optional,
  required,
  TEXT,
  textLike,
} from './words/schema.ts'

/** `hashed`: the first 128 bits of SHA-256, so that lines of one subject can still be correlated. */
export const ALLOWED_ONE_IN = { min: 1, max: 1_000_000 }
export const SUBJECTS_IN_LOG = ['plain', 'hashed', 'omitted'] as const
export const PATHS_IN_LOG = ['full', 'without_query', 'omitted'] as const
export const MODES = ['enforce', 'shadow'] as const
export const NONCES = ['required', 'off'] as const
export const BODIES = ['keep', 'judge'] as const

export const PROBE_PATH = /^\/[A-Za-z0-9._~/-]*$/
export const OPEN_PATH = /^\/[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/
const NETWORK = /^[0-9A-Fa-f:.]+(\/[0-9]{1,3})?$/
export const HEADER_OR_PREFIX = /^[A-Za-z0-9_-]+\*?$/
export const ACR = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
export const COOKIE = /^[!#$%&'*+.^_`|~A-Za-z0-9-]{1,128}$/
export const MCP_CALL = /^(\S+)(?: (.+))?$/
export const REQUEST = /^([A-Z]+(?:-[A-Z]+)*) (\S+)$/

export const BODY_BYTES = { min: 1, max: 8 * 1024 * 1024, default: 64 * 1024 }
export const AGE_SECONDS = { min: 0, max: 31_536_000 }
export const STATUS = { min: 200, max: 599 }
export const ROUTES_MAX = 2_000

export const DPOP = {
  nonce: optional(oneOf(NONCES), 'required: DPoP proofs must contain a nonce of this sidecar (RFC 9449 section 9).'),
} as const satisfies Members

export const LOG = {
  subject: optional(
    oneOf(SUBJECTS_IN_LOG),
    'How the decision log names subjects. With hashed and omitted, the ids of resources are left out of the questions. Default: plain.',
  ),
  path: optional(
    oneOf(PATHS_IN_LOG),
    'How much of the path of a request its line has. A query may hold secrets. omitted leaves the ids of resources out of the line as well. Default: without_query.',
  ),
  allowed_one_in: optional(
    count(ALLOWED_ONE_IN),
    'Of this many allowed requests, one is logged. Every other request is. Default: 1.',
  ),
} as const satisfies Members

export const STEP_UP = {
  acr_values: optional(listOf(textLike(ACR)), 'One of these authentication contexts is needed (RFC 9470).'),
  max_age: optional(count(AGE_SECONDS), 'Maximum age of the sign-in in seconds.'),
} as const satisfies Members

export const TOKEN_FROM = {
  header: optional(
    oneOrMore(textLike(HEADER)),
    'The name of a header field, or of several, whose whole value is the token, such as X-Api-Token, or Bearer and the token. A token in two places is 400.',
  ),
  subprotocol: optional(
    FLAG,
    'true: of a WebSocket, as new WebSocket(url, ["bearer", token]) sends it, or base64url.bearer.authorization.k8s.io.<token in base64url> beside another subprotocol.',
  ),
  cookie: optional(
    textLike(COOKIE),
    'The name of a cookie of your pages. It counts for a WebSocket of a page of origins, and for an EventSource of such a page or of the same origin. Without the prefix __Host-, another host of the domain can set it.',
  ),
} as const satisfies Members

const CONSTANT: Form = { type: ['string', 'number', 'boolean'] }
const CONSTANT_OR_LIST = { oneOf: [CONSTANT, { type: 'array', maxItems: CONSTANTS_MAX, items: CONSTANT }] }
/** A value of the request, `{client.address}` or `{query.limit: int}`, which YAML reads as a map. */
const REQUEST_VALUE: Form = {
  type: 'object',
  minProperties: 1,
  maxProperties: 1,
  additionalProperties: { enum: [null, ...VALUE_TYPES] },
}
const CONTEXT: Form = {
  type: 'object',
  minProperties: 1,
  maxProperties: PARAMETERS_MAX,
  propertyNames: textLike(PARAMETER),
  additionalProperties: {
    oneOf: [...CONSTANT_OR_LIST.oneOf, REQUEST_VALUE],
  },
}

const UPSTREAM_FORM: Form = { oneOf: [textLike(HTTP_URL), definition('upstream')] }
const CHECK_OR_PUBLIC: Form = { oneOf: [{ const: 'public' }, definition('check')] }

export const ROUTE = {
  check: optional(CHECK_OR_PUBLIC, 'A check, or public. Exactly one of check and public is needed.'),
  public: optional(
    { const: 'with_identity' },
    'with_identity: nobody is refused, and the service learns who sends a valid token or has a session. An invalid one counts as none, as the log then says; no session is renewed, and nobody is sent to sign in.',
  ),
  context: optional(
    CONTEXT,
    'Values of parameters of conditions, for the questions of this route: constants, or values of the request such as {client.address} or {query.limit: int}. They are added to the context of the file, and win over it; what a tuple stores wins over both.',
  ),
  answer: optional(
    definition('answer'),
    'Shows the reader of a list only the items that the reader may see. Anything unexpected in an answer loses the whole answer (502). HEAD is 405 then.',
  ),
  encoded_slash: optional({ const: 'keep' }, 'Allows %2F within a segment of the path.'),
  semicolon: optional({ const: 'keep' }, 'Allows ; in the path.'),
  query: optional(
    { const: 'keep' },
    'Passes queries on that have a key with the name of a parameter of the path that the checks take, and another value, and POST queries with a key that names a function of any page (_action of Astro, /remote of SvelteKit). Set it if the service takes the parameter from the path alone, and if everybody whom the route allows may run such functions.',
  ),
  body: optional(
    oneOf(BODIES),
    'keep: passes bodies on unread where a service could take from one what the sidecar has read elsewhere: bodies of every type on routes whose checks read the query, and forms (application/x-www-form-urlencoded, multipart) and JSON for POST where PUT, PATCH or DELETE of the path has another check. judge: reads JSON, and refuses every other body, also where the checks take a parameter of the path that the service could take from the body instead. Default: neither.',
  ),
  body_bytes_max: optional(count(BODY_BYTES), 'Overrides the member of the same name of the file.'),
  upstream: optional(
    UPSTREAM_FORM,
    'Overrides the member of the same name of the file: another service gets these requests. Not with doors.',
  ),
  upstream_headers_ms: optional(count(TIME), 'Overrides the limit of the same name, for gRPC too.'),
  forward_token: optional(FLAG, 'Overrides the member of the same name of the file.'),
  mode: optional(oneOf(MODES), 'Overrides the member of the same name of the file.'),
  upgrade: optional(listOf({ const: 'websocket' }), 'Protocols that a request may upgrade to.'),
  origins: optional(
    listOf(textLike(/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/)),
    'Origins of pages that may open a WebSocket connection, or an event stream by a cookie, such as https://app.example.com or https://*.example.com. Default: those of public_url and resource.',
  ),
  token_from: optional(
    mapOf(TOKEN_FROM, { minProperties: 1 }),
    'Where a token may be that is not in Authorization: in a field of another name, or where pages have it that cannot set fields (WebSocket, EventSource). Never in the query. The service does not get it there. Default: nowhere.',
  ),
  cors: optional(mapOf(CORS), 'In place of the member of the same name of the file.'),
  step_up: optional(mapOf(STEP_UP, { minProperties: 1 }), 'How strong and how recent the sign-in must be (RFC 9470).'),
  issuers: optional(oneOrMore(TEXT), 'Only tokens of these, of the issuers of the file, count here.'),
  audience: optional(
    oneOrMore(TEXT),
    'A token must be for this audience, or one of a list, of those that the file takes (resource, and audience of issuers).',
  ),
  guests: optional(
    FLAG,
    'true: a request without a token is decided, too, as that of a guest. For guests hold only comparisons, and relations that a model lets a tuple give to everybody (user:*). What does not admit a guest is 401. With a token, its bearer is asked about. Default: false.',
  ),
  sign_in: optional(
    FLAG,
    'false: a browser without a session gets 401 and problem documents here, as an API client does. A session counts there, too. Default: true, when the file has sign_in.',
  ),
} as const satisfies Members

export const LISTED = ['some'] as const
export const MCP_RULE = {
  check: required(definition('check'), 'A check, which may read {arguments.NAME}.'),
  listed: optional(oneOf(LISTED), 'some: listed if each relation that takes an argument holds on some resource.'),
  step_up: ROUTE.step_up,
} as const satisfies Members

const CHECK_OR_RULE: Form = { oneOf: [definition('check'), mapOf(MCP_RULE)] }
const RULES: Form = { type: 'object', additionalProperties: CHECK_OR_RULE }

/** The members of a route for MCP, `MCP [host]/path`. */
export const MCP_ROUTE = {
  check: optional(definition('check'), 'What everybody needs who uses the server at all. Default: signed_in.'),
  tools: optional(
    RULES,
    'Who may call each tool; {arguments.NAME} is an argument of the call. A tool that is not named is denied, and one is listed to those for whom the parts of its check hold that need no argument (and more with listed: some).',
  ),
  prompts: optional(RULES, 'Who may get each prompt; {arguments.NAME} is an argument.'),
  resources: optional(
    RULES,
    'Who may read each resource: by its URI, or by a template such as crm://customers/{id}, whose parameters the check may take. A URI with % or a dot segment matches none.',
  ),
  body_bytes_max: ROUTE.body_bytes_max,
  upstream: ROUTE.upstream,
  forward_token: ROUTE.forward_token,
  mode: ROUTE.mode,
  cors: ROUTE.cors,
  step_up: ROUTE.step_up,
  sign_in: ROUTE.sign_in,
} as const satisfies Members

export const EXPECT = {
  route: optional(TEXT, 'The route that must match.'),
  asks: optional({ type: 'array', items: { type: 'string' } }, 'The questions that must be asked, in this order.'),
  context: optional(
    { type: 'object', additionalProperties: CONSTANT_OR_LIST },
    'The context of the questions must be exactly this.',
  ),
  status: optional(count(STATUS), 'The status of the answer.'),
  answer: optional(TEXT, 'What the client gets of the answer of the service, byte for byte. Needs answer of the test.'),
} as const satisfies Members

export const TEST = {
  request: optional(textLike(REQUEST), 'METHOD /path or METHOD http://host/path.'),
  mcp: optional(
    textLike(MCP_CALL),
    'In place of request: a message to the route of the kind MCP, such as tools/list, tools/call NAME or resources/read URI.',
  ),
  arguments: optional(
    { type: 'object', additionalProperties: CONSTANT_OR_LIST },
    'The arguments of the tool or prompt that mcp names.',
  ),
  as: optional(
    { type: 'object', additionalProperties: CONSTANT_OR_LIST },
    'Claims of the token: text, a number, true, false, or a list of these. Default: no token.',
  ),
  from: optional(TEXT, 'The address of the client.'),
  headers: optional({ type: 'object', additionalProperties: { type: 'string' } }, 'Header fields of the request.'),
  body: optional(TEXT, 'The body, as JSON.'),
  answer: optional(
    TEXT,
    'An answer of the service, for a route that filters its answers: a document, lines, or the data of an event.',
  ),
  allowed: optional(
    { type: 'array', items: { type: 'string' } },
    'Questions about the items of the answer that the PDP allows, such as viewer invoice:1. Default: none.',
  ),
  expect: required(mapOf(EXPECT), 'What must come out.'),
} as const satisfies Members

const PDP_FORM = mapOf(PDP, { oneOf: [{ required: ['address'] }, { required: ['addresses'] }] })
const ROUTE_KEY = String.raw`^(?!MCP[ \t])(\*|[A-Z]+(-[A-Z]+)*)[ \t]+[^\s/]*/\S*$`
const MCP_KEY = String.raw`^MCP[ \t]+[^\s/]*/\S*$`
const ROUTES_FORM: Form = {
  type: 'object',
  maxProperties: ROUTES_MAX,
  additionalProperties: false,
  patternProperties: {
    [ROUTE_KEY]: {
      oneOf: [{ const: 'public' }, definition('check'), definition('route')],
    },
    [MCP_KEY]: definition('mcp'),
  },
}

export const ROUTE_FILE = {
  portcullis: required({ const: 'v1' }, 'Version of this format.'),
  resource: required(
    oneOrMore(TEXT),
    'The aud claim of tokens must contain it (RFC 8707). A list, as for the days of a rename: one of them; the first names the resource to clients.',
  ),
  public_url: optional(
    { ...TEXT, ...textLike(HTTP_URL) },
    'Origin and path prefix under which clients reach the sidecar; DPoP proofs name it in htu, with the host of the route where the route has one. Default: resource.',
  ),
  issuers: required(listOf(definition('issuer')), 'Issuers whose tokens are accepted.'),
  upstream: required(UPSTREAM_FORM, 'The service behind the sidecar, for routes that name no other.'),
  pdp: required(PDP_FORM, 'The policy decision point.'),
  tls: optional(mapOf(TLS), 'TLS of the data port. Default: plain text.'),
  doors: optional(
    listOf(mapOf(DOOR)),
    'Where gateways ask whether they may forward a request, beside the data port. A gateway must authenticate: by tls with client_ca_file, by secret_file, or by a unix socket. A change needs a restart.',
  ),
  sign_in: optional(
    mapOf(SIGN_IN),
    'Sends browsers without a token to sign in, and keeps a session for them in a cookie. Default: they get 401.',
  ),
  dpop: optional(mapOf(DPOP), 'Proof of possession (RFC 9449).'),
  log: optional(mapOf(LOG), 'The decision log.'),
  cors: optional(
    mapOf(CORS),
    'Pages of other origins that may read answers, those of the sidecar itself included (CORS). Default: none.',
  ),
  mode: optional(
    oneOf(MODES),
    'shadow: whatever HTTP allows reaches the service, also without a route, and what would be denied is logged and counted. Beside a route with mode: enforce, only denials of the other routes pass. Default: enforce.',
  ),
  hosts: optional(
    listOf(TEXT),
    'Host names without port that are served. *.app.example.com means every name with one label more, and app.example.com. (with a dot at its end) is served only where it is listed so. Default: those of resource and public_url.',
  ),
  probe_paths: optional(
    listOf(textLike(PROBE_PATH)),
    'Paths at which GET on the data port gets what /readyz of the admin port says, whatever the Host field, and without one: for load balancers that put an address there. They are no paths of the service any more.',
  ),
  open_paths: optional(
    {
      type: 'object',
      minProperties: 1,
      propertyNames: textLike(OPEN_PATH),
      additionalProperties: listOf(textLike(NETWORK)),
    },
    'Paths that some peers may GET without a token, whatever the Host field: {/metrics: [10.0.0.0/8]}. Exactly these paths, for these IP addresses and CIDR blocks; a request that a proxy has forwarded takes its route. Not with doors.',
  ),
  cluster_service: optional(
    TEXT,
    'name.namespace of the Service of Kubernetes, such as orders.shop: its names within the cluster are served as well, from orders to orders.shop.svc.cluster.local, and those of Pods of a StatefulSet. Another domain of the cluster: orders.shop.svc.example.internal.',
  ),
  context: optional(
    CONTEXT,
    'Values of parameters of conditions, for the questions of every route. None of them can come from the body or from a parameter of the path.',
  ),
  strip_headers: optional(
    listOf(textLike(HEADER_OR_PREFIX)),
    'Request header fields that never reach the service, in addition to those that servers and frameworks are known to trust. A name that ends in * is a prefix: x-acme-*.',
  ),
  pass_headers: optional(
    listOf(textLike(HEADER)),
    'Request header fields that reach the service although they would be removed: names with characters other than letters, digits and -, such as x_tenant, and names that some product trusts, such as x-access-token. Whole names, no prefixes.',
  ),
  identity_headers: optional(
    IDENTITY_HEADERS,
    'Fields that name the bearer to the service beside X-Auth-*, each with a claim of the token as the issuer wrote it, or a text with claims: {X-WEBAUTH-USER: {claims.email}, Remote-Groups: {claims.groups}}. Lists are joined by commas. No client can send these fields. A field is left out when a claim is missing or has a control character, a name in a list has a comma, or claims.email is not verified (email_verified).',
  ),
  mcp_sessions: MCP_SESSIONS,
  assertion: optional(
    mapOf(ASSERTION),
    'A JWT of one minute that names the bearer to the service, signed with ES256. Its key set is at /.portcullis/assertion-keys of the data port, whatever the Host field, and of the admin port.',
  ),
  body_bytes_max: optional(
    count(BODY_BYTES, { default: BODY_BYTES.default }),
    'Maximum size of a body that a check reads, in bytes.',
  ),
  trusted_proxies: optional(
    listOf(textLike(NETWORK)),
    'IP addresses and CIDR blocks of the proxies in front that set or remove X-Forwarded-For, -Proto and -Host, or Forwarded, in every request. Only their fields are trusted, from right to left: for X-Forwarded-* to the service, for client_address in the log and for the limits of one client. If both kinds are present and differ, the answer is 400; what only one of them says is not used. Routes and DPoP proofs use the Host field and public_url; a forwarded host that leads to another route is 400, and one that is not in hosts is 421.',
  ),
  proxy_protocol: optional(
    FLAG,
    'true: connections of trusted_proxies begin with a header of the PROXY protocol, version 1 or 2, as load balancers that forward TCP send it; without one they are closed. The header names the client in place of the connection; a forwarding field of such a client counts only if trusted_proxies names the client as well. Default: false.',
  ),
  limits: optional(mapOf(LIMIT_MEMBERS), 'Limits and time-outs.'),
  guest_organization: optional(
    TEXT,
    'The organization whose relationships are asked for guests. Routes with guests and a relation need it.',
  ),
  forward_token: optional(FLAG, 'Sends Authorization and DPoP on. Default: false; in shadow mode of the file true.'),
  routes: required(
    ROUTES_FORM,
    'A check for each "METHOD [host]/path". MCP in place of a method is a server of the Model Context Protocol, whose tools have checks of their own.',
  ),
  tests: optional(
    { type: 'array', items: mapOf(TEST) },
    'Requests and what must come out: portcullis-sidecar test runs them.',
  ),
} as const satisfies Members

const combination = (name: string, form: Form): Form => mapOf({ [name]: required(form) })
const CLAIM_PARTS: Form = {
  type: 'object',
  minProperties: 1,
  propertyNames: textLike(/^claims\./),
  additionalProperties: { type: 'string', minLength: 1 },
}
const CHECK: Form = {
  oneOf: [
    {
      type: 'string',
      not: { const: 'public' },
      pattern: String.raw`^\s*(signed_in|\S+\s+\S+)\s*$`,
      description:
        'signed_in (any active access token), <relation> <type>:<id>, permission <key>, entitlement <key> or scope <name>',
    },
    combination('all', listOf(definition('check'))),
    combination('any', listOf(definition('check'))),
    combination('equals', { type: 'object', minProperties: 1, additionalProperties: CONSTANT }),
    ...TEXT_PARTS.map((name) => combination(name, CLAIM_PARTS)),
  ],
}

/** The schema for editors; `route-file.schema.json` holds it. */
export const routeFileSchema = (): Form => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  $id: 'urn:portcullis:schema:route-file:v1',
  title: 'Route file of a Portcullis sidecar',
  ...mapOf(ROUTE_FILE),
  definitions: {
    issuer: mapOf(ISSUER),
    external: mapOf(EXTERNAL),
    check: CHECK,
    route: mapOf(ROUTE, { oneOf: [{ required: ['check'] }, { required: ['public'] }] }),
    mcp: mapOf(MCP_ROUTE),
    answer: mapOf(ANSWER),
    upstream: mapOf(UPSTREAM),
  },
})
