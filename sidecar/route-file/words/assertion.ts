/** `assertion` of a route file: the signed field by which the service verifies who calls. */
import type { Node } from 'yaml'
import { type AssertionEntry, BEARER_FIELD, OWN_CLAIMS } from '../../http/assertion.ts'
import { type DoorProfile, isHttpProfile } from '../../http/door-fields.ts'
import type { IdentityField } from '../../http/identity-fields.ts'
import type { UpstreamEntry } from '../../http/upstream-entry.ts'
import type { Route } from '../../routes/route.ts'
import { fieldIssue, NAME } from './identity-headers.ts'
import { listOf, type Members, optional, required, TEXT, textLike } from './schema.ts'
import type { YamlReader } from './yaml-reader.ts'

const CLAIMS_MAX = 32
const CLAIM = /^[\x21-\x7e]{1,128}$/

export const ASSERTION = {
  header: required(
    textLike(NAME),
    'The field that holds the assertion. No client can send it. Authorization: as a bearer token, in place of the one of the client; not with forward_token, and not with a door of nginx, Traefik or Caddy.',
  ),
  audience: required(TEXT, 'The aud claim: the name by which the service is meant.'),
  keys_file: required(
    TEXT,
    'File with one key a line, each of 32 to 1024 visible ASCII characters, such as from openssl rand -base64 48. The first signs, all are published. Every replica needs the same file.',
  ),
  claims: optional(
    { ...listOf(textLike(CLAIM)), maxItems: CLAIMS_MAX },
    'Claims of the token that the assertion repeats as the issuer wrote them, such as email, which is left out when it is not verified. Default: none.',
  ),
} as const satisfies Members

/** Reports errors to the reader. `identity`: fields that name the bearer already. `passed`: the names of pass_headers. */
export function readAssertion(
  reader: YamlReader,
  node: Node | null,
  { identity, passed }: { readonly identity: readonly IdentityField[]; readonly passed: readonly string[] },
): AssertionEntry | null {
  const members = node === null ? null : reader.members(node, 'assertion', ASSERTION)
  if (members === null) return null
  const name = members.header === null ? null : reader.text(members.header, 'header')
  const header = name?.toLowerCase() ?? null
  const issue = name === null || header === BEARER_FIELD ? null : fieldIssue(name, passed)
  if (issue !== null) reader.report(members.header, `${JSON.stringify(name)} ${issue}`)
  if (identity.some((field) => field.name === header))
    reader.report(members.header, `${name} is also in identity_headers`)
  const audience = members.audience === null ? null : reader.text(members.audience, 'audience')
  if (audience === '') reader.report(members.audience, 'audience must not be empty')
  const keysFile = members.keys_file === null ? null : reader.text(members.keys_file, 'keys_file')
  if (keysFile === '') reader.report(members.keys_file, 'keys_file must not be empty')
  const claims = reader.list(members.claims, 'claims', readClaim) ?? []
  if (claims.length > CLAIMS_MAX) reader.report(members.claims, `claims has more than ${CLAIMS_MAX} items`)
  return header === null || audience === null || keysFile === null ? null : { header, audience, keysFile, claims }
}

/** Reports an `assertion_audience` that belongs into the assertion's `audience`, or has no assertion. */
export function checkAudiences(
  reader: YamlReader,
  node: Node | null,
  about: {
    readonly assertion: AssertionEntry | null
    readonly upstream: UpstreamEntry
    readonly routes: readonly { readonly id: string; readonly upstream: UpstreamEntry | null }[]
  },
): void {
  if (about.upstream.assertionAudience !== null)
    reader.report(node, 'assertion_audience is for services of routes; audience of assertion is for this one')
  const named = about.routes.find(({ upstream }) => upstream !== null && upstream.assertionAudience !== null)
  if (about.assertion === null && named !== undefined)
    reader.report(node, `${named.id} has assertion_audience, but the file has no assertion`)
}

/** One sentence for each pair of services of which one could use its assertion at the other. */
export function audienceWarnings(about: {
  readonly assertion: AssertionEntry | null
  readonly routes: readonly Pick<Route, 'id' | 'check' | 'upstream'>[]
}): string[] {
  const { assertion, routes } = about
  const found = routes.find(({ check, upstream }) => check !== null && upstream?.assertionAudience === null)
  if (assertion === null || found === undefined) return []
  const says = `${found.id} sends assertions for ${assertion.audience} to a service of its own`
  return [`${says}, which could show them to that of the file: set assertion_audience in its upstream`]
}

/** Reports the reason for which the assertion cannot be in Authorization. */
export function checkBearer(
  reader: YamlReader,
  node: Node | null,
  about: {
    readonly assertion: AssertionEntry | null
    readonly routes: readonly { readonly id: string; readonly forwardToken: boolean }[]
    readonly doors: readonly { readonly profile: DoorProfile }[]
  },
): void {
  if (about.assertion?.header !== BEARER_FIELD) return
  const forwarding = about.routes.find(({ forwardToken }) => forwardToken)
  if (forwarding !== undefined)
    reader.report(node, `Authorization cannot hold the assertion, because ${forwarding.id} has forward_token`)
  const door = about.doors.find(({ profile }) => isHttpProfile(profile))
  if (door !== undefined)
    reader.report(
      node,
      `Authorization cannot hold the assertion behind ${door.profile}, which asks with the token there`,
    )
}

function readClaim(reader: YamlReader, node: Node | null): string | null {
  const text = reader.text(node, 'a claim')
  if (text === null) return null
  if (!CLAIM.test(text)) reader.report(node, `${JSON.stringify(text)} is not the name of a claim`)
  else if (OWN_CLAIMS.includes(text))
    reader.report(node, `${text} says what the sidecar knows, so it cannot be repeated`)
  return text
}
