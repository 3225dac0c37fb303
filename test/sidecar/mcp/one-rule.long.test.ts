/** One rule for call and list: random people see exactly the tools that they may call, in one question. */
import { expect, test } from 'vitest'
import { parseClaims } from '../../../pdp/shared/token/claims.ts'
import type { EnforceDeps } from '../../../sidecar/enforce/enforce.ts'
import type { PdpQuestion } from '../../../sidecar/pdp-client/question.ts'
import { pick, type Random, seeded } from '../fuzz/targets.ts'
import { ALLOW, depsFor, NOW_MS } from '../support/enforcing.ts'
import { listed, send } from './enforced-calls.ts'

const PEOPLE = 10_000
const PEOPLE_OF_A_WORLD = 100
const TOOLS = ['t1', 't2', 't3', 't4', 't5', 't6']
const RELATIONS = ['user', 'admin', 'owner']
const SCOPES = ['a:read', 'a:write']
const ENTITLEMENTS = ['feature.a', 'feature.b']

/** Nothing in it needs an argument. */
function checkOf(random: Random, depth = 0): unknown {
  const kind = random()
  if (depth < 2 && kind < 0.4) {
    const of = Array.from({ length: 1 + Math.floor(random() * 3) }, () => checkOf(random, depth + 1))
    return { [kind < 0.2 ? 'all' : 'any']: of }
  }
  if (kind < 0.5) return 'signed_in'
  if (kind < 0.6) return `scope ${pick(random, SCOPES)}`
  if (kind < 0.7) return `entitlement ${pick(random, ENTITLEMENTS)}`
  return `${pick(random, RELATIONS)} server:${pick(random, ['x', 'y'])}`
}

type Person = { readonly scopes: readonly string[]; readonly holds: (what: string) => boolean }
function personOf(random: Random): Person {
  const held = new Map<string, boolean>()
  return {
    scopes: SCOPES.filter(() => random() < 0.5),
    holds(what) {
      if (!held.has(what)) held.set(what, random() < 0.5)
      return held.get(what) === true
    },
  }
}

const actingAs = (deps: EnforceDeps, { scopes, holds }: Person, asked: PdpQuestion[] = []): EnforceDeps => ({
  ...deps,
  tokens: {
    verify() {
      const who = { iss: 'https://as.test', aud: 'https://app.test', sub: 'alice', client_id: 'c1', org: 'acme' }
      const times = { jti: 'j', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 300 }
      const claims = { ...who, ...times, scope: scopes.join(' ') }
      return parseClaims(Object.assign(Object.create(null), claims), 'digest')
    },
  },
  pdp: {
    async ask(question) {
      asked.push(question)
      const isAllowed = question.permissions.map(({ relation, resource }) => holds(`${relation} ${resource}`))
      return {
        ...ALLOW,
        permissions: isAllowed.map((allowed) => (allowed ? 'allowed' : 'denied')),
        entitlements: new Map(question.entitlements.map((key) => [key, holds(key)])),
      }
    },
    watch: () => () => undefined,
  },
})

/** A few seconds where nothing else runs. */
const PATIENT = { timeout: 600_000 }

test(`${PEOPLE} random people are listed exactly the tools that they may call`, PATIENT, async () => {
  const random = seeded(39)
  let shown = 0
  for (let world = 0; world < PEOPLE / PEOPLE_OF_A_WORLD; world += 1) {
    const tools = Object.fromEntries(TOOLS.map((name) => [name, checkOf(random)]))
    const routes = `MCP /mcp: ${JSON.stringify({ check: checkOf(random), tools })}`
    const deps = depsFor({ routes })
    for (let at = 0; at < PEOPLE_OF_A_WORLD; at += 1) {
      const own = actingAs(deps, personOf(random))
      const may: string[] = []
      for (const name of TOOLS) if ((await send(own, 'tools/call', { name })).kind === 'permit') may.push(name)
      const sees = await listed(own, [...TOOLS, 'unnamed'])
      shown += sees.length
      expect(sees, routes).toEqual(may)
    }
  }
  expect(shown).toBeGreaterThan(PEOPLE)
})

test('a list of a hundred tools takes one question', async () => {
  const tools = Array.from({ length: 100 }, (_, at) => `t${at}`)
  const rules = Object.fromEntries(tools.map((name) => [name, `caller tool:${name}`]))
  const asked: PdpQuestion[] = []
  const person = { scopes: [], holds: (what: string) => what.endsWith('7') }
  const deps = actingAs(depsFor({ routes: `MCP /mcp: ${JSON.stringify({ tools: rules })}` }), person, asked)
  expect(await listed(deps, tools)).toHaveLength(10)
  expect(asked.map(({ permissions }) => permissions.length)).toEqual([100])
})

test('a list of more tools than one question takes is asked in several', async () => {
  const tools = Array.from({ length: 256 }, (_, at) => `t${at}`)
  const rules = Object.fromEntries(tools.map((name) => [name, { all: [`caller tool:${name}`, `user tool:${name}`] }]))
  const asked: PdpQuestion[] = []
  const person = { scopes: [], holds: (what: string) => what === 'user server:x' || what.endsWith('7') }
  const routes = `MCP /mcp: ${JSON.stringify({ check: 'user server:x', tools: rules })}`
  expect(await listed(actingAs(depsFor({ routes }), person, asked), [...tools, 'unnamed'])).toHaveLength(25)
  expect(asked.map(({ permissions }) => permissions.length)).toEqual([1, 256, 256])
})
