/** An identity provider of somebody else: oidc-provider with settings that are not ours, on a port of its own. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import { type ClientMetadata, type Configuration, Provider } from 'oidc-provider'
import { freePort } from '../support/free-port.ts'
import { clientToken, signIn } from '../support/sign-in.ts'

/** What a token's header and claims look like before it is signed. */
export type Shape = (token: { header: { [name: string]: unknown }; payload: { [name: string]: unknown } }) => void
export type ForeignProvider = {
  readonly issuer: string
  readonly jwksUri: string
  /** Tokens for it, and for what begins with it, are opaque. */
  readonly opaqueResource: string
  /** Of the access tokens from now on. */
  shape: Shape
  /** Requests, by path. */
  readonly asked: ReadonlyMap<string, number>
  /** Signs a person in by the authorization code flow. */
  tokens(person: string, resource: string): Promise<{ access_token: string; id_token?: string | undefined }>
  /** Of a client without a person. */
  clientToken(resource: string): Promise<string>
  revoke(token: string): Promise<void>
  stop(): Promise<void>
  /** Again on the same port. */
  start(): Promise<void>
}

const REDIRECT_URI = 'https://spa.test/cb'
export const INTROSPECTOR = { id: 'gateway', secret: 'the-secret-of-the-gateway-at-the-idp' }

/** Everybody who is named signs in without a password. `clients`: besides its own. */
export async function startForeignProvider(clients: readonly ClientMetadata[] = []): Promise<ForeignProvider> {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const opaqueResource = 'https://opaque.test'
  const asked = new Map<string, number>()
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const provider = new Provider(issuer, {
    ...settings(opaqueResource, clients, (token) => running.shape(token)),
    jwks: { keys: [{ ...(await exportJWK(privateKey)), use: 'sig', kid: 'foreign' }] },
  })
  const answer = provider.callback()
  let server: Server | null = null

  const running: ForeignProvider = {
    issuer,
    jwksUri: `${issuer}/jwks`,
    opaqueResource,
    shape: () => undefined,
    asked,
    async tokens(person, resource) {
      const request = { issuer, clientId: 'spa', redirectUri: REDIRECT_URI, email: '', password: '', resource }
      const { tokens } = await signIn({ ...request, scope: 'openid orders:read', parameters: { login_hint: person } })
      return tokens
    },
    async clientToken(resource) {
      const client = { issuer, clientId: INTROSPECTOR.id, clientSecret: INTROSPECTOR.secret }
      return (await clientToken({ ...client, resource, scope: 'orders:read' })).access_token
    },
    async revoke(token) {
      const body = new URLSearchParams({ token, client_id: 'spa' })
      const response = await fetch(`${issuer}/token/revocation`, { method: 'POST', body })
      if (response.status !== 200) throw new Error(`revocation answered ${response.status}`)
    },
    async stop() {
      const closing = server
      server = null
      closing?.closeAllConnections()
      await new Promise<void>((done) => (closing === null ? done() : closing.close(() => done())))
    },
    async start() {
      const started = createServer((req, res) => {
        const path = req.url?.split('?', 1)[0] ?? ''
        asked.set(path, (asked.get(path) ?? 0) + 1)
        if (path.startsWith('/interaction/')) void approve(provider, req, res)
        else void answer(req, res)
      })
      await new Promise<void>((done) => started.listen(Number(new URL(issuer).port), '127.0.0.1', done))
      server = started
    },
  }
  await running.start()
  return running
}

async function approve(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(req, res)
  const [accountId, clientId, resource] = [params.login_hint, params.client_id, params.resource].map(String)
  const grant = new provider.Grant({ accountId: accountId ?? '', clientId: clientId ?? '' })
  grant.addOIDCScope('openid')
  grant.addResourceScope(resource ?? '', 'orders:read')
  const consent = { grantId: await grant.save() }
  await provider.interactionFinished(req, res, { login: { accountId: accountId ?? '' }, consent })
}

function settings(opaqueResource: string, clients: readonly ClientMetadata[], shape: Shape): Configuration {
  return {
    clients: [
      ...clients,
      {
        client_id: 'spa',
        redirect_uris: [REDIRECT_URI],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
      {
        client_id: INTROSPECTOR.id,
        client_secret: INTROSPECTOR.secret,
        redirect_uris: [],
        grant_types: ['client_credentials'],
        response_types: [],
      },
    ],
    cookies: { keys: ['the key of the cookies of the other provider'] },
    scopes: ['openid'],
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_ctx: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: 'orders:read',
          audience: resource,
          accessTokenTTL: 300,
          ...(resource.startsWith(opaqueResource)
            ? { accessTokenFormat: 'opaque' as const }
            : { accessTokenFormat: 'jwt' as const, jwt: { sign: { alg: 'RS256' as const } } }),
        }),
      },
    },
    formats: {
      customizers: {
        async jwt(_ctx: unknown, _token: unknown, jwt: { header?: object | undefined; payload: object }) {
          const token = { header: { ...jwt.header }, payload: { ...jwt.payload } }
          shape(token)
          Object.assign(jwt, token)
        },
      },
    },
  }
}
