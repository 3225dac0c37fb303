/** Calls another OpenID provider through `openid-client`: authorization code with PKCE, and the person's claims there. */
import { importJWK, type JWK } from 'jose'
import type { ClientAuth, Configuration, CustomFetch, ServerMetadata } from 'openid-client'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import type { GuardedPost } from '../../../shared/base/guarded-post.ts'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { readableAnswer, readFailure } from '../../../shared/token/provider-failure.ts'
import { describeSlash } from '../../../shared/token/remote-keys.ts'
import { isAddress } from '../invitations/mail-address.ts'
import type { ProviderWithSecret } from './providers.ts'

/** The provider answered, but with no valid sign-in. Any other error means that it did not answer. */
export class UpstreamRefused extends Error {
  override readonly name = 'UpstreamRefused'
}
export type AuthorizationSecrets = { readonly state: string; readonly nonce: string; readonly verifier: string }
export type UpstreamPerson = {
  readonly issuer: string
  readonly subject: string
  readonly email: string | null
  /** True: the provider says that the address is verified. */
  readonly emailVerified: boolean
  readonly name: string | null
  readonly acr: string | null
  /** The sign-in at the provider in seconds since the epoch; null: unknown. */
  readonly signedInAt: number | null
}
export type UpstreamClient = {
  /** `fresh`: the person must sign in again at the provider. Throws as `redeem` does. */
  authorizationUrl(
    provider: ProviderWithSecret,
    asked: AuthorizationSecrets & { readonly redirectUri: string; readonly fresh: boolean },
  ): Promise<string>
  /** Throws UpstreamRefused, or another error when the provider does not answer. */
  redeem(provider: ProviderWithSecret, callback: URL, asked: AuthorizationSecrets): Promise<UpstreamPerson>
}

const ANSWER_SECONDS = 5
const BYTES_MAX = 1_048_576
/** How long metadata is kept, so that many sign-ins do not ask the provider as often. Keys are read when an answer is verified. */
const METADATA_MS = 60_000
const METADATA_MAX = 100
const SUBJECT_CHARACTERS_MAX = 255
const TEXT_CHARACTERS_MAX = 256

export function createUpstreamClient(deps: {
  readonly guard: Pick<GuardedPost, 'send'>
  /** A key that signs our tokens, too: providers find its public part at the issuer's `jwks_uri`. */
  readonly signingKey: () => JWK | undefined
  readonly clock: () => number
}): UpstreamClient {
  const known = new BoundedMap<string, { readonly atMs: number; readonly metadata: Promise<ServerMetadata> }>(
    METADATA_MAX,
  )
  const outgoing = fetchBy(deps.guard)

  async function metadataOf(provider: ProviderWithSecret): Promise<ServerMetadata> {
    const { issuer } = provider
    const held = known.get(issuer)
    if (held !== undefined && Math.abs(deps.clock() - held.atMs) < METADATA_MS) return held.metadata
    const metadata = discovered(issuer, outgoing)
    known.set(issuer, { atMs: deps.clock(), metadata })
    metadata.catch(() => known.delete(issuer))
    return metadata
  }

  async function configured(provider: ProviderWithSecret): Promise<Configuration> {
    const [client, metadata] = await Promise.all([loadClient(), metadataOf(provider)])
    const auth = await authOf(client, provider, deps.signingKey)
    const configuration = new client.Configuration(metadata, provider.client_id, undefined, auth)
    configuration.timeout = ANSWER_SECONDS
    configuration[client.customFetch] = outgoing
    prepare(client, provider, configuration)
    return configuration
  }

  return {
    async authorizationUrl(provider, { state, nonce, verifier, redirectUri, fresh }) {
      const [client, configuration] = await Promise.all([loadClient(), configured(provider)])
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: ['openid', ...(provider.scopes ?? ['email', 'profile'])].join(' '),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(fresh && { prompt: 'login' }),
      })
      // The browser sends the request and the URL of our page to this endpoint.
      if (url.protocol !== 'https:' && !provider.issuer.startsWith('http:'))
        throw new UpstreamRefused('the authorization endpoint does not use https')
      return url.href
    },
    async redeem(provider, callback, { state, nonce, verifier }) {
      const [client, configuration] = await Promise.all([loadClient(), configured(provider)])
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
      return told(client, async () => {
        const answer = await client.authorizationCodeGrant(configuration, callback, checks)
        const claims: JsonMembers = answer.claims() ?? {}
        const subject = claims.sub
        if (claims.iss !== provider.issuer || !isSubject(subject))
          throw new UpstreamRefused('the ID token names nobody')
        const asks = configuration.serverMetadata().userinfo_endpoint !== undefined && lacksAddress(claims, provider)
        const more: JsonMembers = asks ? await client.fetchUserInfo(configuration, answer.access_token, subject) : {}
        return personOf({ claims, more }, { issuer: provider.issuer, subject })
      })
    },
  }
}

