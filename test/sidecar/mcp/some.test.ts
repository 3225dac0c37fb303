/** `listed: some`: a list shows what its reader may call with some argument, and a call is judged by its own as ever. */
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import { service, user } from '../../../pdp/shared/domain/subjects.ts'
import { parseClaims } from '../../../pdp/shared/token/claims.ts'
import { runRouteTests } from '../../../sidecar/commands/route-report.ts'
import type { EnforceDeps } from '../../../sidecar/enforce/enforce.ts'
import type { PdpAnswer } from '../../../sidecar/pdp-client/question.ts'
import { buildQuestions, type Check } from '../../../sidecar/routes/checks.ts'
import { effort } from '../../support/effort.ts'
import type { RawAnswer } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { NOW, worlds, writeWorld, written } from '../../support/property-worlds.ts'
import { given, put } from '../../support/tuples.ts'
import { pick, type Random, seeded } from '../fuzz/targets.ts'
import { ALLOW, depsFor, NOW_MS } from '../support/enforcing.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { listed, send } from './enforced-calls.ts'

const IDS = ['0', '1']
const RELATIONS = ['r0', 'r1', 'r2', 'r3']

function checkOf(random: Random, args: string[], depth = 0): unknown {
  const kind = random()
  if (depth < 2 && kind < 0.35) {
    const of = Array.from({ length: 1 + Math.floor(random() * 2) }, () => checkOf(random, args, depth + 1))
    return { [kind < 0.2 ? 'all' : 'any']: of }
  }
  if (kind < 0.4) return 'signed_in'
  if (kind < 0.5) return 'scope a:read'
  if (kind < 0.6) return `${pick(random, RELATIONS)} ${pick(random, ['doc', 'folder'])}:0`
  const name = random() < 0.3 ? pick(random, [...args, 'a0']) : `a${args.length}`
  if (!args.includes(name)) args.push(name)
  return `${pick(random, RELATIONS)} ${pick(random, ['doc', 'folder', 'free'])}:{arguments.${name}}`
}

type Tool = { readonly name: string; readonly args: readonly string[]; readonly rule: object }
const routesOf = (tools: readonly Tool[]): string =>
  `MCP /mcp: ${JSON.stringify({ tools: Object.fromEntries(tools.map(({ name, rule }) => [name, rule])) })}`

/** One that the route file accepts: no argument stands in two parts that must both hold. */
function toolOf(random: Random, name: string): Tool {
  for (;;) {
    const args: string[] = []
    const tool = { name, args, rule: { check: checkOf(random, args), listed: 'some' } }
    try {
      depsFor({ routes: routesOf([tool]) })
      return tool
    } catch (err) {
      expect(String(err)).toContain('listed: some')
    }
  }
}

const assignments = (names: readonly string[]): readonly { readonly [name: string]: string }[] =>
  names.reduce<readonly { readonly [name: string]: string }[]>(
    (found, name) => found.flatMap((one) => IDS.map((id) => ({ ...one, [name]: id }))),
    [{}],
  )

function actingAs(deps: EnforceDeps, ask: EnforceDeps['pdp']['ask'], scope: string): EnforceDeps {
  const who = { iss: 'https://as.test', aud: 'https://app.test', sub: 'alice', client_id: 'c1', org: 'acme' }
  const times = { jti: 'j', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 300 }
  const claims = parseClaims(Object.assign(Object.create(null), who, times, { scope }), 'digest')
  return { ...deps, tokens: { verify: () => claims }, pdp: { ask, watch: () => () => undefined } }
}

