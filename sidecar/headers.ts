/** Which header fields reach the upstream: ours, and the client's except those that upstreams take for somebody's word. */

/** RFC 9110 section 7.6.1 and what belongs to one connection only; also what is rebuilt for the next one. */
const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]
const REBUILT_FIELDS = ['host', 'content-length', 'expect', 'via', 'x-request-id']
const CREDENTIAL_FIELDS = ['authorization', 'dpop']

/** Fields by which an upstream could be told who asks, from where, or for what, behind the back of the judged request. */
const STRIPPED_FIELDS = [
  'forwarded',
  'proxy',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'client-ip',
  'fastly-client-ip',
  'remote-addr',
  'remote-user',
  'remote-groups',
  'remote-email',
  'remote-name',
  'true-client-ip',
  'x-auth',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-forwarded',
  'x-host',
  'x-method-override',
  'x-proxyuser-ip',
  'x-real-ip',
  'x-webauth-user',
]
const STRIPPED_PREFIXES = [
  'cf-access-',
  'portcullis-',
  'ssl-client-',
  'x-amzn-oidc-',
  'x-auth-',
  'x-authenticated-',
  'x-client-cert',
  'x-envoy-',
  'x-ext-authz-',
  'x-forwarded-',
  'x-goog-authenticated-user-',
  'x-goog-iap-',
  'x-http-method',
  'x-middleware-',
  'x-ms-client-principal',
  'x-original-',
  'x-pdp-',
  'x-portcullis-',
  'x-remote-',
  'x-rewrite-',
  'x-ssl-',
]

const PLAIN_NAME = /^[a-z0-9-]+$/
/** Most requests have the same few names. What else somebody sends does not fill the memory. */
const REMEMBERED_MAX = 1_000
const REMEMBERED_CHARS_MAX = 64
const foldedNames = new Map<string, string>()

/** CGI and WSGI turn `-` and `_`, old ones any mark, into the same letter: names that they confuse are one name here. */
export function foldName(name: string): string {
  const known = foldedNames.get(name)
  if (known !== undefined) return known
  const lower = name.toLowerCase()
  const folded = PLAIN_NAME.test(lower) ? lower : lower.replace(/[^a-z0-9]/g, '-')
  if (foldedNames.size < REMEMBERED_MAX && name.length <= REMEMBERED_CHARS_MAX) foldedNames.set(name, folded)
  return folded
}

export type HeaderRules = {
  /** True when the client's field of this folded name does not reach the upstream. */
  readonly strips: (folded: string) => boolean
}

/** `strip`: further names of the operator's. */
export function createHeaderRules(strip: readonly string[]): HeaderRules {
  const exact = new Set([
    ...CONNECTION_FIELDS,
    ...REBUILT_FIELDS,
    ...CREDENTIAL_FIELDS,
    ...STRIPPED_FIELDS,
    ...strip.map(foldName),
  ])
  const judge = (folded: string): boolean =>
    exact.has(folded) || STRIPPED_PREFIXES.some((prefix) => folded.startsWith(prefix))
  const remembered = new Map<string, boolean>()

  return {
    strips(folded) {
      const known = remembered.get(folded)
      if (known !== undefined) return known
      const judged = judge(folded)
      if (remembered.size < REMEMBERED_MAX && folded.length <= REMEMBERED_CHARS_MAX) remembered.set(folded, judged)
      return judged
    },
  }
}

/** What the sidecar itself says to the upstream, about a judged request. Null: that field is not sent. */
export type OwnFields = {
  /** Of HTTP, as the client speaks it. */
  readonly version: string
  readonly host: string
  /** One client, not the way to it: whoever trusts this hop takes it for the client, from whichever end it reads. */
  readonly forwarded: { readonly for: string; readonly host: string; readonly proto: 'http' | 'https' }
  readonly requestId: string
  readonly identity: Identity | null
}
export type Identity = {
  readonly subject: string
  readonly subjectType: 'user' | 'service'
  readonly organization: string | null
  readonly client: string
  readonly scopes: ReadonlySet<string>
}

/** Names and values in turn, for the upstream: the client's, cleaned, then ours. `names` are the folded names of `raw`. */
export function upstreamFields(options: {
  readonly raw: readonly string[]
  readonly names: readonly string[]
  readonly connectionListed: ReadonlySet<string>
  readonly rules: HeaderRules
  readonly forwardToken: boolean
  readonly own: OwnFields
}): string[] {
  const { raw, names, connectionListed, rules, forwardToken, own } = options
  const fields: string[] = []
  for (const [at, folded] of names.entries()) {
    const passes = !rules.strips(folded) || (forwardToken && CREDENTIAL_FIELDS.includes(folded)) || folded === 'via'
    if (passes && !connectionListed.has(folded)) fields.push(raw[2 * at] ?? '', raw[2 * at + 1] ?? '')
  }
  fields.push('host', own.host, 'via', `${own.version} portcullis`, 'x-request-id', own.requestId)
  const { forwarded } = own
  fields.push('x-forwarded-for', forwarded.for, 'x-forwarded-host', forwarded.host)
  fields.push('x-forwarded-proto', forwarded.proto)
  if (own.identity !== null) pushIdentity(fields, own.identity)
  return fields
}

// All values are visible ASCII by the grammar of ids and scopes, so they cannot break out of a field.
function pushIdentity(fields: string[], identity: Identity): void {
  fields.push('x-auth-subject', identity.subject, 'x-auth-subject-type', identity.subjectType)
  fields.push('x-auth-client', identity.client)
  if (identity.organization !== null) fields.push('x-auth-organization', identity.organization)
  if (identity.scopes.size > 0) fields.push('x-auth-scope', [...identity.scopes].join(' '))
}

const CONNECTION_SET = new Set(CONNECTION_FIELDS)

/** Names and values in turn, for the client: the upstream's without what belongs to its connection (RFC 9110 section 7.6.1). */
export function downstreamFields(raw: readonly string[]): string[] {
  const listed: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (foldName(raw[at] ?? '') === 'connection') listed.push(...splitList(raw[at + 1]))
  const fields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    const lower = name.toLowerCase()
    if (!CONNECTION_SET.has(lower) && !listed.includes(lower)) fields.push(name, raw[at + 1] ?? '')
  }
  return fields
}

/** The first value of the field with this lower-case name, of names and values in turn; null: it is not there. */
export function firstValue(fields: readonly string[], name: string): string | null {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === name.length && fields[at]?.toLowerCase() === name) return fields[at + 1] ?? ''
  return null
}

/** Lower-case members of a comma-separated field value. */
export const splitList = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== '')