type Client = typeof import('openid-client')
/** The library is loaded by the first sign-in at another provider. */
const loadClient = (): Promise<Client> => import('openid-client')

async function authOf(
  client: Client,
  { token_endpoint_auth_method: method, secret }: ProviderWithSecret,
  signingKey: () => JWK | undefined,
): Promise<ClientAuth> {
  if (method === 'private_key_jwt') {
    const jwk = signingKey()
    const key = jwk === undefined ? undefined : await importJWK(jwk)
    if (jwk?.kid === undefined || !(key instanceof CryptoKey)) throw new TypeError('there is no signing key')
    return client.PrivateKeyJwt({ key, kid: jwk.kid })
  }
  if (method === 'none' || secret === null) return client.None()
  return method === 'client_secret_post' ? client.ClientSecretPost(secret) : client.ClientSecretBasic(secret)
}

/** Signatures are verified although the answer came from the provider itself. Plain HTTP is used only where the guard allows it. */
function prepare(client: Client, { issuer }: ProviderWithSecret, configuration: Configuration): void {
  client.enableNonRepudiationChecks(configuration)
  if (issuer.startsWith('http:')) client.allowInsecureRequests(configuration)
}

async function discovered(issuer: string, outgoing: CustomFetch): Promise<ServerMetadata> {
  const client = await loadClient()
  const insecure = issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
  const options = { [client.customFetch]: outgoing, timeout: ANSWER_SECONDS, execute: insecure }
  // Reading metadata needs no client authentication.
  const configuration = await client
    .discovery(new URL(issuer), 'metadata', undefined, client.None(), options)
    .catch((err: unknown) => {
      const { isRefusal, text } = readFailure(client, err)
      const message = `the metadata of ${issuer} cannot be read: ${text}`
      throw isRefusal ? new UpstreamRefused(message, { cause: err }) : new Error(message, { cause: err })
    })
  const metadata = configuration.serverMetadata()
  // The issuer must equal that of ID tokens byte for byte. Entra ID gives a template here, unless the URL names one tenant.
  if (metadata.issuer !== issuer)
    throw new UpstreamRefused(
      `the metadata of ${issuer} names the issuer ${metadata.issuer}${describeSlash(issuer, metadata.issuer)}`,
    )
  return metadata
}

/** A fetch that reaches no internal address, follows no redirect, and bounds the answer. */
export function fetchBy(guard: Pick<GuardedPost, 'send'>): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const text = body === undefined || body === null ? undefined : String(body)
    const {
      status,
      headers: answered,
      body: read,
    } = await guard.send({
      url,
      method,
      headers,
      deadlineMs: ANSWER_SECONDS * 1_000,
      bytesMax: BYTES_MAX,
      ...(text === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (read === null) throw new Error(`${new URL(url).host} answered too much`)
    const isEmpty = status === 204 || status === 304
    return readableAnswer({ url, status, contentType: answered['content-type'], body: isEmpty ? null : read })
  }
}

/** True if UserInfo must be read: ID tokens may lack the address or `email_verified` (OpenID Connect Core section 5.4), as Okta's do. */
const lacksAddress = (
  { email, email_verified: verified }: JsonMembers,
  { creates_accounts: creates, email_domains: domains }: ProviderWithSecret,
): boolean => email === undefined || (verified === undefined && (creates === true || domains !== undefined))

/** The person from the answer. `more`: claims of UserInfo, which are not signed. */
function personOf(
  { claims, more }: { readonly claims: JsonMembers; readonly more: JsonMembers },
  { issuer, subject }: Pick<UpstreamPerson, 'issuer' | 'subject'>,
): UpstreamPerson {
  const { acr, auth_time: at } = claims
  const isOfMore = claims.email === undefined || (claims.email_verified === undefined && claims.email === more.email)
  // Address and mark come from the same answer: else one answer could verify the other's address.
  const { email, email_verified: verified } = isOfMore ? more : claims
  return {
    issuer,
    subject,
    email: typeof email === 'string' && isAddress(email) ? email : null,
    // Apple and Amazon Cognito send this boolean as a text.
    emailVerified: verified === true || verified === 'true',
    name: nameIn(claims.name ?? more.name),
    acr: typeof acr === 'string' ? acr : null,
    signedInAt: typeof at === 'number' ? at : null,
  }
}
/** The form of a subject in OpenID Connect Core section 2. */
const isSubject = (subject: unknown): subject is string =>
  typeof subject === 'string' && subject !== '' && subject.length <= SUBJECT_CHARACTERS_MAX
const nameIn = (name: unknown): string | null =>
  (typeof name === 'string' ? name : '')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, TEXT_CHARACTERS_MAX) || null

/** Runs a call. Throws UpstreamRefused if the provider refuses or answers wrongly, else an error that tells what failed. */
async function told<T>(client: Client, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    if (err instanceof UpstreamRefused) throw err
    const { isRefusal, text } = readFailure(client, err)
    throw isRefusal ? new UpstreamRefused(text, { cause: err }) : new Error(text, { cause: err })
  }
}
