/** An issuer where people sign in, called through `openid-client`: authorization code with PKCE, refresh, and sign-out. */
import type { ClientAuth, Configuration, CustomFetch } from 'openid-client'
import { readAtMost } from '../../pdp/shared/base/http-json.ts'
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { isAlgorithm } from '../../pdp/shared/token/algorithms.ts'
import { members } from '../../pdp/shared/token/jws.ts'
import { readableAnswer, readFailure } from '../../pdp/shared/token/provider-failure.ts'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'
import type { ProviderEntry } from '../route-file/sign-in.ts'

/** The issuer has refused: in its answer to the browser, or at the token endpoint. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused'
  /** A code of RFC 6749 sections 4.1.2.1 and 5.2, or `invalid_response`. */
  readonly code: string
  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
export type Tokens = {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly idToken: string | null
  /** The ID token's claims; null: a refresh brought no ID token. */
  readonly claims: { readonly [name: string]: unknown } | null
}
export type Asking = {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
  readonly acrValues: readonly string[]
  readonly maxAgeSeconds: number | null
  /** True: the person wants to choose an account, even if the issuer has a session. */
  readonly asksWho: boolean
}
export type Provider = {
  readonly entry: ProviderEntry
  /** The address to which the browser is sent. If possible, the request itself is pushed (RFC 9126). Rejects if the issuer is silent. */
  authorizationUrl(asking: Asking): Promise<string>
  /** Rejects with SignInRefused, or with another error when the issuer does not answer. */
  redeem(callback: URL, asking: Pick<Asking, 'state' | 'nonce' | 'verifier' | 'maxAgeSeconds'>): Promise<Tokens>
  /** Rejects with SignInRefused, or with another error when the issuer does not answer. */
  refresh(refreshToken: string): Promise<Tokens>
  /** Revokes the token (RFC 7009), if the issuer offers revocation. */
  revoke(token: string): Promise<void>
  /** The address of the issuer's sign-out page (OpenID Connect RP-Initiated Logout); null: the issuer has none. */
  endSessionUrl(hint: { readonly idToken: string | null; readonly returnTo: string }): Promise<string | null>
}

const ANSWER_SECONDS = 5
const ANSWER_MS = ANSWER_SECONDS * 1_000
const ANSWER_BYTES_MAX = 1024 * 1024
/** The issuer's metadata is read again after this time, as caches usually do, and so is our secret. */
const DISCOVERED_MS = 600_000

type ProviderDeps = {
  readonly fetch: Fetch
  /** The audience to request for tokens, if the issuer knows resource indicators (RFC 8707); else null. */
  readonly resource: string | null
  readonly readSecret: (path: string) => string
  readonly clock: () => number
}

export function createProvider(entry: ProviderEntry, { fetch, resource, readSecret, clock }: ProviderDeps): Provider {
  let discovered: { readonly config: Promise<Configuration>; readonly atMs: number } | null = null
  const bound = resource === null ? {} : { resource }

  function configuration(): Promise<Configuration> {
    if (discovered !== null && clock() - discovered.atMs < DISCOVERED_MS) return discovered.config
    const config = discover(entry, { fetch, readSecret })
    discovered = { config, atMs: clock() }
    config.catch(() => {
      if (discovered?.config === config) discovered = null
    })
    return config
  }

  /** Runs a request. A refusal by the issuer, or by a check of its answer, is a SignInRefused; other errors mean no answer. */
  async function asking<T>(work: (client: Client, config: Configuration) => Promise<T>): Promise<T> {
    const [client, config] = await Promise.all([loadClient(), configuration()])
    try {
      return await work(client, config)
    } catch (err) {
      const { isRefusal, code, text } = readFailure(client, err)
      throw isRefusal ? new SignInRefused(code ?? 'invalid_response', text, err) : new Error(text, { cause: err })
    }
  }

  return {
    entry,
    authorizationUrl: (request) =>
      asking(async (client, config) => {
        const asked = await parametersOf(client, entry.scope, request)
        const { prompt_values_supported: prompts } = config.serverMetadata()
        const who = request.asksWho ? { prompt: choosingPrompt(prompts, resource !== null) } : {}
        const parameters = { ...entry.parameters, ...bound, ...asked, ...who }
        const pushes = config.serverMetadata().pushed_authorization_request_endpoint !== undefined
        const url = pushes
          ? await client.buildAuthorizationUrlWithPAR(config, parameters)
          : client.buildAuthorizationUrl(config, parameters)
        return url.href
      }),
    redeem: (callback, { state, nonce, verifier, maxAgeSeconds }) =>
      asking(async (client, config) => {
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          ...(maxAgeSeconds !== null && { maxAge: maxAgeSeconds }),
        }
        return tokensOf(await client.authorizationCodeGrant(config, callback, checks, bound))
      }),
    refresh: (refreshToken) =>
      asking(async (client, config) => tokensOf(await client.refreshTokenGrant(config, refreshToken, bound))),
    revoke: (token) =>
      asking(async (client, config) => {
        if (config.serverMetadata().revocation_endpoint !== undefined) await client.tokenRevocation(config, token)
      }),
    endSessionUrl: ({ idToken, returnTo }) =>
      asking(async (client, config) => {
        if (config.serverMetadata().end_session_endpoint === undefined) return null
        return client.buildEndSessionUrl(config, {
          post_logout_redirect_uri: returnTo,
          ...(idToken !== null && { id_token_hint: idToken }),
        }).href
      }),
  }
}

