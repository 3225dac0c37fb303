/** A provider that says whatever a test lets it say. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from 'jose'

export type Forged = {
  readonly issuer: string
  /** Of the next ID token; default: a good one. `null` removes. */
  claims: { readonly [claim: string]: unknown }
  userinfo: { readonly [claim: string]: unknown }
  /** `other`: a key that is not published. */
  signedWith: 'first' | 'second' | 'other' | 'none'
  published: readonly ('first' | 'second')[]
  /** What its metadata says besides. */
  metadata: { readonly [member: string]: unknown }
  /** What it answers at a path, in place of all that; null: it hangs up. */
  answers: { readonly [path: string]: { status: number; type: string; body: string } | null }
  /** The requests for tokens. */
  readonly redeemed: { readonly authorization: string | undefined; readonly form: URLSearchParams }[]
  /** A logout token (OpenID Connect Back-Channel Logout 1.0 section 2.4); what is undefined is left out. */
  signLogout(
    claims: { readonly [claim: string]: unknown },
    header?: { readonly [name: string]: unknown },
  ): Promise<string>
  close(): Promise<void>
}
export const CLIENT = 'portal'

/** It trusts everybody: what it is asked for is good, and PKCE is not verified. */
export async function forgeProvider(): Promise<Forged> {
  const pairs = { first: await pair(), second: await pair(), other: await pair() }
  const server = createServer(async (req, res) => {
    const [path = ''] = (req.url ?? '').split('?')
    const form = new URLSearchParams(await text(req))
    if (path === '/token') forged.redeemed.push({ authorization: req.headers.authorization, form })
    const other = forged.answers[path]
    if (other === null) return void req.socket.destroy()
    if (other !== undefined) return void res.writeHead(other.status, { 'content-type': other.type }).end(other.body)
    const body =
      path === '/jwks'
        ? { keys: forged.published.map((name) => pairs[name].jwk) }
        : path === '/token'
          ? { access_token: 'at', token_type: 'Bearer', expires_in: 60, id_token: await idToken() }
          : path === '/userinfo'
            ? forged.userinfo
            : metadata()
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const metadata = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256'],
    ...forged.metadata,
  })
  function idToken(): Promise<string> | string {
    const now = Math.floor(Date.now() / 1_000)
    const all = { iss: issuer, aud: CLIENT, sub: 'them', iat: now, exp: now + 60, ...forged.claims }
    const claims = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
    if (forged.signedWith === 'none') return new UnsecuredJWT(claims).encode()
    const { privateKey, jwk } = pairs[forged.signedWith]
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: jwk.kid ?? '' }).sign(privateKey)
  }
  const forged: Forged = {
    issuer,
    claims: {},
    userinfo: {},
    signedWith: 'first',
    published: ['first'],
    metadata: {},
    answers: {},
    redeemed: [],
    async signLogout(claims, header = {}) {
      const now = Math.floor(Date.now() / 1_000)
      const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
      const all = {
        iss: issuer,
        aud: CLIENT,
        sub: 'them',
        iat: now,
        exp: now + 60,
        jti: randomUUID(),
        events,
        ...claims,
      }
      const { privateKey, jwk } = pairs[forged.signedWith === 'none' ? 'first' : forged.signedWith]
      const protectedHeader = { alg: 'ES256', kid: jwk.kid ?? '', typ: 'logout+jwt', ...header }
      return new SignJWT(all).setProtectedHeader(protectedHeader).sign(privateKey)
    },
    close: () => new Promise((done) => void server.close(() => done())),
  }
  return forged
}

let kids = 0
async function pair(): Promise<{
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>['privateKey']
  readonly jwk: JWK
}> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: `k${++kids}`, alg: 'ES256', use: 'sig' } }
}
