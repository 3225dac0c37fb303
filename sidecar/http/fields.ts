/** Builds the header fields for the upstream: the sidecar's own, and the client's without those that servers trust as set by a proxy. */
import { lowerAscii, trimBlanks } from '../../pdp/shared/base/blanks.ts'
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { foldName, isPlainName, REMEMBERED_CHARS_MAX, REMEMBERED_MAX } from './folding.ts'
import { type IdentityField, identityFields } from './identity-fields.ts'
import { COMMONLY_TRUSTED_FIELDS, CONNECTION_FIELDS, CREDENTIAL_FIELDS, OWN_FIELDS } from './stripped-fields.ts'

export type HeaderRules = {
  /** Identity fields that the service gets besides our own. */
  readonly identity: readonly IdentityField[]
  /** Signs who calls, in the field `header`; null: no service wants it. */
  readonly assertion: {
    readonly header: string
    readonly sign: (identity: Identity, audience?: string | null) => string | null
  } | null
  /** True when the client's field with this name is forwarded. */
  readonly passes: (name: string) => boolean
}
/** Names from the route file. */
export type HeaderNames = {
  /** Additional names to remove; a prefix ends in `*`. */
  readonly strip: readonly string[]
  /** Names that are forwarded although the rules would remove them. */
  readonly pass: readonly string[]
  /** Fields that name the bearer to the service, which no client may send. */
  readonly identity?: readonly IdentityField[]
}

/** Fields of a client that reach no service, whatever the route file says. */
export const NEVER_PASSED: ReadonlySet<string> = new Set([...CONNECTION_FIELDS, ...CREDENTIAL_FIELDS, ...OWN_FIELDS])

/**
 * Removes names with characters other than letters, digits and `-`. CGI and WSGI servers map several such names to one
 * variable (gunicorn reads `SCRIPT_NAME` as the mount point of the application), and no standard field has such a name.
 */
export function createHeaderRules(
  { strip, pass, identity = [] }: HeaderNames,
  assertion: HeaderRules['assertion'] = null,
): HeaderRules {
  const never = new Set([...NEVER_PASSED, ...identity.map(({ name }) => name)])
  const listed = [...COMMONLY_TRUSTED_FIELDS, ...strip.map(foldPattern)]
  const bare = COMMONLY_TRUSTED_FIELDS.filter((name) => name.endsWith('-*')).map((name) => name.slice(0, -2))
  const exact = new Set([...listed.filter((name) => !name.endsWith('*')), ...bare])
  const prefixes = listed.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const passing = new Set(pass.map((name) => name.toLowerCase()))
  const mayPass = (name: string): boolean => {
    if (never.has(name)) return false
    if (passing.has(name)) return true
    return isPlainName(name) && !exact.has(name) && !prefixes.some((prefix) => name.startsWith(prefix))
  }
  const remembered = new Map<string, boolean>()

  return {
    identity,
    assertion,
    passes(name) {
      const known = remembered.get(name)
      if (known !== undefined) return known
      const result = mayPass(name.toLowerCase())
      if (remembered.size < REMEMBERED_MAX && name.length <= REMEMBERED_CHARS_MAX) remembered.set(name, result)
      return result
    },
  }
}

const foldPattern = (name: string): string => (name.endsWith('*') ? `${foldName(name.slice(0, -1))}*` : foldName(name))

/** The reason why `pass` must not have the name, as the end of a sentence that begins with the name; null: it may. */
export function passIssue(name: string, strip: readonly string[]): string | null {
  const folded = foldName(name)
  if (NEVER_PASSED.has(folded)) return 'is set by the sidecar or belongs to one connection, so it cannot be passed'
  if (!createHeaderRules({ strip: strip.map(foldPattern), pass: [] }).passes(folded)) {
    if (createHeaderRules({ strip: [], pass: [] }).passes(folded)) return 'is also in strip_headers'
    if (!isPlainName(name.toLowerCase()))
      return `is the same as ${folded} to many servers, and that field is removed, so it cannot be passed`
  }
  return null
}

/** The fields that the sidecar itself sends to the upstream. Null: the field is not sent. */
export type OwnFields = {
  /** HTTP version of the client's request. */
  readonly version: string
  readonly host: string
  /** `for`: only the client, not the chain of proxies, so an upstream finds the same address at either end of the list. */
  readonly forwarded: { readonly for: string; readonly host: string; readonly proto: 'http' | 'https' }
  readonly requestId: string
  /** Replaces the client's field (W3C Trace Context); null: the client's passes unchanged. */
  readonly traceparent: string | null
  readonly identity: Identity | null
  /** The audience of assertions; null or absent: that of the file. */
  readonly audience?: string | null
}
export type Identity = {
  readonly subject: string
  readonly subjectType: 'user' | 'service'
  readonly organization: string | null
  readonly client: string
  /** The client that acts for the subject by token exchange; null: none. */
  readonly actor: string | null
  /** The issuer of the access token. */
  readonly issuer: string
  readonly scopes: ReadonlySet<string>
  /** All claims of the token as its issuer wrote them. */
  readonly claims: JsonMembers
}

