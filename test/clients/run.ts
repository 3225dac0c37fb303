/**
 * `npm run clients [-- --short | --generate]`: the clients of other languages in `proto/clients`, each in an application of its
 * framework, on a running PDP. What is missing is installed into a cache; `--short` takes what is there, and passes without it;
 * `--generate` writes their generated code. Ends with `N passed, N failed, N skipped`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { type BenchPdp, RESOURCE, startBenchPdp } from '../bench/sidecar/pdp.ts'
import { freePort, isOpen } from '../support/free-port.ts'
import { ecKeys } from '../support/peers/issuer.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { readArguments } from '../support/programs/arguments.ts'
import { clientToken } from '../support/sign-in.ts'
import { type SilentProxy, startSilentProxy } from '../support/silent-proxy.ts'
import { until } from '../support/until.ts'
import { findServers, generate, type Server } from './installed.ts'

const FLAG = { type: 'boolean', default: false } as const
const { short, generate: write } = readArguments(
  { options: { short: FLAG, generate: FLAG } },
  'npm run clients [-- --short | --generate]',
).values
const counts = { passed: 0, failed: 0, skipped: 0 }
function tell(outcome: keyof typeof counts, what: string, why = ''): void {
  counts[outcome] += 1
  console.log(`${outcome} ${what}${why === '' ? '' : `: ${why}`}`)
}

const PEMS = join(import.meta.dirname, '../support/certificates')
const SECRET = 'client-secret-of-no-value-anywhere-else'

type World = {
  readonly pdp: BenchPdp
  readonly proxy: SilentProxy
  readonly tokens: { readonly [name in 'mine' | 'other' | 'bound' | 'foreign' | 'asker']: string }
}
type Seen = { readonly status: number; readonly body: string; readonly headers: Headers }

async function openWorld(): Promise<World> {
  const port = await freePort()
  const pdp = await startBenchPdp(undefined, undefined, {
    // On loopback alone, callers need no token.
    PORTCULLIS_GRPC_LISTEN: `0.0.0.0:${port}`,
    PORTCULLIS_GRPC_TLS_CERT_FILE: join(PEMS, 'server-1.pem'),
    PORTCULLIS_GRPC_TLS_KEY_FILE: join(PEMS, 'server-1.key'),
  })
  try {
    const tokens = await setUp(pdp)
    return { pdp, tokens, proxy: await startSilentProxy({ port }) }
  } catch (err) {
    await pdp.stop()
    throw err
  }
}

async function setUp(pdp: BenchPdp): Promise<World['tokens']> {
  const asker = {
    grant_types: ['client_credentials'],
    organization: 'acme',
    scope: 'decisions:ask',
    client_secret: SECRET,
  }
  await pdp.manage('PUT', '/v1/clients/asker', asker)
  await pdp.manage('POST', '/v1/organizations/acme/relationships', { write: ['invoice:7#viewer@service:bench'] })
  const own = { issuer: pdp.issuer, clientId: 'asker', clientSecret: SECRET, scope: 'decisions:ask' }
  return {
    mine: await pdp.token(),
    other: await pdp.otherToken(),
    bound: await pdp.token(ecKeys()),
    foreign: await pdp.ownToken(),
    asker: (await clientToken(own)).access_token,
  }
}

/** What is wrong with the server's answers, one line each. */
async function play(port: number, { pdp, proxy, tokens }: World): Promise<readonly string[]> {
  const wrong: string[] = []
  const ask = async (path: string, headers: { readonly [name: string]: string } = {}): Promise<Seen> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    return { status: response.status, body: await response.text(), headers: response.headers }
  }
  const as = (token: string) => ({ authorization: `Bearer ${token}` })
  const expect = (what: string, seen: Seen, status: number, text: string): void => {
    if (seen.status !== status || !seen.body.includes(text)) wrong.push(`${what}: ${seen.status} ${seen.body}`)
    if (seen.status === 200) return
    if (seen.headers.get('content-type') !== 'application/problem+json') wrong.push(`${what}: no problem details`)
    if (seen.headers.has('www-authenticate') !== (status === 401))
      wrong.push(`${what}: a challenge is ${seen.headers.get('www-authenticate')}`)
    if (seen.headers.has('retry-after') !== (status === 503))
      wrong.push(`${what}: Retry-After is ${seen.headers.get('retry-after')}`)
  }
  const { mine, other, bound, foreign } = tokens
  const forged = `${mine.slice(0, -8)}AAAAAAAA`
  const [head = '', payload = '', signature = ''] = mine.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const changed = [
    head,
    Buffer.from(JSON.stringify({ ...claims, sub: 'other' })).toString('base64url'),
    signature,
  ].join('.')
  const path = '/invoices/7'
  const refused: readonly (readonly [string, string, { readonly [name: string]: string }, number, string])[] = [
    ['no token', path, {}, 401, 'token_missing'],
    ['another scheme', path, { authorization: 'Basic YTpi' }, 401, 'token_missing'],
    ['a scheme alone', path, { authorization: 'Bearer' }, 400, 'request_invalid'],
    ['two tokens', path, { authorization: `Bearer ${mine} ${mine}` }, 401, 'token_invalid'],
    ['two tokens with a comma', path, { authorization: `Bearer ${mine}, Bearer ${mine}` }, 401, 'token_invalid'],
    ['no JWT', path, as('abc'), 401, 'token_invalid'],
    ['a text of three parts', path, as('a.b.c'), 401, 'token_invalid'],
    ['a JWT that is no object', path, as(`${head}.W10.${signature}`), 401, 'token_invalid'],
    ['a forged signature', path, as(forged), 401, 'token_invalid'],
    ['changed claims', path, as(changed), 401, 'token_invalid'],
    ['a token for another audience', path, as(foreign), 401, 'token_invalid'],
    ['a bound token without its proof', path, as(bound), 401, 'token_invalid'],
    ['a bound token', path, { authorization: `DPoP ${bound}` }, 401, 'token_invalid'],
    ['a bearer token as a bound one', path, { authorization: `DPoP ${mine}` }, 401, 'token_invalid'],
    ['somebody without the grant', path, as(other), 403, 'permission_denied'],
    ['another resource', '/invoices/8', as(mine), 403, 'permission_denied'],
    ['an id with a space', '/invoices/a%20b', as(mine), 400, 'request_invalid'],
    ['an id for everything', '/invoices/*', as(mine), 400, 'request_invalid'],
    ['values that could be divided otherwise', '/files/a-b/c', as(mine), 400, 'request_invalid'],
    ['a file', '/files/a/b', as(mine), 403, 'permission_denied'],
    ['no token where any will do', '/me', {}, 401, 'token_missing'],
    ['a forged token where any will do', '/me', as(forged), 401, 'token_invalid'],
  ]
  for (const [what, where, headers, status, text] of refused) expect(what, await ask(where, headers), status, text)
  const twice = `Authorization: Bearer ${mine}\r\n`
  const doubled = await sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${twice}${twice}\r\n`)
  if (![400, 401].includes(doubled.status)) wrong.push(`two fields: ${doubled.status}`)
  expect('the grant', await ask(path, as(mine)), 200, 'invoice 7 for bench of acme')
  expect('any token', await ask('/me', as(other)), 200, 'other')
  const change = (op: string): Promise<void> =>
    pdp.manage('POST', '/v1/organizations/acme/relationships', { [op]: ['invoice:9#viewer@service:bench'] })
  await change('write')
  expect('a new grant', await ask('/invoices/9', as(mine)), 200, 'invoice 9')
  await change('delete')
  expect('a grant that was taken away', await ask('/invoices/9', as(mine)), 403, 'permission_denied')
  const many = (): Promise<Seen> => ask('/many', { mine, other })
  expect('many questions at once', await many(), 200, '500 of 1000, each its own: True')
  proxy.silence()
  const lost = await Promise.all(Array.from({ length: 8 }, () => ask(path, as(mine))))
  for (const seen of lost) expect('a network that fell silent', seen, 503, 'pdp_unavailable')
  proxy.heal()
  await until(async () => (await ask(path, as(mine))).status === 200)
  expect('many questions after that', await many(), 200, '500 of 1000, each its own: True')
  return wrong
}

/** With a token that may not ask, and with an authority that did not sign for the PDP. */
async function playRefused(port: number, { tokens }: World): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${tokens.mine}` }
  const { status } = await fetch(`http://127.0.0.1:${port}/invoices/7`, { headers })
  return status === 503 ? [] : [`it answered ${status}`]
}

