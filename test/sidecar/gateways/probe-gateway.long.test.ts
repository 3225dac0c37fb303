import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Operations, startOperations } from '../../../pdp/shared/process/admin-listener.ts'
import { formatAddress } from '../../../pdp/shared/process/listen.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import { planProbes } from '../../../sidecar/gateways/probe/plan.ts'
import { freePort } from '../../support/free-port.ts'
import { type Ended, runCli } from '../../support/peers/sidecar-cli.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { type GatewayMistake, startAskingGateway } from './asking-gateway.ts'

const ROUTES = `GET /docs/{id}: viewer doc:{id}
GET /public/**: public`
const folder = mkdtempSync(join(tmpdir(), 'portcullis-probe-'))
const door = join(folder, 'door.sock')
const extra = `hosts: [app.test]\ndoors: [{profile: caddy, listen: "unix:${door}"}]`
const path = join(folder, 'routes.yaml')
const token = join(folder, 'token')
let world: Harness
let admin: Operations
beforeAll(async () => {
  world = await startHarness({ routes: ROUTES, extra, certificatesOf: readCertificates })
  await world.sidecar.openDoors()
  const { refusal } = world.sidecar
  admin = await startOperations({
    listen: { host: '127.0.0.1', port: 0 },
    registry: new Registry(),
    probes: {},
    refusal,
  })
  writeFileSync(path, fileText(ROUTES, extra))
  writeFileSync(token, await world.issuer.token({ scope: '' }))
})
afterAll(async () => {
  await admin.close()
  await world.close()
  rmSync(folder, { recursive: true })
})
const fileText = (routes: string, more = ''): string =>
  routeFile(routes, { extra: more }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
const written = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const adminUrl = (): string => `http://${formatAddress(admin.address)}`

async function probe(mistake: GatewayMistake = {}, words: readonly string[] = []): Promise<Ended> {
  const gateway = await startAskingGateway({ door, service: world.upstream.origin }, mistake)
  try {
    const usual = ['--url', gateway.url, '--file', path, '--token', token, '--admin', adminUrl()]
    return await runCli(['probe-gateway', ...usual, ...words])
  } finally {
    gateway.close()
  }
}
const forgets: GatewayMistake['refuses'] = (_refusal, _res, forward) => {
  forward()
  return true
}
const redirects: GatewayMistake['refuses'] = (_refusal, res) => {
  res.writeHead(302, { location: '/' }).end()
  return true
}
const notFound = (_req: unknown, res: { writeHead(status: number): { end(): void } }): void => res.writeHead(404).end()

describe('probe-gateway', () => {
  test('holds a gateway that asks about everything, and lets none of its probes reach the service', async () => {
    world.upstream.reached.length = 0
    const { status, stdout } = await probe()
    expect(stdout).toMatch(/^[1-9]\d+ held, \d+ refused by the gateway as malformed, 0 passed, 0 unproven\n$/)
    expect([status, world.upstream.reached]).toEqual([0, []])
  })

  const unasked = (req: IncomingMessage): boolean => req.url?.startsWith('/docs/') === true
  test.each<[string, GatewayMistake]>([
    ['a path that nobody asks about', { skips: unasked }],
    ['a path in other letters that nobody asks about', { skips: ({ url }) => url?.startsWith('/DOCS/') === true }],
    ['an ending that nobody asks about', { skips: ({ url }) => url?.endsWith('.json') === true }],
    ['an escaped slash that nobody asks about', { skips: ({ url }) => /%2f/.test(url ?? '') }],
    ['a way up from a public path', { skips: ({ url }) => url?.startsWith('/public/') === true }],
    ['HEAD, about which nobody is asked', { skips: ({ method }) => method === 'HEAD' }],
    ['requests with a token, about which nobody is asked', { skips: ({ headers }) => 'authorization' in headers }],
    ['a field by which a client says its target', { says: ({ headers }) => targetOf(headers['x-forwarded-uri']) }],
    ['a question about another path', { says: () => ({ 'x-forwarded-uri': '/public/a' }) }],
    ['refusals that it forgets', { refuses: forgets }],
    ['refusals that become a redirect', { refuses: redirects }],
  ])('names %s, also where the service does not know the made-up id', async (_what, mistake) => {
    world.upstream.handle = notFound
    const { status, stdout } = await probe(mistake)
    world.upstream.handle = null
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^(passed|unproven): (GET|HEAD) /)])
  })
  const targetOf = (value: string | string[] | undefined): { readonly [name: string]: string } =>
    typeof value === 'string' ? { 'x-forwarded-uri': value } : {}

  test('does not take one refusal of the door for a second probe', async () => {
    const { status, stdout } = await probe({ says: () => ({ 'x-request-id': 'always-the-same' }) })
    expect([status, stdout]).toEqual([1, expect.stringMatching(/unproven: .*: 401, and the door did not refuse it/)])
  })

  test('does not take a refusal of the service for one of the door', async () => {
    world.upstream.handle = (_req, res) => res.writeHead(403).end()
    const { stdout } = await probe({ refuses: forgets })
    world.upstream.handle = null
    expect(stdout).toMatch(/unproven: .* without a token: 403, but the door refused it with 401 token_missing/)
  })

  test('names a token that the door does not accept', async () => {
    const expired = written('expired', await world.issuer.token({ exp: 1 }))
    const { status, stdout } = await probe({}, ['--token', expired])
    expect([status, stdout]).toEqual([1, expect.stringMatching(/the door does not accept the token/)])
  })

  test('prints for programs what was sent and what came back', async () => {
    const { status, stdout } = await probe({ skips: unasked }, ['--json'])
    const { held, passed, unproven, left_out } = JSON.parse(stdout)
    expect([status, held > 100, unproven, left_out]).toEqual([1, true, [], []])
    expect(passed[0]).toMatchObject({ method: 'GET', fields: [], token: false, route: 'GET /docs/{id}', answer: '200' })
    expect(passed[0].target).toMatch(/^\/docs\/probe-[0-9a-f]{12}$/)
  })

  test('sends GET and HEAD only, unless all methods are allowed', async () => {
    const methods = async (words: readonly string[]): Promise<Set<string | undefined>> => {
      const seen = new Set<string | undefined>()
      const note = ({ method }: IncomingMessage): boolean => seen.add(method).size === 0
      expect((await probe({ skips: note }, words)).status).toBe(0)
      return seen
    }
    expect(await methods([])).toEqual(new Set(['GET', 'HEAD']))
    expect(await methods(['--all-methods'])).toEqual(new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
  })
})

