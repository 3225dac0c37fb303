/** Stores of other systems as plans: what they become here, what is renamed, and what is refused by name. */
import { existsSync, globSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { JsonObject } from '../../../../pdp/shared/domain/json.ts'
import { formatTuple } from '../../../../pdp/shared/domain/names.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { planOpenFga } from '../../../../pdp/tools/import/openfga.ts'
import { readOpenFga } from '../../../../pdp/tools/import/openfga-api.ts'
import { describePlan, type Plan, usersOf, withSubjectPrefix } from '../../../../pdp/tools/import/plan.ts'
import { planSpiceDb } from '../../../../pdp/tools/import/spicedb.ts'
import { unconfined } from '../../../../pdp/tools/model-test/confined-files.ts'
import { ValidationIssues } from '../../../../pdp/tools/model-test/located-yaml.ts'
import { readModelText } from '../../../../pdp/tools/model-test/model-text.ts'
import { readStoreFile } from '../../../../pdp/tools/model-test/store-file.ts'

const SAMPLES = new URL('../../../../../shared/models/openfga-sample-stores/', import.meta.url).pathname
const tuplesOf = (plan: Plan): readonly string[] => plan.tuples.map(formatTuple)

describe('a store of OpenFGA', () => {
  const MODEL = `model
  schema 1.1
type user
type org
type organization
  relations
    define type: [user]
    define member: [user, organization#admin]
    define admin: [user, user:*]
type app
  relations
    define owner: [organization#member]
    define can_run: member from organization
    define organization: [organization]
`
  test('gets other names for types that mean something else here, wherever they stand', () => {
    const plan = planOpenFga(MODEL, [
      { object: 'organization:a', relation: 'member', user: 'user:ann' },
      { object: 'app:x', relation: 'owner', user: 'organization:a#member' },
      { object: 'app:x', relation: 'organization', user: 'organization:a' },
      { object: 'organization:a', relation: 'admin', user: 'user:*' },
    ])
    expect(plan.refusals).toEqual([])
    expect(tuplesOf(plan)).toEqual([
      'org2:a#member@user:ann',
      'application:x#owner@org2:a#member',
      'application:x#organization@org2:a',
      'org2:a#admin@user:*',
    ])
    const model = compileModel(plan.model)
    expect([...model.keys()]).toEqual(['user', 'org', 'org2', 'application'])
    expect([...(model.get('org2')?.keys() ?? [])].sort()).toEqual(['admin', 'member', 'type'])
    expect(plan.notes.join('\n')).toMatch(/"app" is called "application".*\n.*"organization" is called "org2"/)
    expect(usersOf(plan)).toEqual(['ann'])
    expect(usersOf(withSubjectPrefix(plan, 'kc:'))).toEqual([])
  })

  test('stays as it is where nothing has to change', () => {
    const text = 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n'
    const plan = planOpenFga(text, [{ object: 'doc:1', relation: 'viewer', user: 'user:a' }])
    expect([plan.model, plan.refusals, tuplesOf(plan)]).toEqual([text, [], ['doc:1#viewer@user:a']])
    expect(describePlan(plan)).toContain('tuples: 1 (doc 1)')
  })

  test.each([
    [{ object: 'doc:1', relation: 'editor', user: 'user:a' }, /type "doc" has no relation "editor"/],
    [{ object: 'doc:1', relation: 'viewer', user: 'doc:2' }, /does not allow doc/],
    [{ object: 'doc:1 2', relation: 'viewer', user: 'user:a' }, /object "doc:1 2" is not/],
    [{ object: 'doc', relation: 'viewer', user: 'user:a' }, /is not <type>:<id>/],
  ])('is refused with the tuple %j', (tuple, message) => {
    const text = 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n'
    expect(planOpenFga(text, [tuple]).refusals).toEqual([expect.stringMatching(message)])
  })

  test.skipIf(!existsSync(SAMPLES))('of every sample is imported whole, or refused by name', async () => {
    let imported = 0
    for (const file of globSync(`${SAMPLES}**/*.fga.yaml`)) {
      const store = await readStoreFile(file, { read: unconfined, issues: new ValidationIssues() })
      if (store.model === null) throw new Error(file)
      const text = await readModelText(store.model, unconfined)
      if (/with \$/.test(text)) continue
      const plan = planOpenFga(text, store.tuples)
      expect([file, plan.refusals]).toEqual([file, []])
      expect(plan.tuples.map(({ condition }) => condition ?? null)).toEqual(store.tuples.map((t) => t.condition))
      imported++
    }
    expect(imported).toBeGreaterThan(15)
  })

  test('is read from a server page by page', async () => {
    const tuple = (i: number) => ({ key: { user: `user:${i}`, relation: 'viewer', object: 'doc:1', condition: null } })
    const asked: string[] = []
    const answer = (url: string, body: string): unknown => {
      asked.push(`${url} ${body}`)
      if (url.includes('authorization-models')) return { authorization_models: [DOCUMENT] }
      const { continuation_token: token } = JSON.parse(body)
      return token === undefined
        ? { tuples: [tuple(1), tuple(2)], continuation_token: 'next' }
        : { tuples: [tuple(3)], continuation_token: '' }
    }
    const fetched: typeof fetch = async (input, init) => Response.json(answer(String(input), String(init?.body)))
    const read = await readOpenFga({ url: 'http://fga/', store: 's/1', token: 't', fetch: fetched })
    expect(planOpenFga(read.model, read.tuples).tuples).toHaveLength(3)
    expect(asked).toHaveLength(3)
    expect(asked[0]).toContain('http://fga/stores/s%2F1/authorization-models')
  })

  test.each<[string, typeof fetch, RegExp]>([
    ['cannot be reached', () => Promise.reject(new TypeError('fetch failed')), /cannot be reached/],
    ['refuses', async () => Response.json({ message: 'no store' }, { status: 404 }), /status 404: no store/],
    ['has no model', async () => Response.json({ authorization_models: [] }), /has no model/],
    ['answers something else', async () => new Response('<html>', { status: 200 }), /with status 200/],
  ])('is refused when the server %s', async (_, fetched, message) => {
    await expect(readOpenFga({ url: 'http://fga', store: 's', token: null, fetch: fetched })).rejects.toThrow(message)
  })
})

const DOCUMENT = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'doc',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}

