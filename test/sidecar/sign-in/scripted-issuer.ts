/** An OpenID provider on loopback that signs one person in without a page, checks what a strict one checks, and misbehaves on demand. */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Claims, createIssuer, type Issuer } from '../../support/peers/issuer.ts'

export type Behaviour = {
  /** Claims of the next ID tokens and access tokens; undefined drops one. */
  idClaims: Claims
  accessClaims: Claims
  accessSeconds: number
  /** Of the authorization response; null: none. */
  iss: string | null
  /** In place of a code. */
  error: string | null
  refreshTokens: boolean
  pushes: boolean
  /** Of the token endpoint, in place of an answer, and what it says then. */
  tokenStatus: number | null
  tokenError: { readonly error: string; readonly error_description?: string } | string
  /** What its metadata says besides; undefined drops a member. */
  metadata: Claims
  /** An access token of somebody else's making, in place of its own. */
  accessToken: string | null
  /** It takes requests and answers nothing. */
  hangs: boolean
  /** Characters to add to access tokens. */
  padding: number
}
export type ScriptedIssuer = {
  readonly url: string
  readonly tokens: Issuer
  behave: Behaviour
  /** Authorization requests, pushed ones included. */
  readonly asked: URLSearchParams[]
  /** Requests to the token endpoint. */
  readonly grants: URLSearchParams[]
  readonly revoked: string[]
  readonly signedOut: URLSearchParams[]
  /** How often a refresh token came that was used before. */
  reused(): number
  signLogout(claims?: Claims, header?: Claims): Promise<string>
  close(): Promise<void>
}

/** A text is a page. */
type Answer = (status: number, value: object | string) => void
type Code = { readonly request: URLSearchParams }

