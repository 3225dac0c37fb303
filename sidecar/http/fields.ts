/** Which header fields reach the upstream: ours, and the client's except those that upstreams take for somebody's word. */
import { foldName, isPlainName, REMEMBERED_CHARS_MAX, REMEMBERED_MAX } from './folding.ts'
import { COMMONLY_TRUSTED_FIELDS, CONNECTION_FIELDS, CREDENTIAL_FIELDS, OWN_FIELDS } from './stripped-fields.ts'

export type HeaderRules = {
  /** True when the client's field of this name, as it was sent, reaches the upstream. */
  readonly passes: (name: string) => boolean
}
/** Of the route file. */
export type HeaderNames = {
  /** Further names that do not pass; a prefix ends in `*`. */
  readonly strip: readonly string[]
  /** Names that pass although the rules would take them away. */
  readonly pass: readonly string[]
}

const NEVER = new Set([...CONNECTION_FIELDS, ...CREDENTIAL_FIELDS, ...OWN_FIELDS])

/**
 * A name of anything but letters, digits and `-` does not pass: CGI, WSGI and their heirs make one variable of several
 * such names (gunicorn takes `SCRIPT_NAME` for the place where the application is mounted), and no standard field has one.
 */
export function createHeaderRules({ strip, pass }: HeaderNames): HeaderRules {
  const listed = [...COMMONLY_TRUSTED_FIELDS, ...strip.map(foldPattern)]
  const exact = new Set(listed.filter((name) => !name.endsWith('*')))
  const prefixes = listed.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const passing = new Set(pass.map((name) => name.toLowerCase()))
  const judge = (name: string): boolean => {
    if (NEVER.has(name)) return false
    if (passing.has(name)) return true
    return isPlainName(name) && !exact.has(name) && !prefixes.some((prefix) => name.startsWith(prefix))
  }
  const remembered = new Map<string, boolean>()

  return {
    passes(name) {
      const known = remembered.get(name)
      if (known !== undefined) return known
      const judged = judge(name.toLowerCase())
      if (remembered.size < REMEMBERED_MAX && name.length <= REMEMBERED_CHARS_MAX) remembered.set(name, judged)
      return judged
    },
  }
}

const foldPattern = (name: string): string => (name.endsWith('*') ? `${foldName(name.slice(0, -1))}*` : foldName(name))

/** What is wrong with a name of `pass`, as a sentence that continues it; null: nothing. */
export function passIssue(name: string, strip: readonly string[]): string | null {
  const folded = foldName(name)
  if (NEVER.has(folded)) return 'is written by the sidecar itself or belongs to one connection, so it cannot pass'
  if (!createHeaderRules({ strip: strip.map(foldPattern), pass: [] }).passes(folded)) {
    if (createHeaderRules({ strip: [], pass: [] }).passes(folded)) return 'is in strip_headers, too'
    if (!isPlainName(name.toLowerCase()))
      return `is ${folded} to many servers, which may not pass, so it cannot pass either`
  }
  return null
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
    const name = raw[2 * at] ?? ''
    const passes = rules.passes(name) || (forwardToken && CREDENTIAL_FIELDS.includes(folded)) || folded === 'via'
    if (passes && !connectionListed.has(folded)) fields.push(name, raw[2 * at + 1] ?? '')
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