describe('a schema of SpiceDB', () => {
  const SCHEMA = `/** people */
definition user {}
definition tenant/group {
  relation member: user | tenant/group#member // nested
}
definition organization {
  relation admin: user | tenant/group#member
  permission manage = admin
}
definition document {
  relation org: organization
  relation reader: user | user:* | tenant/group#member | user#...
  relation banned: user
  permission edit = org->manage
  permission view = (reader + edit + org.any(admin)) - banned
  permission both = reader & (edit - banned - reader)
}`
  test('becomes a model with the same meaning', () => {
    const plan = planSpiceDb(
      SCHEMA,
      `// a comment
document:1#reader@user:*

document:1#org@organization:a
organization:a#admin@tenant/group:g#member
tenant/group:g#member@user:ann[expiration:2040-01-01T00:00:00Z]
document:1#banned@user:bad#...`,
    )
    expect(plan.refusals).toEqual([])
    expect(tuplesOf(plan)).toEqual([
      'document:1#reader@user:*',
      'document:1#org@org:a',
      'org:a#admin@tenant_group:g#member',
      'tenant_group:g#member@user:ann',
      'document:1#banned@user:bad',
    ])
    expect(plan.tuples[3]?.expiresAtMs).toBe(Date.parse('2040-01-01T00:00:00Z'))
    expect(plan.model).toContain('define view: (reader or edit or admin from org) but not banned')
    expect(plan.model).toContain('define both: reader and ((edit but not banned) but not reader)')
    expect([...compileModel(plan.model).keys()]).toEqual(['user', 'tenant_group', 'org', 'document'])
  })

  test.each<[string, string, RegExp]>([
    ['a caveat on bytes', 'caveat late(x bytes) { x == b"a" }\ndefinition user {}', /1:15: the type "bytes"/],
    ['a caveat without an end', 'definition user {}\ncaveat late(x int) { x > 1', /2:20: the brace is never closed/],
    ['a caveat without a type', 'caveat late(x) { x > 1 }\ndefinition user {}', /1:14: the name of a type/],
    ['a caveat that is no bool', 'caveat late(x int) { x + 1 }\ndefinition user {}', /late/],
    ['a caveat of an unknown value', 'caveat late(x int) { y > 1 }\ndefinition user {}', /y/],
    [
      'a caveat that is not declared',
      'definition user {}\ndefinition a { relation r: user with late }',
      /there is no condition "late"/,
    ],
    ['two caveats', 'definition user {}\ndefinition a { relation r: user with b and c }', /\d:\d+: .*one caveat/],
    ['self', 'use self\ndefinition a { permission p = self }', /"p" of "a": "self", the object itself/],
    ['an arrow behind an arrow', 'definition a { relation r: a\n permission p = r->r->r }', /2:\d+: an arrow behind/],
    ['an unknown type with an arrow', 'definition a { relation r: b\n permission p = r->q }', /no type "b"/],
    ['an arrow over all', 'definition a { relation r: a\n permission p = r.all(p) }', /2:\d+: "r\.all"/],
    ['a missing brace', 'definition a { relation r: user', /1:\d+: /],
    ['an unknown sign', 'definition a { permission p = r % r }', /1:\d+: /],
    [
      'an arrow through usersets',
      'definition user {}\ndefinition a { relation r: a#r | a\n permission p = r->r }',
      /"r->" goes through/,
    ],
    [
      'an arrow through a permission',
      'definition user {}\ndefinition a { relation r: user\n permission q = r\n permission p = q->r }',
      /"q->" needs a relation/,
    ],
    ['an unknown type', 'definition a { relation r: usr }', /no type "usr"/],
    [
      'an unknown relation',
      'definition user {}\ndefinition a { relation r: user\n permission p = q }',
      /no relation "q"/,
    ],
    ['nothing', '', /no type/],
  ])('is refused with %s, by its place or name', (_, schema, message) => {
    const { refusals } = planSpiceDb(schema, '')
    expect(refusals.join('\n')).toMatch(message)
  })

  test.each([
    ['use partial\npartial p { relation r: user }\ndefinition a { ...p }', '1:1: "use partial": make one schema'],
    ['use import\nimport "./b.zed"', '1:1: "use import": make one schema'],
    ['definition user {}\npartial p { relation r: user }\ndefinition a { ...p }', '2:1: "partial": make one schema'],
    ['use dreams\ndream a', '1:1: "use dreams" has no translation'],
  ])('of several parts is refused in one line: %j', (schema, message) => {
    expect(planSpiceDb(schema, '').refusals).toEqual([expect.stringContaining(message)])
  })

  test('with caveats and expiration gets conditions', async () => {
    const plan = planSpiceDb(
      `use expiration
caveat shop/late(hour int, tags list<string>, where map<string>) {
  // of the "shop"
  hour < 18 || "}" in tags /* or */ || where["at"] == "x"
}
caveat net(ip ipaddress) { ip.in_cidr('10.0.0.0/8') }
definition user {}
definition folder {
  relation viewer: user | user with shop/late | user with shop/late and expiration | user:* with net
}
definition document {
  relation folder: folder with net
  relation reader: user with expiration | folder#viewer with net
  permission view = reader + folder->viewer
}`,
      `folder:f#viewer@user:ann[shop/late:{"hour":9,"tags":["]"]}]
folder:f#viewer@user:bob[shop/late:{"hour":9}][expiration:2040-01-01T00:00:00Z]
folder:f#viewer@user:*[net]
document:1#folder@folder:f[net:{"ip":"10.0.0.1"}]
document:1#reader@user:eve[expiration:2040-01-01T00:00:00Z]
document:1#reader@folder:f#viewer[net]`,
    )
    expect(plan.refusals).toEqual([])
    expect(plan.model).toContain('define viewer: [user, user with shop_late, user:* with net]')
    expect(plan.model).toContain('condition shop_late(hour: int, tags: list<string>, where: map<string>) {')
    expect(plan.tuples.map(({ condition, expiresAtMs }) => [condition?.name, expiresAtMs === null])).toEqual([
      ['shop_late', true],
      ['shop_late', false],
      ['net', true],
      ['net', true],
      [undefined, false],
      ['net', true],
    ])
    expect(plan.tuples[0]?.condition?.context).toEqual({ hour: 9, tags: [']'] })
    expect(plan.notes.join('\n')).toMatch(/"shop\/late" is the condition "shop_late".*without the value/)
    expect(plan.notes.join('\n')).toMatch(/with expiration/)
    const pdp = createPdp({ store: memoryStore() })
    await pdp.putOrganization('acme', { name: 'Acme' })
    await pdp.putManifest('app', { model: plan.model })
    await pdp.write('acme', { write: plan.tuples.map(({ expiresAtMs: _, ...tuple }) => tuple) })
    const can = (id: string, context?: JsonObject) =>
      pdp.can('acme', user(id), 'view', 'document:1', context === undefined ? {} : { context })
    expect(await can('ann', { where: {} })).toBe(true)
    expect(await can('bob', { tags: [], where: {} })).toBe(true)
    expect(await can('zoe', { ip: '11.0.0.1' })).toBe(false)
    expect(await can('zoe', { ip: '10.9.9.9' })).toBe(true)
    await expect(can('zoe')).rejects.toMatchObject({ code: 'condition_failed' })
  })

  test.each([
    ['a caveat that is not there', 'a:1#r@user:b[late:{"x":1}]', /does not allow user with condition "late"/],
    ['a caveat without a name', 'a:1#r@user:b[:{"x":1}]', /line 1: \[:/],
    ['a caveat with something else', 'a:1#r@user:b[late:{"x":1]', /line 1: \[late/],
    ['a caveat with a list', 'a:1#r@user:b[late:[1]]', /line 1: \[late/],
    ['an end that is no instant', 'a:1#r@user:b[expiration:soon]', /line 1: \[expiration:soon\]/],
    ['an end that no calendar has', 'a:1#r@user:b[expiration:2040-02-31T00:00:00Z]', /line 1: \[expiration/],
    ['two ends', 'a:1#r@user:b[expiration:2040-01-01T00:00:00Z][expiration:2041-01-01T00:00:00Z]', /line 1: \[exp/],
    ['half a bracket', 'a:1#r@user:b[late', /line 1: \[late/],
    ['no subject', 'a:1#r', /line 1: /],
    ['a relation that is not there', 'a:1#q@user:b', /no relation "q"/],
    ['a subject that is not allowed', 'a:1#r@a:2', /does not allow a/],
  ])('is refused with a relationship of %s', (_, line, message) => {
    expect(planSpiceDb('definition user {}\ndefinition a { relation r: user }', line).refusals.join('\n')).toMatch(
      message,
    )
  })
})