export async function startIssuer(options: {
  readonly audience: string
  readonly clientId?: string
  readonly clock?: () => number
}): Promise<ScriptedIssuer> {
  const { audience, clientId = 'web', clock = Date.now } = options
  const asked: URLSearchParams[] = []
  const grants: URLSearchParams[] = []
  const revoked: string[] = []
  const signedOut: URLSearchParams[] = []
  const pushed = new Map<string, URLSearchParams>()
  const codes = new Map<string, Code>()
  const refreshTokens = new Set<string>()
  const used = new Set<string>()
  let reused = 0
  const server = createServer((req, res) => void answer(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const tokens = await createIssuer({ issuer: url, audience, clock })

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? '/', url)
    let body = ''
    for await (const chunk of req) body += String(chunk)
    const form = new URLSearchParams(body)
    const json: Answer = (status, value) => {
      const isPage = typeof value === 'string'
      // RFC 6749 section 5.2.
      if (status === 401) res.setHeader('www-authenticate', 'Basic realm="scripted"')
      res.writeHead(status, { 'content-type': isPage ? 'text/html' : 'application/json', 'cache-control': 'no-store' })
      res.end(isPage ? value : JSON.stringify(value))
    }
    if (issuerOf.behave.hangs) return
    if (pathname === '/.well-known/openid-configuration') return json(200, metadata())
    if (pathname === '/jwks') return json(200, tokens.jwks)
    if (pathname === '/par') {
      const uri = `urn:ietf:params:oauth:request_uri:${randomUUID()}`
      pushed.set(uri, form)
      return json(201, { request_uri: uri, expires_in: 60 })
    }
    if (pathname === '/authorize') {
      res.writeHead(302, { location: authorize(searchParams) })
      return void res.end()
    }
    if (pathname === '/token') return token(form, json)
    if (pathname === '/introspect') {
      const [, claims = ''] = (form.get('token') ?? '').split('.')
      return json(200, { active: true, ...JSON.parse(Buffer.from(claims, 'base64url').toString()) })
    }
    if (pathname === '/revoke') {
      revoked.push(form.get('token') ?? '')
      return json(200, {})
    }
    if (pathname === '/logout') signedOut.push(searchParams)
    json(404, {})
  }

  const metadata = (): object => ({
    issuer: url,
    jwks_uri: `${url}/jwks`,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    revocation_endpoint: `${url}/revoke`,
    end_session_endpoint: `${url}/logout`,
    ...(issuerOf.behave.pushes && { pushed_authorization_request_endpoint: `${url}/par` }),
    authorization_response_iss_parameter_supported: issuerOf.behave.iss !== null,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    ...issuerOf.behave.metadata,
  })

  function authorize(query: URLSearchParams): string {
    const request = pushed.get(query.get('request_uri') ?? '') ?? query
    asked.push(request)
    const back = new URL(request.get('redirect_uri') ?? 'http://127.0.0.1/none')
    const code = randomUUID()
    codes.set(code, { request })
    back.searchParams.set('state', request.get('state') ?? '')
    if (issuerOf.behave.error === null) back.searchParams.set('code', code)
    else back.searchParams.set('error', issuerOf.behave.error)
    if (issuerOf.behave.iss !== null) back.searchParams.set('iss', issuerOf.behave.iss)
    return back.href
  }

  async function token(form: URLSearchParams, json: Answer): Promise<void> {
    grants.push(form)
    const { tokenStatus } = issuerOf.behave
    if (tokenStatus !== null) return json(tokenStatus, issuerOf.behave.tokenError)
    if (form.get('grant_type') === 'refresh_token') {
      const given = form.get('refresh_token') ?? ''
      if (used.has(given)) reused += 1
      if (!refreshTokens.delete(given)) return json(400, { error: 'invalid_grant' })
      used.add(given)
      return json(200, await issue(null))
    }
    const key = form.get('code') ?? ''
    const request = codes.get(key)?.request
    codes.delete(key)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isGood =
      request?.get('code_challenge') === challenge &&
      request.get('code_challenge_method') === 'S256' &&
      request.get('redirect_uri') === form.get('redirect_uri')
    if (!isGood) return json(400, { error: 'invalid_grant' })
    json(200, await issue(request.get('nonce')))
  }

  async function issue(nonce: string | null): Promise<object> {
    const { idClaims, accessClaims, accessSeconds, padding } = issuerOf.behave
    const now = Math.floor(clock() / 1_000)
    const pad = padding > 0 ? { pad: 'x'.repeat(padding) } : {}
    const ownToken = await tokens.token({ exp: now + accessSeconds, ...pad, ...accessClaims })
    const about = { aud: clientId, sub: 'alice', sid: 's1', nonce: nonce ?? undefined, auth_time: now, ...idClaims }
    const idToken = await tokens.token(
      { client_id: undefined, org: undefined, scope: undefined, ...about },
      { typ: 'JWT' },
    )
    const refreshToken = randomUUID()
    if (issuerOf.behave.refreshTokens) refreshTokens.add(refreshToken)
    return {
      access_token: issuerOf.behave.accessToken ?? ownToken,
      token_type: 'Bearer',
      expires_in: accessSeconds,
      id_token: idToken,
      ...(issuerOf.behave.refreshTokens && { refresh_token: refreshToken }),
    }
  }

  const issuerOf: ScriptedIssuer = {
    url,
    tokens,
    asked,
    grants,
    revoked,
    signedOut,
    reused: () => reused,
    behave: {
      idClaims: {},
      accessClaims: {},
      accessSeconds: 300,
      iss: url,
      error: null,
      refreshTokens: true,
      pushes: false,
      tokenStatus: null,
      tokenError: { error: 'server_error' },
      metadata: {},
      accessToken: null,
      hangs: false,
      padding: 0,
    },
    signLogout: (claims = {}, header = {}) => {
      const now = Math.floor(clock() / 1_000)
      const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
      const base = { aud: clientId, sub: undefined, client_id: undefined, org: undefined, scope: undefined }
      return tokens.token({ ...base, sid: 's1', events, exp: now + 120, ...claims }, { typ: 'logout+jwt', ...header })
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return issuerOf
}
