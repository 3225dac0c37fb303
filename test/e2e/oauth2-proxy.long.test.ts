/**
 * oauth2-proxy in front of a sidecar, by the configuration of docs/migrate.md, with an identity provider that is not ours. It
 * runs where OAUTH2_PROXY names the program, or the cache has it (built from github.com/oauth2-proxy/oauth2-proxy/v7 v7.6.0).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { type ForeignProvider, startForeignProvider } from './foreign-issuer.ts'
import { HOST, type OwnIssuerWorld, openOwnIssuerWorld, RESOURCE } from './own-issuer-world.ts'

const CACHE = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
const PROGRAM = process.env.OAUTH2_PROXY ?? join(CACHE, 'portcullis-oauth2-proxy', 'bin', 'oauth2-proxy')
const SECRET = 'the-secret-of-the-pages-at-the-idp'
const ENTRY = {
  subject_prefix: 'kc:',
  organizations: ['acme'],
  typ: 'JWT',
  claims: { client: 'azp', groups: 'groups' },
}

/** The block of the page, with the addresses and the client of this test. */
function configuration(addresses: { idp: string; sidecar: string; listen: string }): string {
  const page = readFileSync('docs/migrate.md', 'utf8')
  const [, block = ''] = /```yaml\n(# oauth2-proxy\.yaml\n[\s\S]*?)```/.exec(page) ?? []
  const { idp, sidecar, listen } = addresses
  const shown: { readonly [text: string]: string } = {
    'http://127.0.0.1:15080': sidecar,
    '127.0.0.1:4180': listen,
    'https://sso.example.com/realms/acme': idp,
    'the secret of the client': SECRET,
  }
  const given = Object.entries(shown).reduce((text, [from, to]) => {
    expect(text).toContain(from)
    return text.replaceAll(from, to)
  }, block)
  // What only this provider needs: it names people by sub, has no profile for such tokens, and gives them for a resource (RFC 8707).
  return given
    .replace(
      'oidcConfig:',
      'skipClaimsFromProfileURL: true\n    scope: openid orders:read\n    oidcConfig:\n      emailClaim: sub\n      userIDClaim: sub',
    )
    .concat(
      `    loginURLParameters: [{name: resource, default: ["${RESOURCE}"]}, {name: login_hint, default: [ann], allow: [{pattern: ".*"}]}]\n`,
    )
}

/** Follows redirects with the cookies of each origin, as a browser does. */
async function visit(from: string, jar: Map<string, Map<string, string>>): Promise<Response> {
  let url = from
  for (let hops = 0; hops < 20; hops += 1) {
    const { origin } = new URL(url)
    const cookies = jar.get(origin) ?? new Map<string, string>()
    jar.set(origin, cookies)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie, accept: 'text/html' } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const next = response.headers.get('location')
    if (next === null) return response
    await response.body?.cancel()
    url = new URL(next, url).href
  }
  throw new Error(`too many redirects from ${from}`)
}

describe.skipIf(!existsSync(PROGRAM))('behind oauth2-proxy', () => {
  let world: OwnIssuerWorld
  let idp: ForeignProvider
  let proxy: ChildProcess
  let pages: string
  let sidecar: string
  beforeAll(async () => {
    const listen = `${HOST}:${await freePort()}`
    pages = `http://${listen}`
    world = await openOwnIssuerWorld()
    idp = await startForeignProvider([
      {
        client_id: 'pages',
        client_secret: SECRET,
        redirect_uris: [`${pages}/oauth2/callback`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ])
    idp.shape = (token) => {
      token.header.typ = 'JWT'
      const { client_id: client, ...payload } = token.payload
      token.payload = { ...payload, azp: client, typ: 'Bearer', groups: payload.sub === 'ann' ? ['/sales'] : [] }
    }
    await world.manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
    await world.manage('PUT', '/v1/apps/orders/manifest', { audiences: [RESOURCE] })
    await world.manage('PUT', `/v1/trusted-issuers/${encodeURIComponent(idp.issuer)}`, {
      ...ENTRY,
      audience: RESOURCE,
      jwks_uri: idp.jwksUri,
      algorithms: ['RS256'],
    })
    await world.manage('POST', '/v1/organizations/acme/relationships', {
      write: ['site:shop#viewer@group:~kc:group:/sales#member'],
    })
    sidecar = await world.startOn(
      '  GET /shop: viewer site:shop\n  GET /admin: admin site:shop\n  GET /open: signed_in\n',
      {
        issuer: idp.issuer,
        external: ENTRY,
      },
    )
    const file = join(world.directory, 'oauth2-proxy.yaml')
    writeFileSync(file, configuration({ idp: idp.issuer, sidecar, listen }))
    const words = ['--alpha-config', file, '--email-domain=*', '--skip-provider-button', '--cookie-secure=false']
    proxy = spawn(PROGRAM, [
      ...words,
      `--cookie-secret=${'0123456789abcdef'.repeat(2)}`,
      `--redirect-url=${pages}/oauth2/callback`,
    ])
    let said = ''
    for (const stream of [proxy.stdout, proxy.stderr])
      stream?.on('data', (chunk) => {
        said += String(chunk)
      })
    proxy.once('exit', (code) => code !== null && console.error(`oauth2-proxy ended with ${code}: ${said}`))
    await until(() =>
      fetch(`${pages}/ping`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
  })
  afterAll(async () => {
    const ended = once(proxy, 'exit')
    proxy.kill('SIGKILL')
    await ended
    await world.close()
    await idp.stop()
  })

  test('a person in a browser gets what the groups of the provider may, and nothing else', async () => {
    const jar = new Map<string, Map<string, string>>()
    const shop = await visit(`${pages}/shop`, jar)
    expect([shop.status, await shop.text()]).toEqual([200, 'an order'])
    expect(world.reached.at(-1)).toMatchObject({ 'x-auth-subject': '~kc:ann', 'x-auth-client': '~kc:pages' })
    const admin = await visit(`${pages}/admin`, jar)
    expect(admin.status).toBe(403)
    expect(await admin.json()).toMatchObject({ code: 'permission_denied' })
    // The service sees the sidecar's word alone, not what the proxy says of the person.
    expect(
      Object.keys(world.reached.at(-1) ?? {}).filter((name) => /^x-forwarded-(?:user|email|access)/.test(name)),
    ).toEqual([])
    expect(world.reached.at(-1)?.authorization).toBeUndefined()
  })

  test('somebody without a session reaches nothing', async () => {
    const before = world.reached.length
    expect((await fetch(`${pages}/open`, { redirect: 'manual' })).status).toBe(302)
    expect((await fetch(`${sidecar}/open`, { headers: { 'x-forwarded-access-token': 'x' } })).status).toBe(401)
    expect(world.reached.length).toBe(before)
  })
})