describe('probe-gateway --door-stopped', () => {
  let stopped = ''
  beforeAll(async () => {
    stopped = `http://127.0.0.1:${await freePort()}`
  })
  const probeStopped = async (mistake: GatewayMistake): Promise<Ended> => {
    const gateway = await startAskingGateway({ door: join(folder, 'no.sock'), service: world.upstream.origin }, mistake)
    try {
      return await runCli(['probe-gateway', '--url', gateway.url, '--file', path, '--admin', stopped, '--door-stopped'])
    } finally {
      gateway.close()
    }
  }

  test('holds a gateway that refuses everything', async () => {
    const { status, stdout } = await probeStopped({})
    expect([status, stdout]).toEqual([0, expect.stringMatching(/not probed: requests with a token.*\n\d+ held,/)])
  })

  test('names what gets through, also where the service does not know the made-up id', async () => {
    expect(await probeStopped({ failsOpen: true })).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/^passed/),
    })
    world.upstream.handle = notFound
    const { status, stdout } = await probeStopped({ failsOpen: true })
    world.upstream.handle = null
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^unproven: .*: 404, which does not say that the door/)])
  })

  test('ends when the sidecar still runs', async () => {
    const { status, stderr } = await probe({}, ['--door-stopped'])
    expect([status, stderr]).toEqual([
      1,
      `--admin ${adminUrl()}: the sidecar still runs; stop it, then run this again\n`,
    ])
  })
})

