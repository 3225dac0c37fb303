/** Reads `sign_in` of a route file: where browsers sign in, and how long a session lasts. */
import { isSeq, type Node } from 'yaml'
import { isSafeKeyUrl } from '../../pdp/shared/token/remote-keys.ts'
import { type IssuerEntry, readPath, WAYS_OUT } from './peers.ts'
import {
  IDLE_SECONDS,
  OWN_PARAMETERS,
  PROVIDER,
  PROVIDER_NAME,
  PROVIDERS_MAX,
  SESSION_SECONDS,
  SIGN_IN,
} from './sign-in-format.ts'
import { type PagesEntry, readPages } from './words/pages.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type ProviderEntry = {
  /** The issuer, which must be one of the file's `issuers`. */
  readonly issuer: string
  readonly clientId: string
  /** The file of the secret, read at each discovery; null: a public client. */
  readonly clientSecretFile: string | null
  /** The file of the client's private JWK, used instead of a secret; null: there is none. */
  readonly clientKeyFile: string | null
  /** The name in the path of the callback; empty for a single provider, whose path has no name. */
  readonly name: string
  readonly label: string
  readonly scope: string
  /** Further parameters of the authorization request. */
  readonly parameters: { readonly [name: string]: string }
}
export type SignInEntry = {
  readonly keysFile: string
  readonly providers: readonly [ProviderEntry, ...ProviderEntry[]]
  readonly sessionMaxMs: number
  readonly idleMaxMs: number
  readonly pages: PagesEntry
}

/** Reads the sign-in and reports errors; null: there is none, or it has errors. */
export function readSignIn(
  reader: YamlReader,
  node: Node | null,
  file: { readonly publicUrl: string; readonly issuers: readonly Pick<IssuerEntry, 'issuer' | 'external'>[] },
): SignInEntry | null {
  const members = node === null ? null : reader.members(node, 'sign_in', SIGN_IN)
  if (members === null) return null
  // Chromium and Firefox accept such cookies over http from loopback, too.
  if (!isSafeKeyUrl(file.publicUrl))
    reader.report(
      node,
      'sign_in needs a public_url with https: browsers keep its cookies on https only (http on loopback)',
    )
  const keysFile = readPath(reader, members.keys_file, 'keys_file')
  const read = (_: YamlReader, item: Node | null): ProviderEntry | null => readProvider(reader, item, file.issuers)
  const list = reader.resolve(members.providers)
  if (isSeq(list) && list.items.length > PROVIDERS_MAX)
    reader.report(members.providers, `providers has more than ${PROVIDERS_MAX} entries`)
  const [first, ...others] = reader.list(members.providers, 'providers', read) ?? []
  const session = seconds(reader, members.session_max, 'session_max', SESSION_SECONDS)
  const idle = seconds(reader, members.idle_max, 'idle_max', IDLE_SECONDS)
  if (members.idle_max !== null && idle > session)
    reader.report(members.idle_max, 'idle_max must not be more than session_max')
  const pages = readPages(reader, members.pages)
  if (keysFile === null || first === undefined) return null
  const providers = [first, ...others] as const
  checkNames(reader, members.providers, providers)
  return { keysFile, providers, sessionMaxMs: session * 1_000, idleMaxMs: Math.min(idle, session) * 1_000, pages }
}

function seconds(
  reader: YamlReader,
  node: Node | null,
  what: string,
  bounds: { readonly min: number; readonly max: number; readonly default: number },
): number {
  return (node === null ? null : reader.count(node, what, bounds)) ?? bounds.default
}

function readProvider(
  reader: YamlReader,
  node: Node | null,
  issuers: readonly Pick<IssuerEntry, 'issuer' | 'external'>[],
): ProviderEntry | null {
  const members = reader.members(node, 'a provider', PROVIDER)
  if (members === null || members.issuer === null || members.client_id === null) return null
  const issuer = reader.text(members.issuer, 'issuer')
  const clientId = reader.text(members.client_id, 'client_id')
  const name = members.name === null ? '' : reader.text(members.name, 'name')
  if (name !== null && members.name !== null && !PROVIDER_NAME.test(name))
    reader.report(members.name, 'name must be 1 to 32 small letters, digits and -')
  if (issuer !== null && !issuers.some((known) => known.issuer === issuer))
    reader.report(members.issuer, `${issuer} is not one of issuers, so its tokens would be refused`)
  // An external issuer with such terms would make the ID tokens of all who sign in valid access tokens.
  const external = issuers.find((known) => known.issuer === issuer)?.external ?? null
  if (external?.workloads === true && [external.audience].flat().some((audience) => audience === clientId))
    reader.report(
      members.client_id,
      `people sign in at the client ${clientId}, so it cannot be the audience of workloads: an ID token of it would pass as a credential. Give workloads an audience of their own`,
    )
  if (issuer !== null && !isSafeKeyUrl(issuer))
    reader.report(
      members.issuer,
      `people can sign in only at an issuer with an https URL (http on loopback): ${WAYS_OUT}`,
    )
  if (members.client_secret_file !== null && members.client_key_file !== null)
    reader.report(members.client_key_file, 'a client has either client_secret_file or client_key_file')
  const scope = members.scope === null ? 'openid' : reader.text(members.scope, 'scope')
  if (scope !== null && !scope.split(' ').includes('openid'))
    reader.report(members.scope, 'scope must contain openid, because a session needs to know who signed in')
  const label = members.label === null ? null : reader.text(members.label, 'label')
  if (issuer === null || clientId === null || name === null || scope === null || !URL.canParse(issuer)) return null
  return {
    issuer,
    clientId,
    clientSecretFile: readPath(reader, members.client_secret_file, 'client_secret_file'),
    clientKeyFile: readPath(reader, members.client_key_file, 'client_key_file'),
    name,
    label: label ?? new URL(issuer).host,
    scope,
    parameters: readParameters(reader, members.parameters),
  }
}

function readParameters(reader: YamlReader, node: Node | null): { readonly [name: string]: string } {
  if (node === null) return {}
  const found: { [name: string]: string } = {}
  for (const { key, keyNode, value } of reader.entries(node, 'parameters') ?? []) {
    if (OWN_PARAMETERS.some((name) => name === key)) reader.report(keyNode, `${key} is set by the sidecar`)
    const text = reader.text(value, key)
    if (text !== null && key !== '__proto__') found[key] = text
  }
  return found
}

/** Reports names that two providers share: each issuer must answer at an address of its own (RFC 9700 section 4.4.2.2). */
function checkNames(reader: YamlReader, node: Node | null, providers: readonly ProviderEntry[]): void {
  if (providers.length === 1) return
  if (providers.some(({ name }) => name === '')) reader.report(node, 'each of several providers needs a name')
  else if (new Set(providers.map(({ name }) => name)).size < providers.length)
    reader.report(node, 'two providers have the same name')
}