test('random people and agents are listed exactly the tools that they may call with some arguments', async () => {
  const count = { shown: 0, hidden: 0, calls: 0 }
  await fc.assert(
    fc.asyncProperty(worlds, fc.nat(), async (world, seed) => {
      const random = seeded(seed)
      const acting = random() < 0.3
      const store = memoryStore({ clock: () => NOW })
      await writeWorld(store, world)
      await given(store, 'child', ...(world.content.child?.tuples ?? []).map(written))
      const objects = ['doc:0', 'doc:1', 'folder:0', 'folder:1']
      const held = objects.flatMap((object) =>
        ['user:a', 'user:b', 'service:a'].flatMap((who) => RELATIONS.map((relation) => `${object}#${relation}@${who}`)),
      )
      await given(store, 'child', ...held.filter(() => random() < 0.3).map((text) => put(text)))
      if (acting) await given(store, 'child', ...['a', 'b'].map((id) => put(`service:a#acts_for@user:${id}`)))
      const pdp = createPdp({ store, app: 'app' })
      const tools = Array.from({ length: 5 }, (_, at) => toolOf(random, `t${at}`))
      const deps = depsFor({ routes: routesOf(tools) })
      for (const id of ['a', 'b']) {
        const actor = acting ? { actor: service('a') } : {}
        const ask = async ({ permissions }: { readonly permissions: readonly object[] }): Promise<PdpAnswer> => {
          const request = { organization: 'child', subject: user(id), ...actor, permissions: permissions as never }
          const results = (await pdp.decide(request)).permissions
          return {
            ...ALLOW,
            permissions: results.map(({ allowed, error }) => error ?? (allowed ? 'allowed' : 'denied')),
          }
        }
        const own = actingAs(deps, ask, random() < 0.5 ? 'a:read' : 'other')
        const may: string[] = []
        for (const { name, args } of tools) {
          const calls = assignments(args).map((given) => send(own, 'tools/call', { name, arguments: given }))
          count.calls += calls.length
          if ((await Promise.all(calls)).some(({ kind }) => kind === 'permit')) may.push(name)
        }
        expect(await listed(own, [...tools.map(({ name }) => name), 'unnamed'])).toEqual(may)
        count.shown += may.length
        count.hidden += tools.length - may.length
      }
    }),
    { numRuns: effort({ short: 40, long: 2_000 }) },
  )
  expect(Math.min(count.shown, count.hidden)).toBeGreaterThan(10)
})