async function test(name: string, server: Server | string, world: World): Promise<void> {
  if (typeof server === 'string') return tell('skipped', name, server)
  const { asker, mine } = world.tokens
  await playOn(server, { name, token: asker, ca: 'ca.pem', play }, world)
  await playOn(server, { name: `${name}, which may not ask`, token: mine, ca: 'ca.pem', play: playRefused }, world)
  await playOn(
    server,
    { name: `${name}, which trusts another`, token: asker, ca: 'other-ca.pem', play: playRefused },
    world,
  )
}

type Playing = { readonly name: string; readonly token: string; readonly ca: string; readonly play: typeof play }
async function playOn(server: Server, { name, token, ca, play: part }: Playing, world: World): Promise<void> {
  const port = await freePort()
  const env = {
    PATH: process.env.PATH,
    PDP: `127.0.0.1:${world.proxy.port}`,
    PDP_CA: join(PEMS, ca),
    PYTHONDONTWRITEBYTECODE: '1',
    PDP_TOKEN: token,
    RESOURCE,
    PORT: `${port}`,
  }
  const child = spawn(server.command, server.words(port), { env, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    await until(() => child.exitCode === null && isOpen(port))
    const wrong = await part(port, world)
    tell(wrong.length === 0 ? 'passed' : 'failed', name, wrong.join('\n  '))
  } catch (err) {
    tell('failed', name, String(err))
  } finally {
    await ended(child)
  }
}

const ended = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve) => {
    if (child.exitCode !== null) return resolve(null)
    child.once('exit', resolve)
    child.kill('SIGTERM')
  })

const differ = generate({ write, mayInstall: !short })
if (typeof differ === 'string') tell('skipped', 'generated code', differ)
else if (differ.length === 0) tell('passed', 'generated code')
else tell('failed', 'generated code', `${differ.join(', ')} differ: npm run clients -- --generate`)
const servers = write ? {} : findServers(!short)
if (Object.values(servers).some((server) => typeof server !== 'string')) {
  const world = await openWorld()
  try {
    for (const [name, server] of Object.entries(servers)) await test(name, server, world)
  } finally {
    await world.proxy.close()
    await world.pdp.stop()
  }
} else for (const [name, server] of Object.entries(servers)) tell('skipped', name, String(server))
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exit(counts.failed > 0 ? 1 : 0)