/** Fields for the upstream, names and values alternating: the client's filtered fields, then ours. `names`: the folded names of `raw`. */
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
  // An iterator of entries would allocate an object for each field.
  for (let at = 0; at < names.length; at += 1) {
    const folded = names[at] ?? ''
    const name = raw[2 * at] ?? ''
    if (folded === 'traceparent' && own.traceparent !== null) continue
    const passes = rules.passes(name) || (forwardToken && CREDENTIAL_FIELDS.includes(folded)) || folded === 'via'
    if (passes && !connectionListed.has(folded)) fields.push(name, raw[2 * at + 1] ?? '')
  }
  fields.push('host', own.host, 'via', `${own.version} portcullis`, 'x-request-id', own.requestId)
  if (own.traceparent !== null) fields.push('traceparent', own.traceparent)
  const { forwarded } = own
  fields.push('x-forwarded-for', forwarded.for, 'x-forwarded-host', forwarded.host)
  fields.push('x-forwarded-proto', forwarded.proto)
  if (own.identity === null) return fields
  pushIdentity(fields, own.identity)
  if (rules.identity.length > 0) fields.push(...identityFields(rules.identity, own.identity.claims))
  const signed = rules.assertion?.sign(own.identity, own.audience) ?? null
  if (rules.assertion !== null && signed !== null) fields.push(rules.assertion.header, signed)
  return fields
}

// No value can break out of its field: ids, scopes and issuers consist of visible ASCII.
function pushIdentity(fields: string[], identity: Identity): void {
  fields.push('x-auth-subject', identity.subject, 'x-auth-subject-type', identity.subjectType)
  fields.push('x-auth-client', identity.client, 'x-auth-issuer', identity.issuer)
  if (identity.actor !== null) fields.push('x-auth-actor', identity.actor)
  if (identity.organization !== null) fields.push('x-auth-organization', identity.organization)
  if (identity.scopes.size > 0) fields.push('x-auth-scope', [...identity.scopes].join(' '))
}

const CONNECTION_SET = new Set(CONNECTION_FIELDS)

/**
 * Fields for the client, names and values alternating: the upstream's without connection-specific ones (RFC 9110 section 7.6.1)
 * and without those in `dropped`, which has names in lower case.
 */
export function downstreamFields(raw: readonly string[], dropped: readonly string[] = []): string[] {
  let listed = dropped
  for (let at = 0; at + 1 < raw.length; at += 2)
    if (foldName(raw[at] ?? '') === 'connection') listed = [...listed, ...splitList(raw[at + 1])]
  const fields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    const lower = name.toLowerCase()
    if (!CONNECTION_SET.has(lower) && !listed.includes(lower)) fields.push(name, raw[at + 1] ?? '')
  }
  return fields
}

/** The first value of the field with this lower-case name; null: absent. `fields`: names and values alternating. */
export function firstValue(fields: readonly string[], name: string): string | null {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === name.length && fields[at]?.toLowerCase() === name) return fields[at + 1] ?? ''
  return null
}

/** The value of the field with this lower-case name; null: it is absent or repeated. `raw`: names and values alternating. */
export function onlyValue(raw: readonly string[], name: string): string | null {
  let found: string | null = null
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.length !== name.length || raw[at]?.toLowerCase() !== name) continue
    if (found !== null) return null
    found = raw[at + 1] ?? ''
  }
  return found
}

/** All values of the field with this lower-case name. In `fields`, names and values alternate. */
export const valuesOf = (fields: readonly string[], name: string): string[] =>
  fields.filter(
    (_, at) => at % 2 === 1 && fields[at - 1]?.length === name.length && fields[at - 1]?.toLowerCase() === name,
  )

/** The fields as pairs. `fields`: names and values alternating. */
export function pairsOf(fields: readonly string[]): [string, string][] {
  const list: [string, string][] = []
  for (let at = 0; at + 1 < fields.length; at += 2) list.push([fields[at] ?? '', fields[at + 1] ?? ''])
  return list
}

/** The members of a comma-separated field value, in lower case. */
export const splitList = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((item) => lowerAscii(trimBlanks(item)))
    .filter((item) => item !== '')