describe('a rule that is listed to some', () => {
  const ROUTES = `MCP /mcp:
  check: user mcp_server:crm
  tools:
    pay: {check: {all: [scope payments:write, "approver account:{arguments.account}"]}, listed: some}
    move: {check: {all: ["viewer account:{arguments.from}", "editor account:{arguments.to}"]}, listed: some}
    read: {check: "viewer account:{arguments.account}", listed: some}
    look: viewer account:{arguments.account}
    slow: {check: "viewer account:{arguments.account}", listed: some, step_up: {max_age: 60}}
  prompts: {summary: {check: "viewer account:{arguments.account}", listed: some}}
  resources:
    "crm://accounts/{id}": {check: "viewer account:{id}", listed: some}
    "crm://files/{id}": {check: "viewer file:{id}", listed: some}
`
  const USER = 'alice user mcp_server:crm'
  let h: Harness
  const ran: string[] = []
  beforeAll(async () => {
    h = await startHarness({ routes: ROUTES })
  })
  afterAll(() => h.close())
  beforeEach(() => {
    h.pdp.asked.length = 0
    ran.length = 0
    h.pdp.script = tuples([USER])
    h.upstream.handle = (_req, res, body) => respond(res, body)
  })
  function respond(res: ServerResponse, body: Buffer): void {
    const { method, params, id } = JSON.parse(body.toString())
    if (method === 'tools/call' || method === 'prompts/get') ran.push(`${params.name} ${params.arguments?.account}`)
    if (method === 'resources/read') ran.push(params.uri)
    const named = (names: readonly string[]) => names.map((name) => ({ name }))
    const result = {
      tools: named(['pay', 'move', 'read', 'look', 'slow', 'unnamed']),
      prompts: named(['summary']),
      resourceTemplates: ['crm://accounts/{id}', 'crm://files/{id}'].map((uriTemplate) => ({ uriTemplate })),
    }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }
  const ask = (method: string, params: object = {}): Promise<RawAnswer> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
    return h.send('POST /mcp', { body, fields: ['Content-Type: application/json'] })
  }
  const call = (name: string, args: object) => ask('tools/call', { name, arguments: args })
  const names = async (method: string, list: string): Promise<readonly string[]> =>
    JSON.parse((await ask(method)).body).result[list].map(
      (item: { name?: string; uriTemplate?: string }) => item.name ?? item.uriTemplate,
    )
  const errorOf = ({ body }: RawAnswer) => JSON.parse(body).error ?? null

  test('is listed while the relation holds on some resource, by one question', async () => {
    expect(await names('tools/list', 'tools')).toEqual(['look'])
    expect(h.pdp.asked.map(({ permissions }) => permissions)).toEqual([
      ['user mcp_server:crm', 'approver any account', 'viewer any account', 'editor any account'],
    ])
    h.pdp.script = tuples([USER, 'alice viewer any account'])
    expect(await names('tools/list', 'tools')).toEqual(['read', 'look', 'slow'])
    h.pdp.script = tuples([USER, 'alice viewer any account', 'alice editor any account', 'alice approver any account'])
    // The scope of the token is not there.
    expect(await names('tools/list', 'tools')).toEqual(['move', 'read', 'look', 'slow'])
    h.pdp.script = tuples([USER])
    expect(await names('tools/list', 'tools')).toEqual(['look'])
  })

  test('is listed so among prompts and templates of resources, too', async () => {
    expect(await names('prompts/list', 'prompts')).toEqual([])
    expect(await names('resources/templates/list', 'resourceTemplates')).toEqual([])
    h.pdp.script = tuples([USER, 'alice viewer any account'])
    expect(await names('prompts/list', 'prompts')).toEqual(['summary'])
    expect(await names('resources/templates/list', 'resourceTemplates')).toEqual(['crm://accounts/{id}'])
  })

  test('is not listed where the PDP cannot decide, and no list passes without its answer', async () => {
    h.pdp.script = (asked) => {
      const decided = tuples([USER])(asked)
      if (typeof decided === 'object')
        for (const result of decided?.permissions ?? [])
          if (result.relation === 'viewer') result.error = 'evaluation_limit'
      return decided
    }
    expect(await names('tools/list', 'tools')).toEqual(['look'])
    h.pdp.script = () => 'request_invalid'
    expect(errorOf(await ask('tools/list'))).toMatchObject({ code: -32_603, data: { code: 'pdp_unavailable' } })
  })

  test.each([
    ['pay', { account: '1' }],
    ['read', { account: '1' }],
    ['read', { account: '*' }],
    ['read', { account: 'any' }],
    ['read', { account: 'account' }],
    ['read', { account: 'any account' }],
    ['read', { account: '' }],
    ['read', { account: 'account:*' }],
    ['read', { account: null }],
    ['read', { account: true }],
    ['read', { account: ['1'] }],
    ['read', {}],
    ['move', { from: '1', to: '1' }],
    ['look', { account: '1' }],
    ['slow', { account: '1' }],
  ])('lets no call of %s with %j through because it is listed', async (name, args) => {
    h.pdp.script = tuples([
      USER,
      ...['viewer', 'editor', 'approver'].map((relation) => `alice ${relation} any account`),
    ])
    const answered = await call(name, args)
    expect(answered.status === 200 ? errorOf(answered) : answered.status).toBeTruthy()
    expect(ran).toEqual([])
  })

  test('asks a call that is allowed nothing more', async () => {
    h.pdp.script = tuples([USER, 'alice viewer account:1'])
    expect((await call('read', { account: '1' })).status).toBe(200)
    expect(ran).toEqual(['read 1'])
    expect(h.pdp.asked.map(({ permissions }) => permissions)).toEqual([['user mcp_server:crm', 'viewer account:1']])
  })

  test('is unknown to whom no resource would let call it, and a denial says no more', async () => {
    const hidden = await call('read', { account: '1' })
    expect(errorOf(hidden)).toMatchObject({ code: -32_602, message: 'Unknown tool: read' })
    expect(h.pdp.asked.map(({ permissions }) => permissions.at(-1))).toEqual(['viewer account:1', 'viewer any account'])
    expect(errorOf(await call('none', {})).code).toBe(-32_602)
    h.pdp.script = tuples([USER, 'alice viewer any account'])
    expect(errorOf(await call('read', { account: '1' }))).toMatchObject({ code: 403 })
    // Who may not use the server at all learns that, and nothing of its tools.
    h.pdp.script = tuples(['alice viewer any account'])
    expect(errorOf(await call('read', { account: '1' }))).toMatchObject({ code: 403 })
    expect(ran).toEqual([])
  })

  test('stays denied when the PDP fails at the second question', async () => {
    h.pdp.script = (asked) =>
      asked.permissions.includes('viewer any account') ? 'store_unavailable' : tuples([USER])(asked)
    expect(errorOf(await call('read', { account: '1' }))).toMatchObject({ code: -32_603 })
    expect(ran).toEqual([])
  })

  test('lets no resource be read because its template is listed', async () => {
    h.pdp.script = tuples([USER, 'alice viewer any account'])
    for (const uri of ['crm://accounts/1', 'crm://accounts/*', 'crm://accounts/{id}', 'crm://accounts/'])
      expect(errorOf(await ask('resources/read', { uri })), uri).toBeTruthy()
    expect(ran).toEqual([])
  })
})

test('a check that asks for some resource denies whatever request it decides about', () => {
  const some: Check = { kind: 'some', relation: 'viewer', type: 'account' }
  const values = {
    read: () => '',
    fill: () => '',
    claim: () => null,
    scopes: new Set<string>(),
    organization: 'acme',
    isGuest: false,
  }
  for (const check of [some, { kind: 'any', of: [some] }, { kind: 'all', of: [some, some] }] as const) {
    const { permissions, evaluate, parts } = buildQuestions({ check, context: [] }, values as never, [check])
    const allowed: PdpAnswer = { ...ALLOW, permissions: permissions.map(() => 'allowed') }
    expect(evaluate(allowed)).toMatchObject({ code: 'permission_denied' })
    expect(parts.map((part) => part(allowed))).toEqual([null])
  }
})

