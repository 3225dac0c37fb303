/** Clients of MCP sign in with the official SDKs, unchanged: registered, by a document, and by an identity assertion. */
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashGeneratedSecret } from '../../pdp/identity/people/passwords/password-hash.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { CONTEXT, decode, openWorld, PASSWORD, REDIRECT, SECRET, type World } from '../pdp/identity/harness.ts'
import { CLIENT, type Forged, forgeProvider } from '../pdp/identity/people/upstream-providers/forged-provider.ts'
import { createBrowser } from '../support/browser.ts'
import { answerPage } from '../support/sign-in.ts'
import { type Auth, sdks } from './sdks.ts'

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const installed = await sdks()

let world: World
let forged: Forged
let serverUrl: string
let document: string
const closing: (() => void)[] = []

async function listening(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
const answer =
  (of: (path: string) => object | null): RequestListener =>
  (req, res) => {
    const body = of(req.url ?? '')
    res.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}))
  }

beforeAll(async () => {
  const { authority, certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  setDefaultCACertificates([...getCACertificates('default'), authority])
  const metadata = { redirect_uris: [REDIRECT], client_name: 'Agent', token_endpoint_auth_method: 'none' }
  const documents = createTlsServer(
    { cert: certificate, key },
    answer(() => ({ client_id: document, ...metadata })),
  )
  const host = `localhost:${await listening(documents)}`
  document = `https://${host}/agent`
  // The resource server: only the metadata (RFC 9728) that leads to the issuer.
  const port = await listening(
    createServer(
      answer((path) =>
        path === '/.well-known/oauth-protected-resource/mcp'
          ? { resource: serverUrl, authorization_servers: [world.issuer] }
          : null,
      ),
    ),
  )
  serverUrl = `http://127.0.0.1:${port}/mcp`
  forged = await forgeProvider()
  world = await openWorld({
    internalHosts: ['127.0.0.1', host],
    clientDocuments: { hosts: new Set([host]), scope: 'openid orders:read' },
  })
  const manifest = { app: 'mcp', audiences: [serverUrl], permissions: {}, roles: {}, model: null }
  await world.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context: CONTEXT })
  const scope = 'openid orders:read'
  const secretHash = hashGeneratedSecret(SECRET)
  await world.putClient({ id: 'known', metadata: { redirect_uris: [REDIRECT], scope }, secretHash })
  await world.putClient({ id: 'enterprise', metadata: { grant_types: [JWT_BEARER], scope }, secretHash })
  await world.identity.identityProviders.put(
    'forged',
    { issuer: forged.issuer, client_id: CLIENT, name: 'F', identity_assertions: true, secret: SECRET },
    CONTEXT,
  )
  const link = `insert into foreign_identity (issuer, subject, user_id) values ($1, 'their eve', 'eve')`
  await world.sql.query(link, [forged.issuer])
})
afterAll(async () => {
  for (const close of closing) close()
  await Promise.all([world.close(), forged.close()])
})

/** A provider without a registration of its own, that keeps everything in memory. */
function providerOf(more: object) {
  const kept: { url?: URL; verifier?: string; tokens?: { access_token: string }; information?: object } = {}
  const provider = {
    redirectUrl: REDIRECT,
    clientMetadata: { redirect_uris: [REDIRECT], client_name: 'Agent' },
    clientInformation: () => kept.information,
    saveClientInformation: (information: object) => void Object.assign(kept, { information }),
    tokens: () => kept.tokens,
    saveTokens: (tokens: object) => void Object.assign(kept, { tokens }),
    redirectToAuthorization: (url: URL) => void Object.assign(kept, { url }),
    saveCodeVerifier: (verifier: string) => void Object.assign(kept, { verifier }),
    codeVerifier: () => kept.verifier,
    ...more,
  }
  return { kept, provider }
}

/** The claims of the token that a person's sign-in reaches. */
async function signedIn(auth: Auth, more: object): Promise<object> {
  const { kept, provider } = providerOf(more)
  expect(await auth(provider, { serverUrl })).toBe('REDIRECT')
  const person = { email: 'eve@x.example', password: PASSWORD }
  const end = await createBrowser(world.issuer).follow(kept.url?.href ?? '', (page) => answerPage(page, person))
  const [authorizationCode = '', iss = ''] = ['code', 'iss'].map((name) => end.searchParams.get(name) ?? undefined)
  expect(await auth(provider, { serverUrl, authorizationCode, iss })).toBe('AUTHORIZED')
  return decode(kept.tokens?.access_token ?? '').payload
}
const registered = (id: string) => ({ clientInformation: () => ({ client_id: id, client_secret: SECRET }) })

describe.skipIf(installed === null).each(installed ?? [])('auth() of $name', ({ auth }) => {
  const eve = () => ({ sub: 'eve', aud: serverUrl, org: 'acme', org_role: 'developer', scope: 'openid orders:read' })

  test('reaches a token for a client that is registered', async () => {
    expect(await signedIn(auth, registered('known'))).toMatchObject({ ...eve(), client_id: 'known' })
  })

  test('reaches a token for a client that nobody registered', async () => {
    await world.sql.query('delete from attempt')
    const claims = await signedIn(auth, { clientMetadataUrl: document })
    expect(claims).toMatchObject({ ...eve(), client_id: document })
  })

  test('reaches a token by an identity assertion', async () => {
    const claims = { aud: world.issuer, sub: 'their eve', client_id: 'enterprise', resource: serverUrl }
    const assertion = await forged.signLogout({ ...claims, events: undefined }, { typ: 'oauth-id-jag+jwt' })
    const { kept, provider } = providerOf({
      ...registered('enterprise'),
      redirectUrl: undefined,
      prepareTokenRequest: () => new URLSearchParams({ grant_type: JWT_BEARER, assertion }),
    })
    expect(await auth(provider, { serverUrl })).toBe('AUTHORIZED')
    expect(decode(kept.tokens?.access_token ?? '').payload).toMatchObject({ ...eve(), client_id: 'enterprise' })
  })
})
