/** `setup`, `login` and what they leave behind: a first person gets in, as she would with a browser. */
import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loginFile, readLogin, saveLogin } from '../../../../pdp/tools/commands/everyday/saved-login.ts'
import { connectDevice } from '../../../support/sign-in.ts'
import { type ServedPdp, servePdp } from './served-pdp.ts'

let served: ServedPdp
let folder: string
let url: string
beforeAll(async () => {
  served = await servePdp()
  ;({ folder, url } = served)
})
afterAll(() => served.close())
const run: ServedPdp['run'] = (line, options) => served.run(line, options)
const good: ServedPdp['good'] = (line) => served.good(line)

describe('setup', () => {
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text)

  test('makes what is missing, and keeps what there is', async () => {
    await write('one.yaml', 'resource: https://depot.example.com\nissuers: [{issuer: "http://127.0.0.1:8080"}]\n')
    const file = join(folder, 'one.yaml')
    await good('org put depot --name Depot')
    await writeFile(
      join(folder, 'depot.yaml'),
      'audiences: [https://other.example.com]\npermissions: {depot:open: Open}\n',
    )
    await good(`manifest apply depot ${join(folder, 'depot.yaml')}`)
    expect(await good(`setup depot ${file} --user finn@example.com`)).toMatch(
      /^organization {2}depot \(kept\)\napp {11}depot, for the audience https:\/\/depot.example.com\nperson {8}user:finn, who signs in as finn@example.com\npassword {6}\S{16} \(shown this once\)\nclient /,
    )
    const again = await good(`setup depot ${file} --user finn@example.com`)
    expect(again).not.toContain('password')
    expect(again.match(/\(kept\)/g)).toHaveLength(4)
    expect(await good('org get depot')).toContain('Depot')
    const manifest = JSON.parse(await good('manifest get depot'))
    expect(manifest).toMatchObject({
      audiences: ['https://other.example.com', 'https://depot.example.com'],
      permissions: { 'depot:open': 'Open' },
    })
  })

  test('tells the PDP of the issuers of the route file what the file says', async () => {
    await write('secret', 'the-secret-of-the-introspector\n')
    await write(
      'two.yaml',
      `resource: https://depot.example.com
issuers:
  - issuer: ${url}
  - issuer: https://sso.example.com
    jwks_uri: https://sso.example.com/keys
    external: {subject_prefix: "sso:", organizations: [depot], audience: depot-api, typ: JWT, claims: {client: azp}}
  - issuer: https://opaque.example.com
    external: {subject_prefix: "opaque:", organizations: [depot]}
    introspection:
      endpoint: https://opaque.example.com/introspect
      client_id: portcullis
      client_secret_file: ${join(folder, 'secret')}
`,
    )
    const made = JSON.parse(await good(`setup depot ${join(folder, 'two.yaml')} --json`))
    expect(made.map(({ what }: { what: string }) => what)).toEqual(['organization', 'app', 'issuer', 'issuer'])
    const token = (await good('token --client-id admin --scope issuers:read')).trim()
    const known = await fetch(`${url}/v1/trusted-issuers`, { headers: { authorization: `Bearer ${token}` } })
    expect(await known.json()).toMatchObject({
      items: [
        { issuer: 'https://opaque.example.com', audience: 'https://depot.example.com', subject_prefix: 'opaque:' },
        {
          issuer: 'https://sso.example.com',
          jwks_uri: 'https://sso.example.com/keys',
          algorithms: ['RS256'],
          audience: 'depot-api',
          resource: 'https://depot.example.com',
          claims: { client: 'azp' },
        },
      ],
    })
  })

  const external = 'external: {subject_prefix: "x:", organizations: [depot]}'
  test.each([
    ['depot nowhere.yaml', null, /nowhere\.yaml does not exist\n.*init/],
    ['depot bad.yaml', 'a: [', /bad\.yaml cannot be read: the body is not YAML|bad\.yaml cannot be read/],
    ['depot bad.yaml', 'routes: {}', /is not a route file.*portcullis-sidecar check/],
    ['depot bad.yaml', 'resource: https://127.0.0.1\nissuers: []', /names no app: give it by --app/],
    ['depot bad.yaml --user finn', 'resource: https://d.example\nissuers: []', /must be an e-mail address/],
    [
      'depot bad.yaml --user finn@other.example',
      'resource: https://depot.example.com\nissuers: []',
      /user finn has the address finn@example\.com/,
    ],
    [
      'depot bad.yaml',
      `resource: https://depot.example.com\nissuers: [{issuer: "http://127.0.0.1:1", ${external}}]`,
      /127\.0\.0\.1:1\/\.well-known\/openid-configuration cannot be read.*jwks_uri/,
    ],
    [
      'depot bad.yaml',
      `resource: https://depot.example.com\nissuers: [{issuer: "https://y", ${external}, introspection: {endpoint: "https://y/i", client_id: c, client_secret_file: /nowhere}}]`,
      /\/nowhere does not exist/,
    ],
    [
      'depot bad.yaml',
      'resource: https://depot.example.com\nissuers: [{issuer: "https://y", jwks_uri: "https://y/k", external: {subject_prefix: "y:"}}]',
      /organizations/,
    ],
  ])('ends with 2 and says why: setup %s (%#)', async (line, text, why) => {
    if (text !== null) await write('bad.yaml', text)
    const { status, err } = await run(`setup ${line.replace(/(\w+)\.yaml/, join(folder, '$1.yaml'))}`)
    expect([status, err]).toEqual([2, expect.stringMatching(why)])
  })
})