const TWICE = 'in two parts that must both hold'
describe('a route file', () => {
  const load = (rules: string) =>
    loadFile(
      routeFile(`MCP /mcp: {tools: {t: ${rules}}}`)
        .replace('UPSTREAM', 'http://127.0.0.1:1')
        .replace('PDP', '127.0.0.1:1'),
    )

  test.each([
    ['another word', '{check: "viewer doc:{arguments.id}", listed: all}', 'listed must be some'],
    ['a word in capitals', '{check: "viewer doc:{arguments.id}", listed: Some}', 'listed must be some'],
    ['a flag', '{check: "viewer doc:{arguments.id}", listed: true}', 'listed must be'],
    ['a list', '{check: "viewer doc:{arguments.id}", listed: [some]}', 'listed must be'],
    ['no word', '{check: "viewer doc:{arguments.id}", listed: ""}', 'listed must be'],
    ['no argument', '{check: signed_in, listed: some}', 'needs a relation that takes an argument'],
    ['a fixed resource', '{check: "owner server:crm", listed: some}', 'needs a relation that takes an argument'],
    ['a scope', '{check: scope a, listed: some}', 'needs a relation that takes an argument'],
    ['a claim', '{check: "owner org:{claims.org}", listed: some}', 'needs a relation that takes an argument'],
    ['a comparison alone', '{check: {equals: {arguments.id: a}}, listed: some}', 'needs a relation'],
    ['a part of an id', '{check: "viewer doc:x-{arguments.id}", listed: some}', 'one argument alone'],
    ['an id of two', '{check: "viewer doc:{arguments.a}-{arguments.b}", listed: some}', 'one argument alone'],
    ['an id with a claim', '{check: "viewer doc:{claims.org}-{arguments.b}", listed: some}', 'one argument alone'],
    [
      'one of two with a part of an id',
      '{check: {all: ["viewer doc:{arguments.a}", "viewer doc:x-{arguments.a}"]}, listed: some}',
      'one argument alone',
    ],
    ['no check', '{listed: some}', 'check'],
    [
      'one argument for two',
      '{check: {all: ["viewer doc:{arguments.a}", "editor doc:{arguments.a}"]}, listed: some}',
      TWICE,
    ],
    [
      'one argument for two types',
      '{check: {all: ["viewer doc:{arguments.a}", "viewer box:{arguments.a}"]}, listed: some}',
      TWICE,
    ],
    ['a value of it', '{check: {all: ["viewer doc:{arguments.a}", {equals: {arguments.a: x}}]}, listed: some}', TWICE],
    [
      'one argument deep within',
      '{check: {all: [{any: [scope a, {all: ["viewer doc:{arguments.b}", "viewer doc:{arguments.a}"]}]}, "editor doc:{arguments.a}"]}, listed: some}',
      TWICE,
    ],
  ])('is refused with listed and %s', (_, rule, message) => {
    expect(() => load(rule)).toThrow(message)
  })

  test.each([
    '{any: ["viewer doc:{arguments.a}", "editor doc:{arguments.a}"]}',
    '{all: ["viewer doc:{arguments.a}", "editor doc:{arguments.b}"]}',
    '{all: ["viewer doc:{arguments.a}", "editor doc:1"]}',
  ])('may list what %s lets call', (check) => {
    expect(() => load(`{check: ${check}, listed: some}`)).not.toThrow()
  })

  test('has a rule of at most 256 checks, with those of the server', () => {
    const all = (count: number): string =>
      JSON.stringify({ all: Array.from({ length: count }, (_, at) => `viewer doc:${at}`) })
    expect(() => load(all(255))).not.toThrow()
    expect(() => load(all(256))).toThrow('256 checks')
  })

  test.each(['GET /a: {check: signed_in, listed: some}', 'MCP /mcp: {listed: some, tools: {t: signed_in}}'])(
    'is refused with listed where there is no rule: %s',
    (routes) => {
      const file = routeFile(routes).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
      expect(() => loadFile(file)).toThrow('unknown key "listed"')
    },
  )

  test('tells in its tests what a list asks, and what a call does', async () => {
    const routes = `MCP /mcp:
  tools:
    refund: {check: {all: [scope payments:write, "approver account:{arguments.account}"]}, listed: some}`
    const extra = `tests:
  - {mcp: tools/list, as: {sub: alice}, expect: {asks: [scope payments:write, approver any account]}}
  - {mcp: tools/call refund, arguments: {account: "1"}, as: {sub: alice}, expect: {asks: ["approver account:1"]}}
  - {mcp: tools/call refund, arguments: {account: "1"}, as: {sub: alice}, expect: {asks: [approver any account]}}`
    const text = routeFile(routes, { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
    expect(await runRouteTests(loadFile(text), 'x.yaml')).toMatchObject({ passed: 2, failed: 1 })
  })
})
