/** Clients that nobody registered, on a host with TLS that serves documents about them. */
import { createServer, type Server } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { documentHost, readDocument } from '../../../../pdp/identity/provider/client-documents.ts'
import { makeCertificate } from '../../../../sidecar/injector/certificate/certificate.ts'
import { createBrowser, type PageForm } from '../../../support/browser.ts'
import { answerPage } from '../../../support/sign-in.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { API, CONTEXT, decode, openWorld, parseObject, postToken, REDIRECT, type World } from '../harness.ts'

let world: World
let flow: ReturnType<typeof createFlow>
let server: Server
let host: string
let asked: string[] = []
const documents = new Map<string, { status?: number; headers?: Record<string, string>; body: string }>()

beforeAll(async () => {
  const { authority, certificate, key } = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  setDefaultCACertificates([...getCACertificates('default'), authority])
  server = createServer({ cert: certificate, key }, (req, res) => {
    asked.push(req.url ?? '')
    const { status = 200, headers, body } = documents.get(req.url ?? '') ?? { status: 404, body: '' }
    res.writeHead(status, headers).end(body)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const address = server.address()
  host = `localhost:${typeof address === 'object' ? address?.port : ''}`
  world = await openWorld({
    internalHosts: [host],
    clientDocuments: {
      hosts: new Set([host, 'intranet.example', '10.0.0.1']),
      scope: 'openid offline_access orders:read',
    },
  })
  flow = createFlow(world)
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await world.close()
})
beforeEach(async () => {
  asked = []
  await world.sql.query('delete from attempt')
})

let count = 0
/** Serves a document, and returns its client id. */
function serve(
  more: Readonly<Record<string, unknown>> = {},
  answer: { status?: number; headers?: Record<string, string> } = {},
): string {
  const id = `https://${host}/clients/${count++}`
  const body = JSON.stringify({ client_id: id, client_name: 'Agent', redirect_uris: [REDIRECT], ...more })
  documents.set(new URL(id).pathname, { ...answer, body })
  return id
}
const pageOf = async (parameters: Record<string, string | undefined>): Promise<string> =>
  (await createBrowser(world.issuer).send(flow.authorizeUrl(parameters))).text()
async function signIn(id: string, parameters: Record<string, string | undefined> = {}, pages: PageForm[] = []) {
  const url = flow.authorizeUrl({ client_id: id, ...parameters })
  return createBrowser(world.issuer).follow(url, (page) => {
    pages.push(page)
    return answerPage(page, flow.as('eve'))
  })
}
const redeem = (id: string, end: URL, more: Record<string, string> = {}) =>
  postToken(world, {
    grant_type: 'authorization_code',
    client_id: id,
    code: end.searchParams.get('code') ?? '',
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
    ...more,
  })

describe('a client that nobody registered', () => {
  test('gets a token for whom its page showed host and target, by one fetch', async () => {
    const id = serve()
    const pages: PageForm[] = []
    const { status, body } = await redeem(id, await signIn(id, { scope: undefined }, pages))
    expect([status, body.scope]).toEqual([200, 'openid orders:read'])
    expect(decode(String(body.access_token)).payload).toMatchObject({ client_id: id, sub: 'eve', org: 'acme' })
    expect(pages.map(({ step }) => step)).toEqual(['login', 'consent'])
    expect(pages[1]?.html).toContain(`It comes from <strong>${host}</strong>`)
    expect(pages[1]?.html).toContain('its answer goes to <strong>app.example</strong>')
    expect(pages[0]?.html).toContain(`Agent (${host})`)
    expect(asked).toEqual([new URL(id).pathname])
    expect(await world.directory.client(id)).toMatchObject({
      id,
      organization: null,
      metadata: { client_name: 'Agent' },
    })
  })

  test('refreshes while its host is away, until management deletes it', async () => {
    const id = serve({ grant_types: ['authorization_code', 'refresh_token', 'client_credentials'] })
    const end = await signIn(id, { scope: 'openid offline_access orders:read', resource: API })
    const first = await redeem(id, end)
    documents.delete(new URL(id).pathname)
    await world.sql.query("delete from oidc_record where kind = 'ClientDocument'")
    const refresh = (token: unknown) =>
      postToken(world, { grant_type: 'refresh_token', client_id: id, refresh_token: String(token) })
    const second = await refresh(first.body.refresh_token)
    expect([second.status, decode(String(second.body.access_token)).payload.aud]).toEqual([200, API])
    expect(await postToken(world, { grant_type: 'client_credentials', client_id: id })).toMatchObject({ status: 400 })
    const token = String(second.body.access_token)
    expect(await world.identity.introspect(token)).toMatchObject({ active: true, clientId: id })
    await world.directory.deleteClient(id, CONTEXT)
    expect(await world.identity.introspect(token)).toEqual({ active: false })
    expect(await refresh(second.body.refresh_token)).toMatchObject({ body: { error: 'invalid_client' } })
    documents.set(new URL(id).pathname, { body: '{}' })
    expect(await pageOf({ client_id: id })).toContain('a client of this id was removed here')
  })

  test.each([
    ['a scope that the setting does not name', { scope: 'openid email' }, 'invalid_scope'],
    ['a service scope', { scope: 'decisions:read' }, 'invalid_scope'],
  ])('is refused %s', async (_, parameters, error) => {
    expect((await signIn(serve(), parameters)).searchParams.get('error')).toBe(error)
  })

  test('is refused a life beyond the sign-in that its document does not ask for', async () => {
    const end = await signIn(serve(), { scope: 'openid offline_access' })
    expect(end.searchParams.get('error')).toBe('invalid_scope')
  })

  test('cannot return to what its document does not name, but on a device to any port', async () => {
    expect(await pageOf({ client_id: serve(), redirect_uri: 'https://evil.example/cb' })).toContain('redirect_uri')
    await world.sql.query('delete from attempt')
    const id = serve({ redirect_uris: ['http://127.0.0.1/cb'] })
    const pages: PageForm[] = []
    const end = await signIn(id, { redirect_uri: 'http://127.0.0.1:4711/cb' }, pages)
    expect(end.searchParams.has('code')).toBe(true)
    expect(pages[1]?.html).toContain('<strong>http://127.0.0.1:4711</strong>')
  })

  test('takes no member of ours from its document', async () => {
    const id = serve({ portcullis_scope: 'decisions:read', scope: 'decisions:read', portcullis_organization: 'acme' })
    expect((await signIn(id, { scope: 'decisions:read' })).searchParams.get('error')).toBe('invalid_scope')
    expect((await redeem(id, await signIn(id))).status).toBe(200)
    expect((await world.directory.client(id))?.metadata).not.toHaveProperty('portcullis_scope')
  })
})

describe('documents are fetched', () => {
  test('once for a host and minute without a sign-in, however many are named', async () => {
    const ids = Array.from({ length: 5 }, () => serve())
    const pages = await Promise.all(ids.map((id) => pageOf({ client_id: id })))
    expect(asked).toHaveLength(1)
    expect(pages.filter((page) => page.includes('try again in a minute'))).toHaveLength(4)
  })

  test('for who is signed in without waiting, and not at all where no sign-in begins', async () => {
    const browser = createBrowser(world.issuer)
    await browser.follow(flow.authorizeUrl({}), (page) => answerPage(page, flow.as('eve')))
    for (const id of [serve(), serve(), serve()]) await browser.send(flow.authorizeUrl({ client_id: id }))
    expect(asked).toHaveLength(3)
    const token = await postToken(world, { grant_type: 'authorization_code', client_id: serve(), code: 'x' })
    expect(token.body.error).toBe('invalid_client')
    expect(asked).toHaveLength(3)
  })

  test('anew after their time, and the last one serves a day while there is no turn', async () => {
    const id = serve({}, { headers: { 'cache-control': 'no-store' } })
    await redeem(id, await signIn(id))
    await world.sql.query("update oidc_record set expires_at = now() - interval '1 s' where kind = 'ClientDocument'")
    expect(await pageOf({ client_id: id })).toContain('/oauth/interaction/')
    expect(asked).toHaveLength(1)
    await world.sql.query('delete from attempt')
    await pageOf({ client_id: id })
    expect(asked).toHaveLength(2)
  })

  test.each([
    ['https://elsewhere.example/client', 'whose host no setting names'],
    ['https://intranet.example/client', 'whose host has no address'],
    ['https://10.0.0.1/client', 'with an internal address'],
  ])('never from %s, %s', async (id) => {
    const page = await pageOf({ client_id: id })
    expect(page).toContain('invalid_client')
    expect(page).not.toMatch(/internal address|ENOTFOUND|EAI_AGAIN/)
  })

  test.each([
    ['an answer that is no success', {}, { status: 404 }],
    ['a redirect', {}, { status: 302, headers: { location: 'https://app.example/' } }],
    ['too many bytes', { client_name: 'x'.repeat(20_000) }, {}],
  ])('without following %s', async (_, more, answer) => {
    expect(await pageOf({ client_id: serve(more, answer) })).toContain('it cannot be read')
    expect(asked).toHaveLength(1)
  })
})

describe('the metadata of the issuer', () => {
  test('announces documents only where they count', async () => {
    const other = await openWorld()
    const announced = async ({ issuer }: World) => {
      const answer = await fetch(`${issuer}/.well-known/oauth-authorization-server`)
      return parseObject(await answer.text()).client_id_metadata_document_supported
    }
    expect([await announced(world), await announced(other)]).toEqual([true, false])
    await other.close()
  })
})

const ID = 'https://a.example/client'
const valid = { client_id: ID, redirect_uris: ['https://a.example/cb'] }
describe('a document is refused with', () => {
  test.each([
    ['no JSON', 'x', 'not a JSON object'],
    ['an array', '[]', 'not a JSON object'],
    ['another client_id', { ...valid, client_id: `${ID}/` }, 'not its own URL'],
    ['no client_id', { redirect_uris: valid.redirect_uris }, 'not its own URL'],
    ['a secret', { ...valid, client_secret: 's' }, 'holds a client_secret'],
    ['a shared secret', { ...valid, token_endpoint_auth_method: 'client_secret_post' }, 'neither none nor'],
    ['no keys', { ...valid, token_endpoint_auth_method: 'private_key_jwt' }, 'one of jwks and jwks_uri'],
    [
      'keys here and elsewhere',
      { ...valid, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] }, jwks_uri: ID },
      'one of jwks and jwks_uri',
    ],
    ['no redirect_uris', { client_id: ID }, 'redirect_uris'],
    ['a text for redirect_uris', { ...valid, redirect_uris: 'https://a.example/cb' }, 'redirect_uris'],
    ['http elsewhere', { ...valid, redirect_uris: ['http://a.example/cb'] }, 'not loopback'],
    ['a script', { ...valid, redirect_uris: ['javascript:alert(1)'] }, 'neither https nor'],
    ['no grant of a person', { ...valid, grant_types: ['client_credentials'] }, 'lack authorization_code'],
  ])('%s', (_, document, why) => {
    expect(() => readDocument(ID, typeof document === 'string' ? document : JSON.stringify(document))).toThrow(
      expect.objectContaining({ error: 'invalid_client', error_description: expect.stringContaining(why) }),
    )
  })

  test.each([['Agent\u202e'], [' '], ['x'.repeat(101)], [7]])('no name %j, but shown by its host', (name) => {
    expect(readDocument(ID, JSON.stringify({ ...valid, client_name: name }))).not.toHaveProperty('client_name')
  })
})

test.each([
  ...[
    'http://a.example/c',
    'https://a.example',
    'https://a.example/',
    'https://A.example/c',
    'https://a.example:443/c',
  ],
  ...['https://a.example/c#f', 'https://a.example/c?q', 'https://u@a.example/c', 'https://u:p@a.example/c'],
  ...['https://a.example/./c', 'https://a.example/%2e%2e/c', 'https://a.example/c d', 'https:a.example/c', 'web'],
  `https://a.example/${'c'.repeat(256)}`,
])('%s is no URL of a document', (id) => {
  expect(documentHost(id)).toBeNull()
})