async function setUp(organization: string, address: string): Promise<{ password: string }> {
  const said = await good(`setup ${organization} ${join(folder, 'portcullis.yaml')} --user ${address}`)
  return { password: /^password +(\S+)/m.exec(said)?.[1] ?? '' }
}
/** A person who opens the page that `login` names. */
function onPage(answer: (url: string) => Promise<string>) {
  let last = Promise.resolve('no page was named')
  return {
    open(said: string): void {
      const [, page] = /Open (\S+)/.exec(said) ?? []
      if (page !== undefined) last = answer(page)
    },
    last: () => last,
  }
}

describe('login', () => {
  test('signs a person in by a browser, keeps the sign-in for its owner alone, renews it and ends it', async () => {
    await writeFile(join(folder, 'portcullis.yaml'), 'resource: https://shop.example.com\nissuers: []\n')
    const { password } = await setUp('acme', 'dora@example.com')
    const env = { HOME: join(folder, 'dora') }
    const page = onPage((url) => connectDevice(url, { email: 'dora@example.com', password }))
    const signed = await run('login --resource https://shop.example.com', { env, onError: page.open })
    expect([signed.status, signed.out]).toEqual([0, `Signed in at ${url}\n`])
    expect(await page.last()).toMatch(/is connected/)
    const file = loginFile(env, process.platform)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await run('whoami', { env })).out).toMatch(/\ndora +- +dora@example\.com +acme\n$/)

    const { out: token } = await run('token', { env })
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({ sub: 'dora', aud: 'https://shop.example.com', org: 'acme' })
    const saved = readLogin(file, null)
    if (saved === null) throw new Error('no sign-in was kept')
    saveLogin(file, { ...saved, expiresAtMs: Date.now() })
    const renewed = (await run('token', { env })).out
    expect(JSON.parse(Buffer.from(renewed.split('.')[1] ?? '', 'base64url').toString())).toMatchObject({
      sub: 'dora',
      aud: 'https://shop.example.com',
    })
    expect(renewed).not.toBe(token)

    expect((await run('logout', { env })).out).toBe('Signed out\n')
    await expect(stat(file)).rejects.toThrow(/ENOENT/)
    // What was kept before is of no use any more.
    saveLogin(file, { ...saved, expiresAtMs: Date.now() })
    expect((await run('token', { env })).err).toMatch(/the sign-in has ended .*portcullis login/)
  })

  test('keeps nothing of a sign-in that the person stops', async () => {
    await writeFile(join(folder, 'portcullis.yaml'), 'resource: https://shop.example.com\nissuers: []\n')
    const { password } = await setUp('acme', 'emil@example.com')
    const env = { HOME: join(folder, 'emil') }
    const page = onPage((url) => connectDevice(url, { email: 'emil@example.com', password }, { abort: 'yes' }))
    const stopped = await run('login', { env, onError: page.open })
    expect([stopped.status, stopped.err]).toEqual([2, expect.stringMatching(/the sign-in failed: access_denied/)])
    expect(await page.last()).toMatch(/was stopped/)
    await expect(stat(loginFile(env, process.platform))).rejects.toThrow(/ENOENT/)
  })
})

describe('a saved sign-in', () => {
  test('is readable by its owner alone, in the folder of the operating system', async () => {
    expect(loginFile({ HOME: '/h' }, 'linux')).toBe('/h/.config/portcullis/login.json')
    expect(loginFile({ HOME: '/h' }, 'darwin')).toBe('/h/Library/Application Support/portcullis/login.json')
    expect(loginFile({ HOME: '/h', XDG_CONFIG_HOME: '/x' }, 'linux')).toBe('/x/portcullis/login.json')
    const file = loginFile({ HOME: folder }, 'linux')
    const login = { url, clientId: 'c', accessToken: 't', expiresAtMs: 1, refreshToken: null }
    saveLogin(file, login)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(readLogin(file, null)).toEqual(login)
    await writeFile(file, '{"url": 7')
    expect(readLogin(file, null)).toBe(null)
    await rm(file)
  })
})
