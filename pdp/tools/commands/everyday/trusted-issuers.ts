/** A route file's external issuers in the PDP's form of registration, so that both read their tokens alike. */

import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { isJsonObject } from '../../../shared/domain/json.ts'
import { CliError, textOf } from '../errors.ts'

const REQUEST_TIMEOUT_MS = 10_000

export type TrustedIssuer = { readonly issuer: string; readonly document: JsonMembers }

/** The `issuers` of a route file that have `external`. Throws CliError. */
export async function trustedIssuers(
  issuers: readonly unknown[],
  { resources, fetch }: { readonly resources: readonly [string, ...string[]]; readonly fetch: typeof globalThis.fetch },
): Promise<readonly TrustedIssuer[]> {
  const found: TrustedIssuer[] = []
  for (const entry of issuers) {
    if (!isJsonObject(entry) || typeof entry.issuer !== 'string' || !isJsonObject(entry.external)) continue
    const { issuer, external, introspection } = entry
    const verified = isJsonObject(introspection)
      ? { introspection: introspectionOf(introspection) }
      : { jwks_uri: entry.jwks_uri ?? (await keysOf(issuer, fetch)), algorithms: entry.algorithms ?? ['RS256'] }
    const [resource, ...others] = resources
    const { audience = others.length === 0 ? resource : resources } = external
    const named = [audience].flat()[0] === resource ? {} : { resource }
    found.push({ issuer, document: { ...external, audience, ...named, ...verified } })
  }
  return found
}

const introspectionOf = ({ client_secret_file: file, ...introspection }: JsonMembers): JsonMembers => ({
  ...introspection,
  client_secret: textOf(String(file)).trim(),
})

/** The issuer's key set URL by OpenID Connect Discovery 1.0 section 4. */
async function keysOf(issuer: string, fetch: typeof globalThis.fetch): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const advice = 'Is the issuer written as its tokens have it? Otherwise name its key set by jwks_uri.'
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
    const metadata: unknown = await response.json().catch(() => null)
    if (isJsonObject(metadata) && typeof metadata.jwks_uri === 'string') return metadata.jwks_uri
    throw new CliError(`${url} names no keys (status ${response.status}). ${advice}`)
  } catch (err) {
    if (err instanceof CliError) throw err
    throw new CliError(`${url} cannot be read. ${advice}`, { cause: err })
  }
}