describe('probe-gateway ends', () => {
  const usual = (): string[] => ['probe-gateway', '--url', 'http://127.0.0.1:1', '--file', path]
  test.each<[string, () => string[], number, RegExp]>([
    ['without a gateway', () => ['probe-gateway', '--file', path], 64, /required option '--url <url>' not specified/],
    ['without a route file', () => ['probe-gateway', '--url', 'http://a'], 64, /required option '-f, --file <path>'/],
    [
      'with a URL that has a path',
      () => [...usual(), '--url', 'http://a/b'],
      64,
      /--url "http:\/\/a\/b" must be an http/,
    ],
    ['with a URL of something else', () => [...usual(), '--url', 'ftp://a'], 64, /--url "ftp:\/\/a" must be an http/],
    ['with an admin port that is no URL', () => [...usual(), '--admin', ':15094'], 64, /--admin ":15094" must be/],
    [
      'with a token that is not a JWT',
      () => [...usual(), '--token', written('none', 'abc')],
      64,
      /must name a file with an acc/,
    ],
    ['without a token file', () => [...usual(), '--token', '/nowhere/at/all'], 64, /does not exist/],
    [
      'with public routes only',
      () => [...usual(), '--file', written('p', fileText('GET /a: public'))],
      64,
      /no route guards/,
    ],
    [
      'with shadowed routes only',
      () => [...usual(), '--file', written('s', fileText('GET /a: {check: signed_in, mode: shadow}'))],
      64,
      /no route guards/,
    ],
    ['without a sidecar', () => [...usual(), '--admin', 'http://127.0.0.1:1'], 1, /--admin http:\/\/127.0.0.1:1: /],
    [
      'with an admin port of something else',
      () => [...usual(), '--admin', world.upstream.origin],
      1,
      /does not answer as the admin port of a sidecar/,
    ],
    [
      'without answers of the gateway',
      () => [...usual(), '--admin', adminUrl()],
      1,
      /^--url http:.*: 21 probes got no answer, the last: connect ECONNREFUSED/,
    ],
  ])('%s', async (_what, words, status, message) => {
    expect(await runCli(words())).toMatchObject({ status, stderr: expect.stringMatching(message) })
  })
})

describe('the plan of probe-gateway', () => {
  const plan = (routes: string, more = '') =>
    planProbes(loadFile(fileText(routes, more)), { claims: { sub: 'nobody' }, allMethods: false, madeUp: 'probe-0' })

  test('has at most 5,000 probes, plain ones of every route first, and says what it leaves out', () => {
    const routes = Array.from({ length: 100 }, (_, at) => `GET /a${at}/{id}: viewer doc:{id}`).join('\n')
    const { probes, leftOut } = plan(routes)
    expect([probes.length, leftOut]).toEqual([
      5_000,
      [expect.stringMatching(/^\d+ of \d+ probes, which are more than/)],
    ])
    expect(new Set(probes.filter(({ plain }) => plain).map(({ route }) => route)).size).toBe(100)
  })

  test('asks with a token only for what no token has by itself', () => {
    const own = [
      'signed_in',
      'scope a',
      'entitlement a',
      '{any: [signed_in, "viewer doc:1"]}',
      '{all: [signed_in, "viewer doc:1"]}',
    ]
    const asked = own.map((check) => plan(`GET /a: ${check}`).probes.some(({ token: with_, plain }) => with_ && plain))
    expect(asked).toEqual([false, true, false, false, true])
  })

  test('leaves out what the route file makes public, and routes in shadow mode', () => {
    const { probes, leftOut } = plan('GET /a/b: signed_in\nGET /a/**: public\nGET /c: {check: signed_in, mode: shadow}')
    expect(probes.filter(({ plain }) => plain).map(({ target }) => target)).toEqual(['/a/b', '/a/b'])
    expect(probes.some(({ target }) => target === '/a/b~')).toBe(false)
    expect(leftOut).toEqual(['routes in shadow mode, which guard nothing yet: 1'])
  })

  test('knows every way of writing a path that the attack files know', () => {
    const attacks = readFileSync(join(import.meta.dirname, '../../attacks/data/own-cases.jsonl'), 'utf8')
    const targets = [...attacks.matchAll(/"(?:target": *"|raw": *"[A-Z]+ )([^?" ]+)/g)].map(([, target = '']) => target)
    const ways = new Set(targets.flatMap((target) => target.toLowerCase().match(WAYS) ?? []))
    const spelled = plan('GET /docs/{id}: viewer doc:{id}\nGET /public/**: public')
      .probes.map(({ target }) => target.toLowerCase())
      .join('\n')
    expect(ways.size).toBeGreaterThan(10)
    expect([...ways].filter((way) => !spelled.includes(way))).toEqual([])
  })
})
/** What stands for dots, slashes and their ends. */
const WAYS = /%(?:25|u00)?2[ef]|%(?:25)?5c|%c0%a[ef]|%ef%bc%8[ef]|%e3%80%80|%0[09ad]|%2[03]|%3b|\.\.;|\\\\|\/\/|;/g