type Client = typeof import('openid-client')
/** Imported only when a person signs in, to save memory in each pod. */
const loadClient = (): Promise<Client> => import('openid-client')

async function discover(
  { issuer, clientId, clientSecretFile, clientKeyFile }: ProviderEntry,
  { fetch, readSecret }: Pick<ProviderDeps, 'fetch' | 'readSecret'>,
): Promise<Configuration> {
  const client = await loadClient()
  const secret = clientSecretFile === null ? null : readSecret(clientSecretFile)
  // Route files name issuers by https, or http on loopback.
  const insecure = issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
  const byKey = clientKeyFile === null ? null : await privateKeyJwt(client, clientKeyFile, readSecret)
  const auth = byKey ?? (secret === null ? client.None() : bySecret(client, secret))
  // The signature of ID tokens is verified though they come directly from the issuer: http on loopback proves little.
  const execute = [...insecure, client.enableNonRepudiationChecks]
  const options = { timeout: ANSWER_SECONDS, execute, [client.customFetch]: bounded(fetch) }
  return client.discovery(new URL(issuer), clientId, undefined, auth, options).catch((err: unknown) => {
    throw new Error(`the metadata of ${issuer} cannot be read: ${readFailure(client, err).text}`, { cause: err })
  })
}

async function parametersOf(client: Client, scope: string, asked: Asking): Promise<{ [name: string]: string }> {
  const { state, nonce, verifier, redirectUri, acrValues, maxAgeSeconds } = asked
  return {
    redirect_uri: redirectUri,
    scope,
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
    ...(maxAgeSeconds !== null && { max_age: String(maxAgeSeconds) }),
  }
}

function tokensOf(answer: Awaited<ReturnType<Client['authorizationCodeGrant']>>): Tokens {
  return {
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token ?? null,
    idToken: answer.id_token ?? null,
    claims: answer.claims() ?? null,
  }
}

/** OpenID Connect Core section 3.1.2.1: the prompt. Issuers refuse unknown values, and few publish those that they know. */
function choosingPrompt(known: unknown, isOurs: boolean): 'login' | 'select_account' {
  const knows = (prompt: string): boolean => Array.isArray(known) && known.includes(prompt)
  return knows('select_account') || !(knows('login') || isOurs) ? 'select_account' : 'login'
}

/** Client authentication by a private key (OpenID Connect Core section 9). Rejects for a file that is no private key. */
async function privateKeyJwt(client: Client, path: string, readKey: (path: string) => string): Promise<ClientAuth> {
  const { importJWK } = await import('jose')
  const problem = `${path} must hold a private JWK with alg and kid`
  let jwk: JsonMembers | null
  try {
    jwk = members(JSON.parse(readKey(path)))
  } catch (err) {
    // The parser's own message is left out, since it would quote the key.
    throw new Error(err instanceof SyntaxError ? problem : `${path} cannot be read`)
  }
  if (jwk === null || typeof jwk.kid !== 'string' || !isAlgorithm(jwk.alg)) throw new Error(problem)
  const key = await importJWK({ ...jwk }).catch(() => null)
  if (!(key instanceof CryptoKey) || key.type !== 'private') throw new Error(problem)
  return client.PrivateKeyJwt({ key, kid: jwk.kid })
}

/** Client authentication by the secret: HTTP Basic, unless the issuer accepts it only in the form (OpenID Connect Discovery section 3). */
function bySecret(client: Client, secret: string): ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)]
  return (metadata, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = metadata
    const isPost = !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
    return (isPost ? post : basic)(metadata, ...rest)
  }
}

/** A fetch that refuses answers above a size. */
const bounded =
  (fetch: Fetch): CustomFetch =>
  async (url, { method, headers, body: form, signal }) => {
    const sent = { headers: Object.fromEntries(new Headers(headers)), signal: signal ?? AbortSignal.timeout(ANSWER_MS) }
    const posted = method === 'POST' ? ({ method, body: String(form ?? '') } as const) : {}
    const { status, contentType, body: answer } = await fetch(url, { redirect: 'manual', ...sent, ...posted })
    const body = answer === null ? null : await readAtMost(answer, ANSWER_BYTES_MAX)
    if (answer !== null && body === null) throw new Error(`${url.split('?', 1)[0]} answered with more than 1 MiB`)
    return readableAnswer({ url, status, contentType, body: body !== null && body.length > 0 ? body : null })
  }
